"""Routes and classes, checked row by row against the wiring: ports are what they stand for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.proof.port_use import FABRIC, Ports, PortUse
from compilers.proof.unsound import Unsound, repeated, where
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route
from inventory.problems import Finding


def prefixes(build: Build) -> Iterator[Unsound]:
    """Prefix numbers that are not ascending or not there, and aggregates of other switches."""
    routes, hierarchy = build.tables.routes, build.topology.hierarchy
    order = len(routes.egress)
    whole = _aggregates(build)
    prefix = routes.prefix
    # Sets with fewer rows than others end in rows of the first number that is no prefix.
    wrong = (prefix < 0) | (prefix > order + whole)
    wrong[:, 1:] |= (prefix[:, 1:] <= prefix[:, :-1]) & (prefix[:, 1:] < order + whole)
    yield from where(
        wrong,
        lambda g, r: Finding(
            ("routes", "prefix", g, r),
            f"ascending numbers below {order + whole}",
            f"{prefix[g, r]}",
        ),
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
    """Rows by a class that is not there, for nobody, or delivering what is for others."""
    routes, port = build.tables.routes, build.tables.classes.port
    egress, order = routes.egress, len(routes.egress)
    here, nothing = local(egress), no_route(egress)
    prefix = np.repeat(routes.prefix, order // len(routes.prefix), axis=0)
    own = prefix == np.arange(order)[:, None]
    known = np.concatenate((port > 0, np.zeros((order, 1), np.bool_)), axis=1)
    number = np.minimum(egress, port.shape[1]).astype(np.intp)
    by_class = known[np.arange(order)[:, None], number]
    hosts = np.append(build.topology.endpoints, True)[np.minimum(prefix, order)]
    hosts &= prefix < order + _aggregates(build)
    delivered = own & hosts
    wrong = np.where(delivered, egress != here, (egress != nothing) & ~(by_class & hosts))

    def finding(s: int, r: int) -> Finding:
        required = "a class that is there, or no route"
        if delivered[s, r]:
            required = "delivery here"
        elif not hosts[s, r]:
            required = "no route to a node without hosts"
        value = int(egress[s, r])
        given = {here: "delivery here", nothing: "no route"}.get(value, f"class {value}")
        return Finding((build.wiring.names[s], "route to", int(prefix[s, r])), required, given)

    yield from where(wrong, finding)


def classes(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Ports of classes, of alternates and of repair that are no fabric ports, or stand twice."""
    c = build.tables.classes
    minimal = c.port
    yield from _ports(build, use, "class", minimal[..., None], (minimal != 0)[..., None])
    for word in ("alternate", "protection", "bounce"):
        ports = getattr(c, word)
        ranked = np.cumsum(ports[..., ::-1] != 0, axis=2)[..., ::-1] > 0
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
    """bool[S, C, n]: ports that are the class's own, or stand before in the same row."""
    again: NDArray[np.bool_] = (ports == minimal[..., None]) & (ports != 0)
    ranked = np.sort(ports, axis=2)
    twice = ((ranked[..., 1:] == ranked[..., :-1]) & (ranked[..., 1:] != 0)).any(axis=2)
    for s, k in np.argwhere(twice).tolist():
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
