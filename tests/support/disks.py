"""Disks that are small enough to be filled."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class SmallDisk:
    """A file system of its own, which a test can fill and make room on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    @property
    def free(self) -> int:
        """Bytes."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def fill(self) -> None:
        """Leave not one byte; what others free meanwhile is taken, too."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 4096)
        assert self.free == 0

    def make_room(self) -> None:
        self._ballast.unlink()


@contextlib.contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[SmallDisk]:
    """Mounted in memory. That takes Linux and root; who has not may not believe that this was tested."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no disk was filled: this system has no mount(8)")
    if done.returncode:
        pytest.skip(f"no disk was filled: mounting one is not permitted here ({done.stderr.strip()})")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
