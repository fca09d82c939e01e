"""Workflows in a store: written once, over the named statements that both dialects have."""
