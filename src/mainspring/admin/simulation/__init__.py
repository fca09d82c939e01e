"""Simulations: future slots, load and bursts, without a real clock."""

from __future__ import annotations
