"""All ways that packets of hosts may take without failures, followed to their ends."""

from __future__ import annotations

from dataclasses import dataclass

from compilers.proof.walks.forwarding import Forwarding, Numbers
from compilers.proof.walks.packet_states import BlockWalk, Progress, Reached
from compilers.tables.build import Build
from compilers.workers.shards import THIS_PROCESS, Workers


@dataclass(frozen=True, slots=True)
class Ways:
    """All ways that packets of hosts may take, over all pairs of switches.

    ways: pairs times ports with a weight. strays: the places on the way from which a packet is not
    delivered. max_hops: the links of the longest way.
    """

    ways: int
    strays: int
    max_hops: int


def walk_ways(
    build: Build,
    progress: Progress | None = None,
    destinations: Numbers | None = None,
    forwarding: Forwarding | None = None,
    workers: Workers = THIS_PROCESS,
) -> Ways:
    """Walk every way that packets of hosts may take, without failures.

    Args:
        build: its tables and wiring are walked.
        progress: called with destinations done and all.
        destinations: int64[D], ascending: the pairs towards these alone; None: all with hosts.
        forwarding: of this build, where it is made already.
        workers: that share the destinations.
    """
    found = BlockWalk(_counted, forwarding).over(build, workers, progress, destinations)
    ways, strays, hops = zip((0, 0, 0), *found, strict=True)
    return Ways(sum(ways), sum(strays), max(hops))


def _counted(_: Build, reached: Reached) -> tuple[int, int, int]:
    """The counts of `Ways`, towards some destinations."""
    return reached.ways, len(reached.strays), int(reached.depth.max())
