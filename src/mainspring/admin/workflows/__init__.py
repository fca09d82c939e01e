"""What operators ask and order of workflows."""

from __future__ import annotations
