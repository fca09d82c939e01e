"""The same workloads for others. Each file is a program in an environment of its own, without ours.

    python FILE prepare              # what must be there before workers start
    python FILE worker NUMBER        # a worker process, until it is ended
    python FILE ready COUNT          # returns when so many workers have answered
    python FILE drive WORKLOAD SIZE  # prints {"ended": seconds, "seen": seconds}

`PEER_URL` says where the server is.
"""

from __future__ import annotations
