"""Run me: `mainspring dev examples/hello.py`, then `mainspring enqueue -A examples/hello.py add a=1 b=2`."""

from __future__ import annotations

from mainspring import Context, Mainspring

app = Mainspring()  # the file mainspring.db, unless MAINSPRING_DATABASE_URL says otherwise


@app.task
async def hello(ctx: Context, name: str) -> None:
    ctx.log.info("Hello, %s!", name)


@app.task
def add(a: int, b: int) -> int:
    return a + b


app.schedule("hello", hello, every="5s", kwargs={"name": "world"})
