"""A virtual environment for each peer: ours and theirs need not agree about anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).parent / "peers"
FOLDER = Path(__file__).parents[2] / ".bench"


def environment(name: str) -> Path:
    """The Python of `.bench/NAME`, with exactly what `peers/NAME.txt` pins; made when it is not there yet."""
    pins = PEERS / f"{name}.txt"
    home = FOLDER / name
    python, stamp = home / "bin" / "python", home / "installed.txt"
    if stamp.exists() and stamp.read_text() == pins.read_text():
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(pins)]
    subprocess.run([str(python), *install], check=True)
    stamp.write_text(pins.read_text())
    return python


def version(name: str) -> str:
    """Of the package the environment is named after."""
    pins = (PEERS / f"{name}.txt").read_text().split()
    return next(pin.partition("==")[2] for pin in pins if pin.startswith(f"{name}=="))
