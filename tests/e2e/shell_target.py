"""What workers of the shell tests run."""

from __future__ import annotations

from mainspring import Mainspring, Retry

app = Mainspring()

# The program, a child, and a child that made itself a daemon: each says who it is, then sleeps.
SCRIPT = """
echo $$ >> {folder}/pids
sh -c 'echo $$ >> {folder}/pids; exec sleep 100000' &
setsid sh -c 'echo $$ >> {folder}/pids; exec sleep 100000' &
sleep 100000
"""
app.shell(
    "nap", ["sh", "-c", 'cd "$1" && ' + SCRIPT.format(folder=".").strip(), "nap", "{folder}"], grace="100ms"
)
app.shell("once", ["sh", "-c", 'echo done > "$0/done"', "{folder}"], retry=Retry(attempts=1))
