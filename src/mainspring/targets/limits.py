"""How much a program may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mainspring.errors import InvalidArgument

_RANGES = {
    "memory": (1024 * 1024, 2**50),
    "processes": (1, 100_000),
    "cpu": (1, 10**9),
    "file_size": (0, 2**60),
    "open_files": (3, 2**20),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a program that a job starts; None leaves the worker's own."""

    memory: int | None = None
    """Bytes of address space of each of its processes."""
    processes: int | None = None
    """Processes at once. The kernel holds a user to it, and counts all of that user's; it holds root to
    nothing, so there the whole tree is ended when it grows beyond it. Better: `user`."""
    cpu: int | None = None
    """Seconds of processor time of each of its processes."""
    file_size: int | None = None
    """Bytes of each file that it writes."""
    open_files: int | None = None

    def __post_init__(self) -> None:
        for name, value in self.given().items():
            least, most = _RANGES[name]
            if type(value) is not int or not least <= value <= most:
                raise InvalidArgument(f"limits.{name}", value, f"a whole number from {least} to {most}")

    def given(self) -> dict[str, int]:
        """Those that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}
