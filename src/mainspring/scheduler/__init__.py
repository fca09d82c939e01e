"""What is due: slots become jobs, waiting jobs pass their limits, ended things are cleared away."""

from __future__ import annotations
