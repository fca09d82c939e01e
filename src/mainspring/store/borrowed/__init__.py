"""Connections that are the caller's own, each kind in its own module; none of their libraries is needed."""
