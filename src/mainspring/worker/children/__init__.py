"""Handlers in child processes: whatever becomes of them costs one run, never the worker.

A child is two processes. The *reaper* (reaper.py) is small and runs no user code: it adopts whatever
the other one leaves behind and ends all of it. The *runner* (runner.py) has loaded the app and runs one
job at a time. The worker's side is child.py (one child), pool.py (all of them) and frames.py (what is
said between them).
"""
