"""What the page says besides figures."""

from __future__ import annotations

HEAD = """\
# Benchmarks

This page is made by `make bench-report` of the files in `benchmarks/results/`, which hold every repeat; a
test makes it again and compares.

| | |
|---|---|
| `make bench` | ours on both stores, a quarter of an hour |
| `make bench-peers` | ours and the others in one run, almost two hours; `ARGS='--peers rq'` for a part |
| `make bench-growth` | how costs grow: backlog, history, schedules, workers, half an hour under load |
| `make bench-workflows`, `make bench-pages` | [workflows](workflows.md), [pages over full tables](reads.md) |
| `make bench-report` | this page |

They need nothing but Python, and Node for two of the others: servers are started empty for each measurement
and thrown away, and each of the others has an environment of its own with every package pinned
(`benchmarks/peers/`). Machines differ and are noisy: compare figures of one run, and look at how fast
the machine was and what others took of it meanwhile, which the files tell of each.
"""

RUNS = """\
Several whole runs, in this order. A figure is the median of all repeats of all runs, with the least and the
most; how far ahead we are is told of each run.
"""

METHOD = """\
### How

Every job appends a mark of 29 bytes to a file, ours too, and every figure beside others comes from these
marks: no system is asked how fast it was. Each number has to be there exactly once; what is lost or ran
twice is told. Ours is installed with all its extras, uvloop among them; what the others have is said with
their settings. Who is within a factor of two of ours at storing one by one, draining, holding a rate or
picking up is measured three times, in turn with ours, and the median counts.

- **Drain**: jobs are there before workers start; the rate is that of the marks between the first and the
  last. A slow one is cut short, and its rate is that of what it did. Two worker processes do not start in
  the same moment: the files also have the rate since both were at work. PostgreSQL has been analyzed
  before workers start, for everybody.
- **Fixed rate**: a client stores jobs at 250, 1,000, 4,000, 15,000 and 25,000 a second for eight seconds
  each, until a backlog is not worked off within a second. A wait begins when the job was *to be* sent: a
  slow client shows, and a late timer of the client's own does not.
- **Pickup**: a job every 50 ms to a worker with nothing else to do, from the moment at which it was to be
  sent to its handler's first line.
- **Schedules**: all due on the same minute, with one scheduler and one worker, from the minute to the
  handler; what has not fired 30 s later is missed. Two schedulers: everybody at the same time, over two
  minutes.
- **kill -9**: of a worker, with everything below it, that holds jobs of one second, while another one
  starts at once; with default settings, until the last of them has ended, watched for a minute, everybody
  at the same time.
- **Memory** is resident, and pages that processes share are counted for each.
- **Neighbours** of a shared machine slow it down without being seen in it. Where a run says `patience`,
  storing one by one, drains, rates and pickups begin when a fixed loop takes about as long as at its best
  in that run, or after so many seconds, whoever's they are. How long the loop took before and after each
  stands in the files.
"""

NOTHING = "Not measured yet.\n"

OURS = """\
The third run of that day, and the harness was changed between them, so read the goals with these. The first
had 200 jobs in hand instead of 1,000, most measures once, and missed four: 0.807 of a bare insert, 1.18 s
for two schedulers, 3,363 ms for 10,000 schedules, and 27,174/s on SQLite with `synchronous=NORMAL`. The
second stopped at a burst that ended early; before that it had 15 to 167 ms as p99 of pickups, 1.63 to 1.89
s and 1.26 to 1.43 s for the bursts, and 2,200 to 2,655 ms. Then two defects were mended, statistics of the
planner that a TRUNCATE leaves were no longer kept, and the machine was quieter; how much of the bursts' gain
is which was not measured. The goal on SQLite needs the 1,000: with 200 in hand the same drain had 31,500 to
35,500/s.
"""

GROWTH = """\
`make bench-growth`, on PostgreSQL with fsync: what one thing costs while another one grows. A cost is level
when the last point is about the first. In a soak, jobs come and go at one rate for half an hour: `claim` is a
claim that brings a hundred jobs, `look` one that brings fewer.

Our goal for a claim of a hundred is 2 ms. At a backlog of a million it takes 1.2. In the soaks, where jobs
are stored and run meanwhile, it takes as long after half an hour as at the start, 2.1 ms, and under a held
snapshot 2.2: a tenth more than we want, while others took some 30 % of the cores.
"""

BENDS = {
    "workers": """\
All of them share two cores, which alone makes each worker's own work dearer. And each claim begins where its
own worker's last one ended, so it steps over what the others have claimed since: about two rows a job for
each worker that drains the same priority level, 3 with one, 16 with eight, 64 with thirty-two (one count by
`pg_stat_user_tables.idx_tup_fetch`). It costs the server's processor, and only while all of them drain one
priority level at full speed; queues of their own, or fewer and larger workers, avoid it.""",
}
"""Why a cost grows, where it does."""
