"""What several test modules of this folder and of others use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from compilers.forwarding.walks import HostPathFigures
from compilers.pipeline import compile_fabric
from compilers.proof.failures.failure_walks import (
    FailureReport,
    walk,
    walk_failures,
)
from compilers.proof.local.local_proof import LocalProof, local_proof, provable
from compilers.proof.local.proof_results import ProofResults, proof_results
from compilers.proof.walks.minimal_walk import walk_minimal
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from tests.compilers.routed import routed

EVERY = 1 << 40


def protected(family: str, **parameters: int | str) -> Build:
    return routed(family, spread=True, protect="node", **parameters)


def with_classes(build: Build, **arrays: np.ndarray) -> Build:
    classes = replace(build.tables.classes, **arrays)
    return replace(build, tables=replace(build.tables, classes=classes))


def without_bounce(build: Build) -> Build:
    return with_classes(build, bounce=np.zeros_like(build.tables.classes.bounce))


def without_protection(build: Build) -> Build:
    return with_classes(build, protection=np.zeros_like(build.tables.classes.protection))


def without_alternates(build: Build) -> Build:
    weight = build.tables.classes.weight.copy()
    weight[..., 1:] = 0
    return with_classes(build, weight=weight)


def only_alternates(build: Build) -> Build:
    """The minimal port has no weight where there is another."""
    weight = build.tables.classes.weight.copy()
    weight[..., 0] = ~weight[..., 1:].any(axis=2)
    return with_classes(build, weight=weight)


def one_alternate(build: Build) -> Build:
    """Packets from hosts may take the first alternate only."""
    weight = np.zeros_like(build.tables.classes.weight)
    weight[..., 1] = build.tables.classes.alternate[..., 0] > 0
    weight[..., 0] = weight[..., 1] == 0
    return with_classes(build, weight=weight)


def over_the_apex(build: Build) -> Build:
    """What repairs the classes behind a neighbour is what repairs the neighbour itself."""
    protection = build.tables.classes.protection.copy()
    links = protection.shape[1] // 2
    protection[:, :links] = protection[:, links:]
    return with_classes(build, protection=protection, bounce=protection)


def shuffled(build: Build) -> Build:
    random = np.random.default_rng(1)
    protection = random.permuted(build.tables.classes.protection, axis=1)
    return with_classes(build, protection=protection)


def as_it_is(build: Build) -> Build:
    return build


SPOILS: list[Callable[[Build], Build]] = [
    as_it_is,
    without_bounce,
    without_protection,
    without_alternates,
    only_alternates,
    one_alternate,
    over_the_apex,
    shuffled,
]


KINDS = ("link", "node")


IQ: dict[str, int | str] = {"supernode": "inductive-quad", "degree": 3}


DAMAGE = {
    "node_types": {"leaf": {"ports": [{"name": "a{}", "count": 8}]}},
    "nodes": [{"name": f"n{v}", "type": "leaf"} for v in range(31)],
    "dead_links": [{"a": "n0", "b": "n1"}, {"a": "n3", "b": "n6"}],
}


FABRICS: dict[str, tuple[str, dict[str, int | str]]] = {
    "odd": ("polarfly", {"q": 3}),
    "even": ("polarfly", {"q": 4}),
    "seven": ("polarfly", {"q": 7}),
    "eight": ("polarfly", {"q": 8}),
    "iq": ("polarstar", {"q": 2, **IQ}),
    "paley": ("polarstar", {"q": 3, "supernode": "paley", "degree": 2}),
    "pn": ("pn", {"q": 2}),
    "oft": ("oft", {"q": 2}),
}


BOUNCED, MARKED = "bounced", "marked"
"""A fabric of q = 3 with bounced paths, and one with marked packets."""


@cache
def damaged(spread: bool) -> Build:
    balance = "compact-valiant" if spread else "minimal"
    keys = {
        "name": "damaged",
        "topology": {"family": "polarfly", "q": 5},
        "routing": {"balance": balance, "protect": "node"},
        "hosts_per_node": 1,
        "inventory": DAMAGE,
    }
    return compile_fabric(load_fabric(keys))


def fabric(name: str, spread: bool) -> Build:
    if name == "damaged":
        return damaged(spread)
    if name == BOUNCED:
        return routed(q=3, spread=True, bounces=True, protect="node")
    if name == MARKED:
        return routed(q=3, spread=True, marks=True, protect="node")
    family, parameters = FABRICS[name]
    return routed(family, spread=spread, protect="node", **parameters)


def assert_alike(build: Build, note: str = "") -> tuple[ProofResults, LocalProof]:
    """The proof and the walks that it asks for find what walking everything does."""
    assert provable(build)
    alternates, walked = walk(build, ()).alternates, [walk_failures(build, kind) for kind in KINDS]
    proof = local_proof(build, KINDS)
    found = proof_results(build, proof, KINDS, seed=1)
    assert_found(found, alternates, walked, note)
    assert_minimal(build, proof, note)
    return found, proof


def assert_minimal(build: Build, proof: LocalProof, note: str) -> None:
    """Where it proves delivery, so does a walk, over as many links."""
    proved = proof.destinations[proof.delivers]
    if len(proved):
        walked = walk_minimal(build, None, proved)
        assert walked.minimal == walked.pairs, note
        counts = proof.hop_counts[proof.delivers].sum(axis=0)
        assert tuple(np.trim_zeros(counts, "b").tolist()) == walked.hop_counts, note


def assert_found(
    found: ProofResults, alternates: HostPathFigures, walked: list[FailureReport], note: str
) -> None:
    assert not found.is_contradicted, note
    assert replace(found.alternates, max_hops=alternates.max_hops, exact=True) == alternates, note
    assert found.alternates.max_hops >= alternates.max_hops, note
    assert found.alternates.max_hops == alternates.max_hops or not found.alternates.exact, note
    for report, right in zip(found.failures, walked, strict=True):
        if report.exact:
            assert report == right, note
        lengths = {"exact": True, "max_hops": right.max_hops, "stretch": right.stretch}
        assert replace(report, **lengths) == right, note  # type: ignore[arg-type]
        assert report.max_hops >= right.max_hops, note
        assert report.stretch >= right.stretch, note


def mutants(build: Build, count: int, seed: int) -> Iterator[tuple[str, Build]]:
    """The build with one row, minimal port, order of repair or alternate changed at one switch."""
    random = np.random.default_rng(seed)
    routes, classes = build.tables.routes, build.tables.classes
    used = np.argwhere(classes.port > 0)
    words = ["protection", "egress", "protection", "port", "bounce"]
    words += ["alternate"] if classes.alternate.shape[2] else []
    for number in range(count):
        s, k = random.choice(used).tolist()
        port = int(random.choice(build.wiring.port[s][build.wiring.far[s] >= 0]))
        word = words[number % len(words)]
        note = f"{word} of class {k} of switch {s}: {port}"
        if word == "egress":
            egress = routes.egress.copy()
            egress[s, random.integers(egress.shape[1])] = k
            tables = replace(build.tables, routes=replace(routes, egress=egress))
        else:
            changed = getattr(classes, word).copy()
            changed[s, k] = port if word == "port" else [port, *[0] * (changed.shape[2] - 1)]
            tables = replace(build.tables, classes=replace(classes, **{word: changed}))
        yield note, replace(build, tables=tables)


def harmful(build: Build, count: int, seed: int) -> int:
    """How many mutants lose packets; on all the proof agrees with the walk."""
    lossy = 0
    for note, mutant in mutants(build, count, seed):
        found, _ = assert_alike(mutant, note)
        lossy += bool(found.alternates.strays or any(r.lost_pairs for r in found.failures))
    return lossy


def swapped_ports(build: Build, random: np.random.Generator) -> Build:
    """Two ports of a switch for each other, in all its classes or in some arrays alone."""
    s, classes = int(random.integers(len(build.wiring.far))), build.tables.classes
    one, other = random.choice(build.wiring.port[s][build.wiring.far[s] >= 0], 2, replace=False)
    changed = {}
    for word in ("port", "alternate", "protection", "bounce"):
        if random.random() < 0.7:
            changed[word] = (ports := getattr(classes, word).copy())
            ports[s] = np.select([ports[s] == one, ports[s] == other], [other, one], ports[s])
    return with_classes(build, **changed)


def swapped_cables(build: Build, random: np.random.Generator) -> Build:
    """Two cables of a switch in each other's ports."""
    s, w = int(random.integers(len(build.wiring.far))), build.wiring
    one, other = random.choice(np.flatnonzero(w.far[s] >= 0), 2, replace=False)
    port, far_port = w.port.copy(), w.far_port.copy()
    port[s, [one, other]] = w.port[s, [other, one]]
    for link in (one, other):
        far_port[w.far[s, link], w.far[w.far[s, link]] == s] = port[s, link]
    return replace(build, wiring=replace(w, port=port, far_port=far_port))


def within(build: Build, path: str, **changes: Any) -> Build:
    """The build with fields changed of what stands at a path such as `tables.classes`."""
    head, _, rest = path.partition(".")
    if not head:
        return replace(build, **changes)
    inner = getattr(build, head)
    changed = within(inner, rest, **changes) if rest else replace(inner, **changes)
    return replace(build, **{head: changed})
