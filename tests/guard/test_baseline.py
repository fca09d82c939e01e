"""A job costs no more than it did: counted, not timed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.guard.baseline import VERSION, recorded

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)  # half a minute where nobody else works; counts do not mind waiting
def test_no_count_is_far_from_what_was_recorded() -> None:
    if recorded() is None and not os.environ.get("CI"):
        pytest.skip(f"nothing is recorded for Python {VERSION}: python -m benchmarks.guard --write")

    # A process of its own: what else a test run has loaded, patched or traced is nobody's cost.
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.guard"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )

    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
