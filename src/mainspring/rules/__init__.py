"""Rules: which moves are legal and what a finished run does to its job. Pure."""
