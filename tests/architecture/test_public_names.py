"""What `import mainspring` gives, and what it leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import mainspring

PUBLIC = [
    "Context",
    "Discard",
    "Isolation",
    "JobHandle",
    "Limit",
    "Mainspring",
    "On",
    "Period",
    "Retry",
    "Snooze",
    "Step",
    "Unique",
    "Workflow",
    "__version__",
]


def test_the_public_names_are_these():
    assert sorted(mainspring.__all__) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name):
    assert hasattr(mainspring, name)


@pytest.fixture(scope="module")
def loaded():
    """The modules that a fresh interpreter has after the import."""
    code = "import json, sys, mainspring; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("heavy", ["sqlite3", "asyncpg", "click", "uvloop", "hypothesis", "pytest"])
def test_importing_the_package_leaves_this_out(loaded, heavy):
    assert heavy not in loaded


def test_importing_the_package_warns_about_nothing():
    subprocess.run([sys.executable, "-W", "error", "-c", "import mainspring"], check=True)
