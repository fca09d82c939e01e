"""What users write: tasks, schedules and their options, as data."""
