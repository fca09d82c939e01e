"""Handlers in child processes: whatever becomes of them costs one run, never the worker.

A child is two processes. The *reaper* (child_reaper.py) is small and runs no user code: it adopts the
processes that the other one leaves behind, and ends all of them. The *runner* (runner.py) has loaded the app
and runs one job at a time. The worker's side is child.py (one child) and pool.py (all of them);
child_channel.py contains what they say to each other.
"""
