"""Alternates that are packed, as those of large fabrics, are judged as if they were not."""

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.proof.local.local_proof import local_proof
from compilers.proof.soundness.build_soundness import broken_claims, unsound_values
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.packed_alternates import AlternateLinks, AlternatePorts, AlternateWeights
from tests.compilers.proof.makers import within


def packed(build: Build) -> Build:
    """The build with its alternates as sets of links."""
    c, port = build.tables.classes, build.wiring.port
    links = (c.alternate[..., None] == port[:, None, None]) & (port > 0)[:, None, None]
    weight = c.weight[..., :2].copy()
    weight[weight[..., 1] == 0, 1] = 1
    spread = AlternateLinks(np.packbits(links.any(axis=2), axis=2), port.astype(np.uint16), weight)
    return with_spread(build, spread)


def with_spread(
    build: Build, spread: AlternateLinks, weights: AlternateLinks | None = None
) -> Build:
    ports, weight = (
        AlternatePorts(spread),
        AlternateWeights(weights or spread, AlternatePorts(spread).shape[2]),
    )
    return within(build, "tables.classes", alternate=ports, weight=weight)


def unpacked(build: Build) -> Build:
    c = build.tables.classes
    arrays = {"alternate": np.asarray(c.alternate), "weight": np.asarray(c.weight)}
    return within(build, "tables.classes", **arrays)


def fabric(share: str) -> Build:
    routing = {"balance": "compact-valiant", "protect": "node", "minimal_share": share}
    topology = {"family": "polarfly", "q": 3}
    return compile_fabric(load_fabric({"name": "lab", "topology": topology, "routing": routing}))


def judged(build: Build) -> list[object]:
    """All that is said of a build's classes."""
    proof = local_proof(build, ("link", "node"))
    found = [
        unsound_values(build),
        *(each.tolist() for each in (proof.choices, proof.longest, proof.unproved_destinations)),
    ]
    if unsound_values(build).count:
        return found
    return [*found, broken_claims(build), broken_claims(build, constructed=True)]


@pytest.mark.parametrize("share", ["equal-cost", "0.5"])
def test_packed_alternates_are_judged_as_ports(share: str) -> None:
    build = packed(fabric(share))
    assert not unsound_values(build).count
    assert not broken_claims(build).count
    assert judged(build) == judged(unpacked(build))


def test_wrong_bits_ports_and_weights_are_found_as_in_ports() -> None:
    build = packed(fabric("0.5"))
    spread = build.tables.classes.alternate.packed
    links = spread.port.shape[1]
    random = np.random.default_rng(4)
    found = 0
    for _ in range(6):
        copy = AlternateLinks(
            *(getattr(spread, word).copy() for word in ("links", "port", "weight"))
        )
        s, c, k = (int(random.integers(size)) for size in (*copy.links.shape[:2], links))
        match random.integers(4):
            case 0:
                copy.links[s, c, k >> 3] ^= 128 >> (k & 7)
            case 1:
                copy.port[s, k] = random.integers(links + 2)
            case 2:
                copy.weight[s, c, random.integers(2)] = random.integers(9)
            case 3:
                copy.port[s] = random.permutation(copy.port[s])
        # Ports and weights are two arrays of a build folder, and can be wrong one at a time.
        mutant = with_spread(build, copy, spread if random.integers(2) else None)
        assert judged(mutant) == judged(unpacked(mutant))
        found += judged(mutant) != judged(build)
    assert found >= 3
