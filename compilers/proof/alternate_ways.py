"""All ways that packets of hosts may take without failures, followed to their ends."""

from __future__ import annotations

from dataclasses import dataclass

from compilers.proof.forwarding import Forwarding, Numbers
from compilers.proof.packet_states import Progress, reachable
from compilers.tables.build import Build


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
) -> Ways:
    """Walk every way that packets of hosts may take, without failures.

    Args:
        build: its tables and wiring are walked.
        progress: called with destinations done and all.
        destinations: int64[D], ascending: the pairs towards these alone; None: all with hosts.
        forwarding: of this build, where it is made already.
    """
    ways = strays = longest = 0
    f = forwarding or Forwarding.of(build)
    for reached in reachable(build, f, progress, destinations):
        ways += reached.ways
        strays += len(reached.strays)
        longest = max(longest, int(reached.depth.max()))
    return Ways(ways, strays, longest)
