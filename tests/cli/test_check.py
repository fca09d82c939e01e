"""`check` as a real command, on both stores."""

from __future__ import annotations

from tests.cli.conftest import SHOP, Shell

AFTER = SHOP.replace("name: str =", "whom: str =").replace("hello {name}", "hello {whom}").replace(
    "def add(", "def plus("
)  # fmt: skip


def test_a_deploy_that_would_strand_jobs_is_told_before(shell: Shell) -> None:
    ada = shell("enqueue", "-A", "shop", "greet", "name=Ada", "--json").data["id"]
    shell("enqueue", "-A", "shop", "greet")
    sum_ = shell("enqueue", "-A", "shop", "add", "a=1", "b=x", "--json").data["id"]
    shell("schedules", "apply", "-A", "shop")
    shell.write("after.py", AFTER)

    now = shell("check", "-A", "shop.py", "--json")
    told = shell("check", "-A", "after.py", "--json")
    table = shell("check", "-A", "after.py")

    assert now.code == 1
    assert now.data == {
        "checked": {"jobs": 3, "dead": 0, "schedules": 0},
        "problems": [
            {
                "task": "add",
                "trouble": "value",
                "problem": "b: expected int, got str",
                "jobs": 1,
                "dead": 0,
                "schedules": 0,
                "examples": [f"job {sum_}"],
            }
        ],
    }
    assert told.code == 1
    assert [(each["task"], each["problem"]) for each in told.data["problems"]] == [
        ("add", "no task of that name is declared"),
        ("greet", "expected only parameters it has (whom), got 'name'"),
    ]
    assert table.code == 1
    assert f"1      greet  expected only parameters it has (whom), got 'name'  job {ada}\n" in table.out
    assert table.err.startswith("looked at 3 jobs and 0 schedules of ")


def test_nothing_to_tell_exits_zero(shell: Shell) -> None:
    shell("enqueue", "-A", "shop", "greet", "name=Ada")

    answer = shell("check", "-A", "shop.py")

    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("looked at 1 jobs and 0 schedules of ")
    assert answer.err.endswith(": all fit\n")


def test_dead_letters_count_when_asked(shell: Shell) -> None:
    shell("enqueue", "-A", "shop", "broken")
    shell("worker", "shop", "--burst")
    shell.write("after.py", SHOP.replace("def broken()", "def broken(reason: str)"))

    assert shell("check", "-A", "after.py").code == 0
    told = shell("check", "-A", "after.py", "--dead", "--json")
    assert told.code == 1
    assert told.data["problems"][0]["dead"] == 1


def test_it_makes_no_database(bare_shell: Shell) -> None:
    answer = bare_shell("check", "-A", "shop.py")

    assert answer.code == 3
    assert not (bare_shell.folder / "mainspring.db").exists()
