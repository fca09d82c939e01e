"""An environment for each peer: ours and theirs need not agree about anything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).parent / "peers"
FOLDER = Path(__file__).parents[1] / ".bench"

_NEEDS = re.compile(r"# python >= 3\.(\d+)")
_NEWEST = 14


class Missing(Exception):
    """This machine lacks what the peer needs; the message says what."""


def environment(name: str) -> Path:
    """The interpreter of `.bench/NAME`, beside exactly what `peers/NAME.txt` or `peers/NAME.json` pins; made
    when it is not there yet."""
    pins = _pins(name)
    home = FOLDER / name
    stamp = home / "installed.txt"
    if not stamp.exists() or stamp.read_text() != pins.read_text():
        (_node if pins.suffix == ".json" else _python)(home, pins)
        stamp.write_text(pins.read_text())
    if pins.suffix == ".txt":
        return home / "bin" / "python"
    # A peer that needs a newer Node than the machine's pins one.
    own = home / "node_modules" / ".bin" / "node"
    return own if own.exists() else _program("node")


def program(name: str) -> list[str]:
    """How the peer's program is started."""
    interpreter = environment(name)
    script = PEERS / f"{name}_jobs{'.mjs' if interpreter.name == 'node' else '.py'}"
    if script.suffix == ".mjs":
        # A module looks for packages beside itself, and nowhere else.
        for each in (script, PEERS / "commands.mjs", PEERS / "mark.mjs"):
            shutil.copy(each, FOLDER / name)
        script = FOLDER / name / script.name
    return [str(interpreter), str(script)]


def version(name: str) -> str:
    """Of the package the environment is named after, without the digits by which two of it differ."""
    pins = _pins(name)
    if pins.suffix == ".json":
        found: dict[str, str] = json.loads(pins.read_text())["dependencies"]
        return found[name]
    lines = pins.read_text().lower().splitlines()
    package = name.rstrip("0123456789")
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))


def _pins(name: str) -> Path:
    node = PEERS / f"{name}.json"
    return node if node.exists() else PEERS / f"{name}.txt"


def _python(home: Path, pins: Path) -> None:
    subprocess.run([_interpreter(pins), "-m", "venv", "--clear", str(home)], check=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(pins)]
    subprocess.run([str(home / "bin" / "python"), *install], check=True)


def _node(home: Path, pins: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(pins, home / "package.json")
    # No lock file: its addresses are those of whoever wrote it. The pins are exact.
    options = ["--no-package-lock", "--no-audit", "--no-fund", "--silent"]
    subprocess.run([str(_program("npm")), "install", *options], cwd=home, check=True)


def _interpreter(pins: Path) -> str:
    """Ours, unless the pins begin with `# python >= 3.N` and ours is older: then the oldest that will do."""
    needs = _NEEDS.match(pins.read_text())
    if needs is None or sys.version_info >= (3, int(needs[1])):
        return sys.executable
    names = [f"python3.{minor}" for minor in range(int(needs[1]), _NEWEST + 1)]
    beside = [str(found) for name in names for found in Path(sys.base_prefix).parent.glob(f"*/bin/{name}")]
    for found in filter(None, [*map(shutil.which, names), *beside]):
        if subprocess.run([found, "-c", "import venv"], capture_output=True).returncode == 0:
            return found
    raise Missing(f"{pins.stem} needs one of {', '.join(names)}")


def _program(name: str) -> Path:
    if found := shutil.which(name):
        return Path(found)
    raise Missing(f"there is no {name} on the PATH")
