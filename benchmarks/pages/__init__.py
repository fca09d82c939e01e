"""How long pages take that look into a full database."""
