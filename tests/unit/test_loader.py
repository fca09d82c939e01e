"""Targets: what leads to an app, and what is said when nothing does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.cli.app_loader import load_app
from mainspring.cli.errors import UserCodeFailed
from mainspring.errors import TargetNotFound

Write = Callable[[str, str], None]

APP = "from mainspring import Mainspring\n\napp = other = Mainspring()\n"
FACTORY = "from mainspring import Mainspring\n\n\ndef make():\n    return Mainspring()\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write files into the working folder; what is imported from there is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def put(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    yield put
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    "target",
    [
        "loader_app",
        "loader_app:app",
        "loader_app:other",
        "loader_app.py",
        "./loader_app.py:other",
        "folder/loader_deep.py",
        "folder.loader_deep",
        "loader_package/jobs.py",
        "loader_package.jobs:app",
        "loader_factory:make",
    ],
)
def test_modules_files_and_factories_lead_to_an_app(write: Write, target: str) -> None:
    write("loader_app.py", APP)
    write("folder/loader_deep.py", APP)
    write("loader_package/__init__.py", "")
    write("loader_package/other.py", "")
    write("loader_package/jobs.py", f"from loader_package import other as _\n{APP}")
    write("loader_factory.py", FACTORY)

    assert isinstance(load_app(target), Mainspring)


def test_a_file_in_a_package_is_the_same_module_as_by_name(write: Write) -> None:
    write("loader_package/__init__.py", "")
    write("loader_package/jobs.py", APP)

    assert load_app("loader_package/jobs.py") is load_app("loader_package.jobs")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("", "expected"),
        (":app", "expected"),
        ("a b", "expected"),
        ("..", "expected"),
        ("loader_nosuch", "no module named loader_nosuch"),
        ("loader_app.inner:app", "no module named loader_app.inner"),
        ("loader_nosuch.py", "no such file"),
        ("loader_app:nosuch", "has no nosuch; apps there: app, other"),
        ("loader_app:Mainspring.nosuch", "has no Mainspring.nosuch"),
        ("loader_app:__file__", "a str, not a Mainspring app"),
        ("bad-name.py", "rename the file"),
        ("json.py", "another module is named json"),
    ],
)
def test_what_leads_nowhere_is_said(write: Write, target: str, reason: str) -> None:
    write("loader_app.py", APP)
    write("bad-name.py", APP)
    write("json.py", APP)

    with pytest.raises(TargetNotFound, match=reason):
        load_app(target)


def test_an_error_of_the_module_keeps_its_own_frames_and_cause(write: Write) -> None:
    write(
        "loader_faulty.py",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise OSError('no') from error\n",
    )

    with pytest.raises(UserCodeFailed) as caught:
        load_app("loader_faulty")

    assert caught.value.report.count("loader_faulty.py") == 2
    assert "direct cause" in caught.value.report
    assert "target.py" not in caught.value.report
    assert "importlib" not in caught.value.report


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import loader_nosuch_dependency\n", "No module named 'loader_nosuch_dependency'"),
        ("def broken(:\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("app = lambda: 1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_whatever_the_module_raises_is_the_users_to_see(write: Write, text: str, said: str) -> None:
    write("loader_raises.py", text)

    with pytest.raises(UserCodeFailed, match=said):
        load_app("loader_raises")
