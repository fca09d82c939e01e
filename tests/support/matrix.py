"""Who may use which route: the table that is kept, and the one that the routes make.

`python -m tests.support.matrix --write` rewrites it, for somebody to look at what changed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fastapi.routing import APIRoute

from mainspring import Mainspring
from mainspring.web.app import WebApp, create_app
from mainspring.web.auth.policy import guard_of

TABLE = Path(__file__).parents[1] / "data" / "access_matrix.json"
PUBLIC = "public"


def guarded(web: WebApp) -> dict[str, dict[str, str | None]]:
    """Role, noun and act of every method of every path."""
    found = {}
    for route in web.routes:
        if isinstance(route, APIRoute):
            guard = guard_of(route)
            assert guard is not None
            role = PUBLIC if guard.role is None else guard.role.value
            for method in route.methods:
                found[f"{method} {route.path}"] = {"role": role, "noun": guard.noun, "action": guard.action}
    return dict(sorted(found.items(), key=lambda each: each[0].split()[::-1]))


def kept() -> dict[str, dict[str, str | None]]:
    return dict(json.loads(TABLE.read_text(encoding="utf-8")))


if __name__ == "__main__" and "--write" in sys.argv:
    lines = (
        f" {json.dumps(place)}: {json.dumps(guard)}"
        for place, guard in guarded(create_app(Mainspring("sqlite://:memory:"), identify=[])).items()
    )
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
