"""Who is measured beside us: names of programs, what servers each runs on, and in which language it is."""

from __future__ import annotations

from dataclasses import dataclass

LABELS = {"postgresql": "PostgreSQL", "redis": "Valkey", "sqlite": "SQLite"}


@dataclass(frozen=True)
class Peer:
    """A program in `peers/`, and an environment of that name."""

    name: str
    servers: tuple[str, ...]
    language: str = "Python"


@dataclass(frozen=True)
class System:
    """A peer on one kind of server: one row of every table."""

    peer: Peer
    server: str

    @property
    def key(self) -> str:
        return f"{self.peer.name}-{self.server}"

    @property
    def ours(self) -> bool:
        return self.peer is OURS


OURS = Peer("mainspring", ("postgresql", "sqlite"))

PEERS = (
    OURS,
    Peer("graphile-worker", ("postgresql",), "Node"),
    Peer("pg-boss", ("postgresql",), "Node"),
    Peer("pgqueuer", ("postgresql",)),
    Peer("procrastinate", ("postgresql",)),
    Peer("oban", ("postgresql",)),
    Peer("dbos", ("postgresql",)),
    Peer("apscheduler3", ("postgresql",)),
    Peer("apscheduler4", ("postgresql",)),
    Peer("saq", ("postgresql", "redis")),
    Peer("celery", ("redis",)),
    Peer("dramatiq", ("redis",)),
    Peer("rq", ("redis",)),
    Peer("huey", ("redis",)),
    Peer("taskiq", ("redis",)),
)

SYSTEMS = tuple(System(peer, server) for peer in PEERS for server in peer.servers)


def chosen(names: list[str]) -> list[System]:
    """Those of a name, or of a name and a server; all when none is named. Ours always come along: what stands
    in one table was measured in one run."""
    wanted = set(names)
    unknown = wanted - {each.peer.name for each in SYSTEMS} - {each.key for each in SYSTEMS}
    if unknown:
        raise ValueError(f"nobody is called {', '.join(sorted(unknown))}")
    return [each for each in SYSTEMS if each.ours or not wanted or {each.peer.name, each.key} & wanted]
