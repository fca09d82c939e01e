"""A report for the time since the one before it, whatever was missed: `mainspring dev examples/report.py`

Stop it for some minutes and start it again: the next report covers them, and says how many it stands for.
`mainspring why schedule report` says the same.
"""

from __future__ import annotations

from mainspring import Context, Mainspring

app = Mainspring()  # the file mainspring.db, unless MAINSPRING_DATABASE_URL says otherwise


@app.task
def report(ctx: Context) -> str:
    """What was sold in the period of this slot."""
    period = ctx.period
    if period is None:
        return "nobody knows of which time: this job was put in by hand"
    missed = f", for {period.missed} missed reports too" if period.missed else ""
    said = f"sold from {period.start} to {period.end}{missed}"
    ctx.log.info("%s", said)
    return said


app.schedule("report", report, cron="* * * * *")
