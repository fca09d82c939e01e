"""Run me: `python examples/manage.py`. A program looks at jobs, steers them, and reads its audit log.

Nothing has to run beside it: orders take effect in the database, and workers find them there.
"""

from __future__ import annotations

from mainspring import Mainspring
from mainspring.admin.jobs import EnqueueRequest
from mainspring.model.audit_log import AuditFilter
from mainspring.model.job import JobFilter

app = Mainspring()  # the file mainspring.db, unless MAINSPRING_DATABASE_URL says otherwise


@app.task(queue="mail")
def remind(customer: str) -> None:
    print(f"dear {customer}")


def main() -> None:
    """As an operator would, in the name of ada."""
    admin = app.admin("ada")

    # Jobs, by the name of their task.
    wanted = [EnqueueRequest(task="remind", args=(name,), delay="1h") for name in ("acme", "initech")]
    (first, second), _ = admin.jobs.enqueue(wanted)
    for done in admin.jobs.cancel([first.id]) + admin.jobs.retry([second.id]):
        print(f"job: {done.effect}, was {done.was}")
    for job in admin.jobs.find(JobFilter(queue="mail", limit=1)):
        print(f"newest in mail: {job.task}, {job.state}")

    # A schedule that no code declares.
    if "reminders" not in [each.name for each in admin.schedules.all()]:
        admin.schedules.create("reminders", task="remind", args=["acme"], cron="0 9 * * 1", note="asked for")
    changed = admin.schedules.edit("reminders", cron="0 8 * * 1", tz="Europe/Berlin", note="earlier")
    print(f"schedule: {changed.effect}")
    admin.schedules.pause("reminders", note="holidays")

    # A queue from which nothing is claimed while the mail server moves.
    admin.queues.pause("mail", note="the mail server moves")
    admin.queues.resume("mail")

    for action in reversed(admin.audit_log.find(AuditFilter(actor="ada", limit=8))):
        print(f"{action.entry.actor}: {action.entry.action} {action.entry.object}, {action.outcome}")


if __name__ == "__main__":
    with app:
        main()
