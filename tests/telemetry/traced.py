"""What a child process runs: at the top of a module, where it is found."""

from __future__ import annotations

from opentelemetry import trace

from mainspring.tasks.context import Context


def in_a_child(ctx: Context) -> dict[str, str | None]:
    current = trace.get_current_span().get_span_context()
    return {"trace": f"{current.trace_id:032x}", "span": f"{current.span_id:016x}", "ctx": ctx.trace_id}
