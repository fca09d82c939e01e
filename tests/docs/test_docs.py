"""What the pages say is run: examples, the README's program and commands, the tables, the links."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from mainspring import Context, Mainspring, Retry
from mainspring.cli.main import cli as command_line
from mainspring.config import load
from mainspring.tasks.task import Task
from mainspring.testing import Harness
from tests.support.management import awaited, orders

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def mainspring(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mainspring", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def billing(tmp_path: Path) -> Path:
    """The README's program, as a reader would save it."""
    (tmp_path / "billing.py").write_text(BLOCKS[0], encoding="utf-8")
    return tmp_path


def test_the_readme_program_is_short() -> None:
    code = [line for line in BLOCKS[0].splitlines() if line.strip()]

    assert len(code) <= 12


def test_the_readme_commands_work_on_the_readme_program(billing: Path) -> None:
    lines = [
        line.strip().split("  ")[0] for line in README.splitlines() if line.startswith("    mainspring ")
    ]
    enqueue, listing = (line.split()[1:] for line in lines if "dev" not in line)

    enqueued = mainspring(*enqueue, cwd=billing)
    burst = mainspring("worker", "billing.py", "--burst", cwd=billing)
    listed = mainspring(*listing, cwd=billing)

    assert [enqueued.returncode, burst.returncode, listed.returncode] == [0, 0, 0]
    assert "invoice for acme, 2026-10" in burst.stderr
    assert re.search(r"^1 +succeeded +invoice ", listed.stdout, re.MULTILINE)


def test_the_readme_calls_work_on_the_readme_program(billing: Path) -> None:
    calls = (
        BLOCKS[1]
        .replace("job = await", "job = asyncio.run(")
        .replace('aenqueue("acme", month="2026-10")', 'aenqueue("acme", month="2026-10"))')
    )
    script = f"import asyncio\nfrom billing import app, invoice\ntenants = ['a', 'b']\n{calls}\napp.close()\n"

    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=billing, capture_output=True, text=True, timeout=60, check=False
    )
    listed = mainspring("jobs", "list", "-A", "billing.py", cwd=billing)

    assert ran.returncode == 0, ran.stderr
    assert len(re.findall(r"^\d+ +(?:ready|delayed) +invoice ", listed.stdout, re.MULTILINE)) == 5


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("api", "1 add default\n"),
        ("limits", ""),
        ("durable", "parcel-7, approved by ann\n"),
        ("management", "delayed\ncancelled delayed\n"),
    ],
)
def test_a_page_runs_from_top_to_bottom(tmp_path: Path, name: str, says: str) -> None:
    page = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    (tmp_path / "shop.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "utf-8")

    ran = subprocess.run(
        [sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(says)


def test_the_testing_page_is_a_project_whose_tests_pass(tmp_path: Path) -> None:
    page = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"```python\n# ([\w.]+)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(text, "utf-8")
    plugins = ["-p", "pytest_mainspring", "-p", "no:cacheprovider"]

    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", ".", *plugins, "-W", "error"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    by_hand = subprocess.run(
        [sys.executable, "by_hand.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert tested.returncode == 0, tested.stdout
    assert "7 passed" in tested.stdout
    assert (by_hand.stdout, by_hand.stderr) == ("['ada']\n", "")
    assert page.count("```python\n") == 4


def test_the_management_page_names_every_method_of_every_noun() -> None:
    page = (ROOT / "docs/management.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    given = {(noun, name.removeprefix("a")) for noun, name in orders()} | {("database", "migrate")}

    assert set(rows) == set(awaited())
    for noun, names in awaited().items():
        methods = {name.removeprefix("a") for name in names} | ({"rules"} if noun == "alerts" else set())
        assert set(re.findall(r"`(\w+)`", rows[noun])) == methods
        assert set(re.findall(r"\*\*`(\w+)`\*\*", rows[noun])) == {name for of, name in given if of == noun}


def test_the_testing_page_names_everything_a_harness_has() -> None:
    page = (ROOT / "docs/testing.md").read_text(encoding="utf-8")

    for name in [name for name in vars(Harness) if not name.startswith("_")]:
        assert re.search(rf"\b{name}\b", page), f"docs/testing.md does not mention {name}"


def test_the_interface_page_names_every_option_and_every_field() -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    options = [*inspect.signature(Mainspring.schedule).parameters][3:]
    wanted = [*options, *inspect.signature(Task.using).parameters, *inspect.signature(Retry).parameters]

    for name in {*wanted, *Context.__struct_fields__} - {"self", "stop", "on_progress", "effects"}:
        assert re.search(rf"\b{name}\b", page), f"docs/api.md does not mention {name}"


@pytest.mark.parametrize(
    ("file", "name"),
    sorted(set(re.findall(r"`((?:\w+/)*\w+\.py)(?:: ([\w.]+))?`", (ROOT / "CONTRIBUTING.md").read_text()))),
)
def test_the_files_and_functions_that_contributors_are_sent_to_exist(file: str, name: str) -> None:
    found = [each for each in (ROOT / "src/mainspring" / file, ROOT / file) if each.is_file()]
    found = found or [each for room in ("src", "tests", "benchmarks") for each in (ROOT / room).rglob(file)]

    assert found, f"CONTRIBUTING names {file}"
    text = found[0].read_text(encoding="utf-8")
    for part in name.split(".") if name else ():
        assert re.search(rf"(class|def) {part}\b", text), f"{file} has no {part}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked to, made as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_configuration_page_lists_every_setting_with_its_default() -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    _, origins = load(flags={}, environ={}, cwd=ROOT / "docs")

    listed = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", page, re.MULTILINE)

    assert sorted(listed) == sorted(origins)


def test_the_commands_page_lists_every_command() -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")

    for words in commands(command_line):
        assert " ".join(words) in page, f"docs/commands.md does not mention `{' '.join(words)}`"


def commands(group: click.Command, *above: str) -> list[tuple[str, ...]]:
    if not isinstance(group, click.Group):
        return [above]
    return [words for name, command in group.commands.items() for words in commands(command, *above, name)]


@pytest.mark.parametrize(
    "test", sorted(set(re.findall(r"`(tests/[\w/.]+)`", (ROOT / "docs/guarantees.md").read_text())))
)
def test_every_test_the_guarantees_name_exists(test: str) -> None:
    assert (ROOT / test).exists()
