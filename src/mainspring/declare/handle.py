"""What `enqueue` gives back."""

from __future__ import annotations

from mainspring.model.value import Value


class JobHandle(Value, frozen=True, kw_only=True):
    """Names one job in the store; it holds no connection and can be kept or sent anywhere."""

    id: int
    task: str
    queue: str
    created: bool = True
    """False when a job with the same key stands for it."""

    def __str__(self) -> str:
        return f"job {self.id} ({self.task} in {self.queue})"
