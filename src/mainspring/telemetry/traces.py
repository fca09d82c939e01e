"""Spans around enqueue and run, by the OpenTelemetry API (extra `[otel]`), where they are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import InvalidConfig
from mainspring.model.job import Claim, Failure, NewJob, read_trace, written_trace
from mainspring.model.run import Settlement, Verdict
from mainspring.version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

_WELL = frozenset({Verdict.SUCCEEDED, Verdict.STARTED, Verdict.SNOOZED, Verdict.RELEASED, Verdict.DISCARDED})


class Tracer:
    """Makes spans of the provider that the program has set. Without one they cost little and go nowhere, but
    a context that came in is still carried."""

    def __init__(self) -> None:
        try:
            from opentelemetry import context, trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] != "opentelemetry":
                raise
            raise InvalidConfig(
                "traces.enabled", "no opentelemetry", "the extra: pip install 'mainspring[otel]'"
            ) from None
        self._trace, self._context = trace, context
        self._carrier = TraceContextTextMapPropagator()
        self._tracer = trace.get_tracer("mainspring", __version__)

    @contextmanager
    def enqueue(self, jobs: Sequence[NewJob]) -> Iterator[list[NewJob]]:
        """Inside it a span; the same jobs, each with its context. A job that has one already keeps it."""
        tasks = {job.task for job in jobs}
        name = f"enqueue {tasks.pop()}" if len(tasks) == 1 else "enqueue"
        about: dict[str, Any] = {"messaging.system": "mainspring", "messaging.operation.type": "send"}
        if len(jobs) == 1:
            about |= {"messaging.destination.name": jobs[0].queue, "mainspring.task": jobs[0].task}
        else:
            about["messaging.batch.message_count"] = len(jobs)
        with self._tracer.start_as_current_span(
            name, kind=self._trace.SpanKind.PRODUCER, attributes=about
        ) as span:
            trace = self._written(self._trace.set_span_in_context(span))
            yield [
                job if trace is None or job.trace is not None else msgspec.structs.replace(job, trace=trace)
                for job in jobs
            ]

    def run(self, claim: Claim) -> RunSpan:
        """Begin the span of a run and make it current, for the rest of this context."""
        parent = None if claim.trace is None else self._carrier.extract(read_trace(claim.trace))
        about: dict[str, Any] = {
            "messaging.system": "mainspring",
            "messaging.operation.type": "process",
            "messaging.destination.name": claim.queue,
            "messaging.message.id": str(claim.job_id),
            "mainspring.task": claim.task,
            "mainspring.attempt": claim.attempt,
        }
        if claim.schedule_id is not None and claim.slot_at is not None:
            about |= {
                "mainspring.schedule_id": claim.schedule_id,
                "mainspring.slot": claim.slot_at.isoformat(),
            }
        if claim.workflow_id is not None:
            about["mainspring.workflow_id"] = claim.workflow_id
        sent = None if parent is None else self._trace.get_current_span(parent).get_span_context()
        span = self._tracer.start_span(
            f"run {claim.task}",
            # None would be what is current here: whatever woke the worker, which is not the job's doing.
            context=parent if parent is not None else self._context.Context(),
            kind=self._trace.SpanKind.CONSUMER,
            attributes=about,
            links=[] if sent is None or not sent.is_valid else [self._trace.Link(sent)],
        )
        current = self._trace.set_span_in_context(span)
        self._context.attach(current)
        return RunSpan(span, self._written(current) or claim.trace)

    def enter(self, trace: str) -> None:
        """What this context does from here on belongs to the trace: a child goes on for its worker."""
        self._context.attach(self._carrier.extract(read_trace(trace)))

    def _written(self, context: Context) -> str | None:
        headers: dict[str, str] = {}
        self._carrier.inject(headers, context)
        return written_trace(headers.get("traceparent"), headers.get("tracestate"))


@cache
def the_tracer() -> Tracer:
    """One for the whole process; raises InvalidConfig where the extra is missing."""
    return Tracer()


def traced(tracer: Tracer | None, jobs: list[NewJob]) -> AbstractContextManager[list[NewJob]]:
    """The jobs with the trace of the code that enqueues them, if traces are kept."""
    return nullcontext(jobs) if tracer is None or not jobs else tracer.enqueue(jobs)


class RunSpan:
    """The span of one run."""

    __slots__ = ("_span", "trace")

    def __init__(self, span: Span, trace: str | None) -> None:
        self._span = span
        self.trace = trace
        """What others go on with."""

    def end(self, settlement: Settlement | None) -> None:
        """It is over; None when its claim was lost and nothing is settled."""
        from opentelemetry.trace import Status, StatusCode

        verdict = "lost" if settlement is None else settlement.verdict.value
        failure = None if settlement is None else settlement.failure
        self._span.set_attribute("mainspring.verdict", verdict)
        if failure is not None:
            self._span.add_event("exception", _exception(failure))
        if settlement is None or settlement.verdict not in _WELL:
            self._span.set_status(Status(StatusCode.ERROR, verdict if failure is None else failure.type))
            self._span.set_attribute("error.type", "lost" if failure is None else failure.type)
        self._span.end()


def _exception(failure: Failure) -> dict[str, str]:
    told = {"exception.type": failure.type, "exception.message": failure.message}
    return told | ({"exception.stacktrace": failure.traceback} if failure.traceback else {})
