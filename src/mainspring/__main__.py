"""`python -m mainspring`."""

from __future__ import annotations

from mainspring.cli.main import main

if __name__ == "__main__":
    main()
