"""Connections of the caller's own. None of their libraries is required."""
