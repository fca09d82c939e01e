"""The app of the benchmark of workflows, for its workers and its client."""

from __future__ import annotations

from mainspring import Mainspring

LENGTH = 10

app = Mainspring()


@app.task
async def same(number: int) -> int:
    """As little as a step can do; as a plain job, too."""
    return number


@app.task
async def numbers(n: int) -> list[int]:
    return list(range(n))


@app.task
async def total(parts: list[int]) -> int:
    return sum(parts)


@app.task
async def link(number: int) -> int:
    return number + 1


wide = app.workflow("wide")
wide.returns(wide.step(total, wide.map(same, over=wide.step(numbers, n=wide.param("n")))))

chain = app.workflow("chain")
_last = chain.step(link, chain.param("n"))
for _ in range(LENGTH - 1):
    _last = chain.step(link, _last)
chain.returns(_last)
