"""The limits of a step: which gates its jobs must pass, and whose value is the key."""

from __future__ import annotations

from inspect import Parameter

from mainspring.declare.drafts import Draft
from mainspring.declare.limits import Limit
from mainspring.errors import InvalidWorkflow
from mainspring.model.workflow import Kind, Limiting

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_OPEN = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def limitings(draft: Draft) -> tuple[Limiting, ...]:
    """The task's limits and its queue's, for what the step is called with."""
    return tuple(_limiting(each, draft) for each in draft.task.limits_in(draft.task.queue))


def _limiting(limit: Limit, draft: Draft) -> Limiting:
    parameters = draft.task.signature.parameters
    parameter = next((each for each in parameters if each.name == limit.by), None)
    if limit.by is None or parameter is None:
        # A queue may be shared by a parameter that this task does not have.
        return Limiting(gate=limit.gate({}))
    if parameter.kind in _OPEN:
        raise InvalidWorkflow(draft.field, limit.by, f"a single parameter for limit {limit.name} to go by")
    placed = [each.name for each in parameters if each.kind in _BY_POSITION]
    place = placed.index(limit.by) if limit.by in placed else None
    count = len(draft.args) + (draft.kind is Kind.MAP)
    if limit.by in draft.kwargs or (place is not None and place < count):
        return Limiting(gate=limit.gate({}), by=limit.by, place=place)
    # Nobody gives it, so its default is the key of every job.
    try:
        return Limiting(gate=limit.gate({limit.by: parameter.default}))
    except TypeError:
        raise InvalidWorkflow(
            draft.field, limit.by, f"a default that is JSON, for limit {limit.name} goes by it"
        ) from None
