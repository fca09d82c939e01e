"""Who may import whom: in plain Python, so that it runs wherever pytest runs.

The layers are read from [tool.importlinter], which checks the same and more; this test says it without
another tool, counts imports inside functions too, and cannot be switched off by a comment.
"""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mainspring"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
#: The package's front, and `python -m`: nobody imports them from inside, so they have no layer.
DOORS = ("mainspring", "mainspring.__main__")
#: Only these may name a concrete store; `testing` is for users' tests and sits on top of everything.
MAY_NAME_STORES = ("mainspring.store.opener", "mainspring.app")
#: Contracts that need not name every module: the first has a test of its own, the store has free helpers.
OPEN = {"mainspring", "mainspring.store"}
CONCRETE = ("mainspring.store.sqlite", "mainspring.store.postgres")


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def imports(name: str) -> frozenset[str]:
    """Every module of ours that this one imports, wherever in its text."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    deepest = {target for target in found if target in MODULES}
    # `from package import module` is an import of the module; the package comes along with it.
    return frozenset(t for t in deepest if not any(other.startswith(f"{t}.") for other in deepest)) - {name}


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def levels(contract: dict, container: str = "") -> dict[str, int]:
    """Package -> level, lowest first; several may share one, and then may not import each other."""
    prefix = f"{container}." if container else ""
    rows = [[f"{prefix}{part.strip()}" for part in row.split("|")] for row in contract["layers"]]
    return {package: level for level, row in enumerate(reversed(rows)) for package in row}


LAYERS = {}
for _contract in CONTRACTS:
    if _contract["type"] == "layers":
        for _container in _contract.get("containers", [""]):
            LAYERS[_container or "mainspring"] = levels(_contract, _container)


FORBIDDEN = {each["name"]: each for each in CONTRACTS if each["type"] == "forbidden"}


def layer(name: str, known: dict[str, int]) -> str | None:
    return next((package for package in known if is_within(name, package)), None)


@pytest.mark.parametrize("container", LAYERS)
def test_imports_point_down(container):
    known, upward = LAYERS[container], []
    for name in MODULES:
        own = layer(name, known)
        for target in imports(name) if own else ():
            other = layer(target, known)
            if other and other != own and known[other] >= known[own]:
                upward.append(f"{name} -> {target}")

    assert upward == []


def test_every_module_has_a_layer():
    known = LAYERS["mainspring"]

    assert [name for name in MODULES if name not in DOORS and not layer(name, known)] == []


@pytest.mark.parametrize("room", [room for room in LAYERS if room not in ("mainspring", "mainspring.store")])
def test_every_module_of_a_room_with_layers_has_one(room):
    inside = {name for name in MODULES if is_within(name, room) and name != room}

    assert {name for name in inside if layer(name, LAYERS[room]) is None} == set()


@pytest.mark.parametrize(
    "room", ["mainspring.worker", "mainspring.scheduler", "mainspring.alerts", "mainspring.client"]
)
def test_rooms_that_meet_in_a_process_do_not_know_each_other(room):
    others = {"mainspring.worker", "mainspring.scheduler", "mainspring.alerts", "mainspring.client"} - {room}
    known = {target for name in MODULES if is_within(name, room) for target in imports(name)}

    assert {target for target in known for other in others if is_within(target, other)} == set()


def test_no_module_imports_the_front_door():
    assert [name for name in MODULES if imports(name) & set(DOORS)] == []


@pytest.mark.parametrize("container", sorted(LAYERS.keys() - OPEN))
def test_every_module_of_a_room_has_a_layer_in_it(container):
    inside = [name for name in MODULES if name.startswith(f"{container}.")]
    left_out = [name for name in inside if not layer(name, LAYERS[container])]

    assert not left_out, f"in no layer of {container}: {left_out}"


@pytest.mark.parametrize("container", LAYERS)
def test_every_layer_has_a_module(container):
    empty = {package for package in LAYERS[container] if package not in MODULES}

    assert not empty, f"layers without a module: {sorted(empty)}"


def test_only_the_composition_root_names_a_concrete_store():
    named = set()
    for name in MODULES.keys() - set(MAY_NAME_STORES):
        own = next((package for package in CONCRETE if is_within(name, package)), "")
        stores = {target for target in imports(name) for package in CONCRETE if is_within(target, package)}
        named |= {f"{name} -> {target}" for target in stores if not (own and is_within(target, own))}

    assert named == set()


@pytest.mark.parametrize("contract", FORBIDDEN)
def test_what_may_not_be_imported_is_not(contract):
    sources, forbidden = FORBIDDEN[contract]["source_modules"], FORBIDDEN[contract]["forbidden_modules"]
    named = {
        f"{name} -> {target}"
        for name in MODULES
        if any(is_within(name, source) for source in sources)
        for target in imports(name)
        if any(is_within(target, package) for package in forbidden)
    }

    assert named == set()


def test_there_is_no_import_cycle():
    graph = {name: imports(name) for name in MODULES}

    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        pytest.fail(f"modules import one another: {' -> '.join(cycle.args[1])}")
