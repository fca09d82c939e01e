"""When: pure calendar arithmetic. Nothing here reads a clock."""
