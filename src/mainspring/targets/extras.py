"""Packages that only some targets need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mainspring.errors import InvalidConfig


@contextmanager
def needs(extra: str, package: str) -> Iterator[None]:
    """Around an import: if it is this package that is missing, say how to get it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != package:
            raise
        raise InvalidConfig(
            "target", f"no {package}", f"the extra: pip install 'mainspring[{extra}]'"
        ) from None
