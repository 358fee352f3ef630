"""A build checked against itself, before and after its pairs are walked.

Walks tell where packets get to; they cannot tell that two hosts have one address, that a port of
repair is a host's, or that a weight is not the policy's. Every value is looked at for what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compilers.proof import identities, policy_soundness, table_soundness, wiring_soundness
from compilers.proof.detours import Detours
from compilers.proof.port_use import PortUse
from compilers.proof.unsound import Unsound
from compilers.tables.build import Build


def walkable(build: Build) -> Unsound:
    """What is wrong with the cables and prefixes, without which no packet can be followed."""
    for checks in (_types, _cables):
        if (found := Unsound.of(checks(build))).count:
            return found
    return Unsound()


def _types(build: Build) -> Iterator[Unsound]:
    yield from wiring_soundness.node_types(build)
    yield from wiring_soundness.graph(build)
    yield from table_soundness.prefixes(build)


def _cables(build: Build) -> Iterator[Unsound]:
    use = PortUse.of(build.wiring)
    yield from wiring_soundness.ports(build, use)
    yield from wiring_soundness.cables(build, use)


def unsound(build: Build) -> Unsound:
    """All else that is wrong with a build whose packets can be followed."""
    return Unsound.of(_values(build))


def _values(build: Build) -> Iterator[Unsound]:
    use = PortUse.of(build.wiring)
    yield from wiring_soundness.family(build)
    yield from table_soundness.rows(build)
    yield from table_soundness.classes(build, use)
    yield from identities.names(build)
    yield from identities.datapath_ids(build)
    yield from identities.mac_addresses(build)
    yield from identities.blocks(build)
    yield from policy_soundness.words(build)


def promise(build: Build, find: Callable[[Build], Detours] = Detours.of) -> Unsound:
    """Classes that are not what the policy promises, in a sound build that delivers every pair.

    Args:
        build: see above.
        find: the detours of such a build.
    """
    return Unsound.of(_promised(build, find))


def _promised(build: Build, find: Callable[[Build], Detours]) -> Iterator[Unsound]:
    yield from policy_soundness.weights(build)
    yield from policy_soundness.detours(build, PortUse.of(build.wiring), find)
