"""Workflows in a store, with the named statements of both dialects."""
