"""Questions and orders about one store, with one module for each noun. The audit log has every order.

The command line, the HTTP API, the dashboard and users' programs call `Admin` (admin.py).
"""
