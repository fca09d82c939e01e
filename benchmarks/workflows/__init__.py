"""What a workflow's step costs, beside a plain job of ours and beside the workflows of others."""

from __future__ import annotations
