"""Questions and orders about one store, by noun; what an order changes is in the audit log.

The command line, the HTTP API, the dashboard and a program's own code come in through `Admin` (admin.py).
"""
