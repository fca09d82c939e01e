"""Nouns: frozen values that every layer shares. No I/O, no behaviour beyond derived properties."""
