"""Doubles and helpers for the tests of programs that use Mainspring."""
