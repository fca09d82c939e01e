"""What a job costs as things grow: backlog, history, schedules, workers, and time under a held snapshot."""
