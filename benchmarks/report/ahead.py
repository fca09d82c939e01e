"""Ours by the best of the others, measure by measure, run by run."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.goals import POSTGRESQL
from benchmarks.report.sections import COMPARED, Column
from benchmarks.result import Result, joined
from benchmarks.table import number

WORDS = """\
How many times better ours on PostgreSQL is than the best of the others in the same run, for each run; below
1, the other one is ahead. Those on Valkey sync their log once a second, and a machine that goes down takes
what came after it along: nobody waits for a disk there, and where jobs come one at a time, waiting for the
disk is most of what we do. Where the machine's own speed changed meanwhile, take a difference of a fifth or
less for a draw.
"""
WHY = """\
We want to be twice as good as the best in Python, and are not where everybody waits for the same things:

- **One by one.** In turn with ours (`make bench`), a bare insert of one row and its commit took 300 µs, and
  ours 377: 0.80 of its rate, where our own goal is 0.85. The server has six more indexes to look at. And the
  client's processor, by a script, takes 127 µs instead of 52 at best: 25 of them for the hint to workers, 26
  to check and encode the job and to make its handle, 24 for sessions, timeouts, and what must be known
  should the answer be lost. Such code has always just waited for a disk when it runs, and takes a multiple
  of the 10 µs that it takes in a loop. Twice the 1,785 to 1,890/s that PgQueuer had in these runs is more
  than the 3,328/s of the bare insert.
- **Pickup, and waits at low rates.** A job's way to its handler is a row of processes that wake each other:
  the client, its session, the client again, the session that tells the listeners, a listener's, the worker,
  the session of its claim, the worker again. Everybody on PostgreSQL has most of these, and a machine
  with nothing else to do wakes slowly: a claim of one job takes 0.8 ms on it, and 0.4 at 1,000 jobs a second.

We want to be ahead of those in Node. Beside Graphile Worker, which comes closest, we are with one worker
process, and with two it is a draw:

- **Drains.** Of the two whole runs, the first (commit 0a2b787) took the machine as it came, and we were ahead
  or behind by chance; the second began each drain in a lull. Shorter runs between them, in turn, medians:
  200,000 jobs with one process 60,000 to its 47,600 and 45,600 to 42,700; with two processes 67,700 to
  67,700, 59,200 to 67,200, 70,900 to 71,600 and 62,400 to 56,000. Two later ones on a quiet machine (commit
  290b15e; 20,000 with one process and with two, 200,000 with one and with two): 1.27, 1.24, 1.27 and 1.11
  times as fast, and a quarter of an hour after it 1.33, 1.02, 1.16 and 1.06. The second of these is the part
  *Quiet* below: its time limit ended it among the schedules, so its file was named, and its list of
  workloads cut to those that are whole, by hand. A finished job of theirs is a row deleted; one of ours is a
  row of history as well. And a crowded machine is harder on CPython: with two workers, eight drains each,
  ours took 14.6 µs of the processor a job at best and 19.5 at worst, its 13.3 and 16.4.
- **The slowest of a hundred waits.** In the first run ours were 9 to 161 ms at 250 to 15,000 jobs a second,
  in the second, in lulls, 8 to 26, and ahead at every rate. By a script at 1,000 a second, in four turns,
  ours took 7.5 to 17 and Graphile Worker's 10 to 17, and with a server that waits for no disk 5 to 9 and 8
  to 9: a part of it is the disk, which is shared as well. On the quiet machine ours were shorter at every
  rate.
- **The slowest of a hundred pickups** is the first job of a client that has just started: it asks for the
  numbers of its names and for a stock of ids before it stores the job, 11 ms in all. Of 600 pickups by a
  script none but that one took more than 6 ms, and all but six of them at most 2.4. On a crowded machine
  there is also whatever holds it up: 4.6, 14.8 and 400 ms in the first run and 21.4, 89.8 and 4.9 in the
  second, Graphile Worker's 6.3, 19.9 and 76.1, and 7.6, 5.7 and 5.0.
- **Half of the jobs at 1,000 a second** waited 2.2 ms to its 1.5 on the quiet machine: a job may wait for the
  rest between two hints to workers, 2 ms.
"""
OTHERS = (("Python", "PostgreSQL"), ("Node", "PostgreSQL"), ("Python", "Valkey"))


def ahead(runs: Sequence[Result]) -> str:
    """A table with a line for each measure that others have, too."""
    lines, all_runs = [], joined(runs)
    for column in COMPARED:
        mine = all_runs.value(POSTGRESQL, column.measure)
        cells = [_cell(runs, column, language, server) for language, server in OTHERS]
        if mine and any(cells):
            told = " | ".join(cell or "–" for cell in cells)
            lines.append(f"| {column.measure} | {number(mine)} | {told} |")
    if not lines:
        return ""
    heads = [f"{language}, {server}" for language, server in OTHERS]
    head = f"| measure | ours | {' | '.join(heads)} |\n{'|---' * (len(heads) + 2)}|"
    return "\n".join(["### Ahead, and where not\n", WORDS, head, *lines, "", WHY])


def _cell(runs: Sequence[Result], column: Column, language: str, server: str) -> str:
    found = [each for run in runs if (each := _ratio(run, column, run.others(language, server))) is not None]
    ratios = ", ".join(_told(ratio) for ratio, _ in found)
    return f"{ratios} {', '.join(dict.fromkeys(name for _, name in found))}" if found else ""


def _ratio(run: Result, column: Column, others: Sequence[str]) -> tuple[float, str] | None:
    mine = run.value(POSTGRESQL, column.measure)
    values = {key: value for key in others if (value := run.value(key, column.measure))}
    if not mine or not values:
        return None
    best = (max if column.more else min)(values, key=lambda key: values[key])
    return mine / values[best] if column.more else values[best] / mine, run.label(best)


def _told(ratio: float) -> str:
    if ratio < 1:
        return f"**{ratio:.2g}×**"
    return f"{ratio:.2g}×" if ratio < 10 else f"{ratio:,.0f}×"
