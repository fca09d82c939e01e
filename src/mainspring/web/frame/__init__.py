"""What pages are made with: templates, forms, charts, notices, long acts."""

from __future__ import annotations
