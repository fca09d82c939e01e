"""Load the app that a command names: `module:attr` or a file."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import mainspring
from mainspring.app import Mainspring
from mainspring.cli.errors import UserCodeFailed
from mainspring.errors import TargetNotFound

T = TypeVar("T")

DEFAULT_ATTRIBUTE = "app"
_OUR_FOLDER = str(Path(mainspring.__file__).parent)


def load_app(target: str) -> Mainspring:
    """The app, or what a factory of that name makes."""
    place, attribute = _split(target)
    module = _module_in_file(target, Path(place)) if place.endswith(".py") else _module(target, place)
    found = _attribute(target, module, attribute)
    if callable(found) and not isinstance(found, Mainspring):
        found = _in_user_code(target, found)
    if not isinstance(found, Mainspring):
        raise TargetNotFound(target, f"{attribute} is {_kind(found)}, not a Mainspring app")
    found._target = target
    return found


def _split(target: str) -> tuple[str, str]:
    place, _, attribute = target.partition(":")
    if not place or not place.isprintable():
        raise TargetNotFound(target, 'expected "module:attr" or "file.py"')
    return place, attribute or DEFAULT_ATTRIBUTE


def _module(target: str, name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise TargetNotFound(target, 'expected "module:attr" or "file.py"')
    _look_first_in(Path.cwd())
    try:
        return _in_user_code(target, lambda: importlib.import_module(name), missing=name)
    except ModuleNotFoundError as error:
        raise TargetNotFound(target, f"no module named {error.name}") from None


def _module_in_file(target: str, path: Path) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise TargetNotFound(target, "no such file")
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    _look_first_in(Path.cwd())
    _look_first_in(folder)
    name = ".".join(parts)
    if not all(part.isidentifier() for part in parts):
        raise TargetNotFound(target, f"{name} cannot be a module's name; rename the file")
    module = _in_user_code(target, lambda: importlib.import_module(name))
    if module.__file__ is None or Path(module.__file__).resolve() != path:
        raise TargetNotFound(target, f"another module is named {name}; rename the file")
    return module


def _look_first_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _attribute(target: str, module: ModuleType, path: str) -> object:
    found: object = module
    for name in path.split("."):
        if not hasattr(found, name):
            apps = [key for key, value in vars(module).items() if isinstance(value, Mainspring)]
            hint = f"; apps there: {', '.join(apps)}" if apps else ""
            raise TargetNotFound(target, f"{module.__name__} has no {path}{hint}")
        found = getattr(found, name)
    return found


def _in_user_code(target: str, call: Callable[[], T], *, missing: str | None = None) -> T:
    """Call it; what it raises is shown as its author wrote it. `missing` names the module whose own
    absence is not the author's doing."""
    try:
        return call()
    except ModuleNotFoundError as error:
        if missing and error.name and f"{missing}.".startswith(f"{error.name}."):
            raise
        raise UserCodeFailed(_report(target, error)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  a module may raise anything, and may exit
        raise UserCodeFailed(_report(target, error)) from None


def _report(target: str, error: BaseException) -> str:
    report = traceback.TracebackException.from_exception(error)
    _keep_user_frames(report)
    return f"{''.join(report.format()).rstrip()}\nError: app: {target!a} raised while it was loaded"


def _keep_user_frames(report: traceback.TracebackException) -> None:
    kept = [
        frame
        for frame in report.stack
        if not frame.filename.startswith((_OUR_FOLDER, "<frozen importlib"))
        and "/importlib/" not in frame.filename
    ]
    report.stack = traceback.StackSummary.from_list(kept)
    for earlier in (report.__cause__, report.__context__):
        if earlier is not None:
            _keep_user_frames(earlier)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
