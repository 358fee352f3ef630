"""Routes and classes, checked row by row against the wiring: ports mean what they say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import FABRIC, Ports, PortUse, has, packed_alternates
from compilers.proof.soundness.unsound import Unsound, repeated, where
from compilers.tables.build import Build
from compilers.tables.computed_array import blocks_of
from compilers.tables.intermediate_form import local, no_route
from compilers.tables.star_rows import StarPrefixes
from inventory.problems import Finding


def prefixes(build: Build) -> Iterator[Unsound]:
    """Prefix numbers that are not ascending or not there, and aggregates of other switches."""
    routes, hierarchy = build.tables.routes, build.topology.hierarchy
    order = len(routes.egress)
    whole = _aggregates(build)
    prefix = routes.prefix
    if isinstance(prefix, StarPrefixes) and (np.diff(prefix.packed.around, axis=1) <= 0).any():
        yield Unsound.one("routes.prefix", "supernodes around each that ascend", "others")
        return
    # Sets with fewer rows than others end in rows of the first number that is no prefix.
    for first, rows in blocks_of(prefix):
        wrong = (rows < 0) | (rows > order + whole)
        wrong[:, 1:] |= (rows[:, 1:] <= rows[:, :-1]) & (rows[:, 1:] < order + whole)
        yield from where(
            wrong,
            lambda g, r: Finding(
                ("routes", "prefix", g, r),
                f"ascending numbers below {order + whole}",
                f"{prefix[g, r]}",
            ),
            first,
        )
    own = order + np.arange(order) // hierarchy
    covered = (routes.aggregate == own) & (hierarchy > 1)
    yield from where(
        (routes.aggregate != -1) & ~covered,
        lambda s: Finding(
            (build.wiring.names[s], "aggregate"),
            f"{own[s]}, or -1" if hierarchy > 1 else "-1",
            f"{routes.aggregate[s]}",
        ),
    )
    if len(prefix) == 0 or order % len(prefix):
        yield Unsound.one("routes.prefix", f"sets that divide {order}", f"{len(prefix)}")


def _aggregates(build: Build) -> int:
    hierarchy = build.topology.hierarchy
    return build.tables.switches // hierarchy if hierarchy > 1 else 0


def rows(build: Build) -> Iterator[Unsound]:
    """Rows by a class that does not exist, for no switch, or delivering what is for others."""
    routes, port = build.tables.routes, build.tables.classes.port
    egress, order = routes.egress, len(routes.egress)
    here, nothing = local(egress), no_route(egress)
    allowed = np.zeros((order, here + 1), np.bool_)
    classes = min(port.shape[1], nothing)
    allowed[:, :classes] = port[:, :classes] > 0
    allowed[:, nothing] = True
    endpoints = np.append(build.topology.endpoints, np.ones(_aggregates(build) + 1, np.bool_))
    endpoints[-1] = False
    same = order // len(routes.prefix)
    for s, row in enumerate(egress):
        if s % same == 0:
            prefix = routes.prefix[s // same]
            hosts = endpoints[np.minimum(prefix, len(endpoints) - 1)]
        wrong = ~allowed[s].take(row)
        wrong |= ~hosts & (row != nothing)
        own = hosts & (prefix == s)
        wrong[own] = row[own] != here
        if wrong.any():
            known = build.wiring.names[s], prefix.tolist(), own, hosts
            yield from where(wrong, partial(_wrong_row, *known, row.tolist(), here, nothing))


def _wrong_row(
    name: str,
    prefix: list[int],
    own: NDArray[np.bool_],
    hosts: NDArray[np.bool_],
    egress: list[int],
    here: int,
    nothing: int,
    r: int,
) -> Finding:
    """What is wrong with row r of a switch."""
    required = "a class that is there, or no route"
    if own[r]:
        required = "delivery here"
    elif not hosts[r]:
        required = "no route to a node without hosts"
    given = {here: "delivery here", nothing: "no route"}.get(egress[r], f"class {egress[r]}")
    return Finding((name, "route to", prefix[r]), required, given)


def classes(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Ports of classes, of alternates and of repair that are no fabric ports, or occur twice."""
    c = build.tables.classes
    minimal = c.port
    yield from _ports(build, use, "class", minimal[..., None], (minimal != 0)[..., None])
    spread = packed_alternates(build, use)
    known = spread and not has(spread.links, use.links(minimal)[..., None]).any()
    for word in ("protection", "bounce") if known else ("alternate", "protection", "bounce"):
        ports = np.asarray(getattr(c, word))
        ranked = np.logical_or.accumulate(ports[..., ::-1] != 0, axis=2)[..., ::-1]
        yield from _ports(build, use, word, ports, ranked)
        again = _again(minimal, ports)
        yield from where(
            again,
            lambda s, k, n, word=word, ports=ports: Finding(
                (build.wiring.names[s], word, k, n),
                "a port that the class does not use before",
                use.words(s, int(ports[s, k, n])),
            ),
        )


def _again(minimal: NDArray[np.int32], ports: Ports) -> NDArray[np.bool_]:
    """bool[S, C, n]: ports that are the class's own, or occur earlier in the same row."""
    again: NDArray[np.bool_] = (ports == minimal[..., None]) & (ports != 0)
    before, after = ports[..., :-1], ports[..., 1:]
    # Where ports ascend none occurs twice, and no row has to be sorted.
    mixed = np.argwhere(((after != 0) & ((after <= before) | (before == 0))).any(axis=2))
    ranked = np.sort(ports[tuple(mixed.T)], axis=1)
    twice = ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] != 0)).any(axis=1)
    for s, k in mixed[twice].tolist():
        row = ports[s, k]
        again[s, k] |= repeated(row) & (row != 0)
    return again


def _ports(build: Build, use: PortUse, word: str, ports: Ports, there: Ports) -> Iterator[Unsound]:
    """Ports that are `there`, bool of their shape, and no fabric ports with a cable."""
    yield from where(
        there & (use.at(ports) != FABRIC),
        lambda s, k, n: Finding(
            (build.wiring.names[s], word, k, *([n] if ports.shape[2] > 1 else [])),
            "a fabric port with a cable",
            use.words(s, int(ports[s, k, n])),
        ),
    )
