"""Why something ran, or did not."""

from __future__ import annotations
