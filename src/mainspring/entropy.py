"""The only module that makes randomness and ids."""

from __future__ import annotations

import random
import secrets
from typing import Protocol

_POSITIVE_63_BITS = (1 << 63) - 1


class Entropy(Protocol):
    """Where the engine gets its dice from."""

    def fraction(self) -> float:
        """A number in [0, 1), for jitter."""

    def worker_id(self) -> int:
        """An id for one start of one process: positive, 63 bits, never seen before."""

    def secret(self) -> bytes:
        """32 bytes that cannot be guessed."""


class SystemEntropy:
    """Fresh on every call."""

    def fraction(self) -> float:
        return random.random()

    def worker_id(self) -> int:
        return secrets.randbits(63) & _POSITIVE_63_BITS or 1

    def secret(self) -> bytes:
        return secrets.token_bytes(32)


class SeededEntropy:
    """The same numbers for the same seed, for tests and simulation."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def fraction(self) -> float:
        return self._random.random()

    def worker_id(self) -> int:
        return self._random.getrandbits(63) or 1

    def secret(self) -> bytes:
        return self._random.randbytes(32)
