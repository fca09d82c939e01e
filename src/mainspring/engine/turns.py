"""In which order a worker asks its queues."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.entropy import Entropy


class Turns:
    """As they were named; or, with weights, anew for each claim, by chance in their proportion."""

    def __init__(self, names: Sequence[str], weights: Sequence[int] | None, entropy: Entropy) -> None:
        self._names, self._weights, self._entropy = tuple(names), weights, entropy

    def order(self) -> tuple[str, ...]:
        """Every queue once, the one to be served first in front."""
        if self._weights is None:
            return self._names
        # Drawn with its weight: u ** (1 / weight), the largest first (Efraimidis and Spirakis).
        drawn = [
            (self._entropy.fraction() ** (1 / weight), name)
            for name, weight in zip(self._names, self._weights, strict=True)
        ]
        return tuple(name for _, name in sorted(drawn, reverse=True))
