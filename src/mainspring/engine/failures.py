"""Whatever a handler raised, as a value that any store can keep."""

from __future__ import annotations

import traceback
from types import TracebackType

from mainspring.model.failure import Failure

MESSAGE_LIMIT = 4_000
TRACEBACK_LIMIT = 16_000


def failure_of(error: BaseException, *, frames_to_hide: int = 0) -> Failure:
    """Type, message and traceback, cut to size. Our own first frames say nothing to a user."""
    return Failure(
        type=_clean(_type_name(error), 200),
        message=_clean(_message(error), MESSAGE_LIMIT),
        traceback=_clean(_trace(error, frames_to_hide), TRACEBACK_LIMIT),
    )


def timeout_failure(seconds: float) -> Failure:
    """For a handler that did not end in its time."""
    return Failure(
        type="TimeoutError", message=f"the handler did not end within its timeout of {seconds:g} s"
    )


def expired_failure() -> Failure:
    """For a handler that was at work when its job's deadline passed."""
    return Failure(type="Expired", message="the handler had not ended when the job's deadline passed")


def _type_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as second:  # noqa: BLE001 - str() of a user's exception is user code
        return f"(its message could not be had: {type(second).__name__})"


def _trace(error: BaseException, frames_to_hide: int) -> str:
    frames: TracebackType | None = error.__traceback__
    for _ in range(frames_to_hide):
        frames = frames.tb_next if frames is not None and frames.tb_next is not None else frames
    try:
        return "".join(traceback.format_exception(type(error), error, frames))
    except Exception as second:  # noqa: BLE001 - formatting runs the user's __str__ and __repr__
        return f"(its traceback could not be had: {type(second).__name__})"


def _clean(text: str, limit: int) -> str:
    """No NUL and no lone surrogate, which no database takes; the end is what matters when cut."""
    text = text.encode("utf-8", "replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return text if len(text) <= limit else f"…{text[-limit:]}"
