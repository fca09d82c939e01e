"""The answers of `mainspring why`: why a slot or a job ran, or did not run."""

from __future__ import annotations
