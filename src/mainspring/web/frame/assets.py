"""Our own style sheets and scripts, and those that are kept with us."""

from __future__ import annotations

from os import PathLike, stat_result

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope


class Assets(StaticFiles):
    """Files that a browser keeps, and asks about each time: after an upgrade it must not use the old ones."""

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        answer = super().file_response(full_path, stat_result, scope, status_code)
        answer.headers["Cache-Control"] = "no-cache"
        return answer
