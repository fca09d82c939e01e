"""Each name of a module is defined once: the linter sees a function written twice, but no constant."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "mainspring"


def defined(text: str) -> Iterator[str]:
    """The names that the top level of a module defines, each as often as it does."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not any(ast.unparse(each).endswith("overload") for each in node.decorator_list):
                yield node.name
        elif isinstance(node, ast.Assign):
            targets = [each for target in node.targets for each in ast.walk(target)]
            yield from (each.id for each in targets if isinstance(each, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def test_a_constant_that_is_written_twice_is_found():
    assert Counter(defined("A, B = 1, 2\nA = 3\n"))["A"] == 2


def test_every_name_of_a_module_is_defined_once():
    twice = {
        path.relative_to(PACKAGE).as_posix(): names
        for path in sorted(PACKAGE.rglob("*.py"))
        if (
            names := [
                n for n, times in Counter(defined(path.read_text(encoding="utf-8"))).items() if times > 1
            ]
        )
    }

    assert twice == {}
