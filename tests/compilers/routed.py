"""Builds with any family and routing policy, made without files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from ipaddress import IPv4Network

import numpy as np

from compilers.routing.alternate_weights import weight_pairs
from compilers.routing.choose import choices
from compilers.routing.minimal_routes import minimal_tables
from compilers.spec.address_blocks import ipv4_block_length
from compilers.spec.forwarding import Forwarding, Protect
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.tables.intermediate_form import (
    Classes,
    Tables,
    empty_egress,
    local,
    no_route,
)
from compilers.topology.families import family_named
from compilers.wiring.addressing import Addressing
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.mac_addresses import default_host_macs
from compilers.wiring.wire import wire
from extensions.scale.star_choices import tables_with_choices


@cache
def routed(
    family: str = "polarfly",
    *,
    spread: bool = False,
    protect: Protect = "none",
    hosts: int = 1,
    bounces: bool = False,
    marks: bool = False,
    **parameters: int | str,
) -> Build:
    """A build of a family; `spread` asks for alternates, `protect` for repair in the switch,
    `bounces`, with `spread`, for bounced paths between adjacent switches; `marks`, with `spread`,
    for marked packets.
    """
    found = family_named(family)
    assert found is not None, family
    topology = found.build(parameters)
    wiring = wire(topology, generated_inventory(topology, hosts), hosts)
    forwarding = Forwarding(
        alternates="all" if spread else "none", bounces=bounces, marks=marks, protect=protect
    )
    words = {"minimal_share": "equal-cost", "disjoint": "none"} if spread else {}
    return Build(
        name=family,
        balance="spread" if marks else "compact-valiant" if spread else "minimal",
        forwarding=forwarding,
        inputs={},
        policy=words | ({"adjacent": "bounce"} if bounces else {}),
        topology=topology,
        wiring=wiring,
        addressing=Addressing(
            ipv4=IPv4Network("10.0.0.0/8"),
            ipv4_length=ipv4_block_length(hosts),
            ipv6=None,
            gateway_mac=0x025046000001,
            host_mac=default_host_macs(topology.graph.order, hosts),
            hierarchy=topology.hierarchy,
        ),
        tables=choices(minimal_tables(topology, wiring), topology, wiring, forwarding),
    )


def with_alternates(
    minimal_share: Fraction | None = None, disjoint: bool = True, protect: Protect = "none"
) -> Forwarding:
    """What tables with all alternates mean."""
    return Forwarding(
        alternates="all",
        disjoint=disjoint,
        weights="equal-cost" if minimal_share is None else "minimal-share",
        minimal_share=minimal_share,
        protect=protect,
    )


@cache
def by_class(q: int, supernode: str, degree: int, spread: bool = True) -> Build:
    """A PolarStar with constructed classes, as one too large for a search has; repairs nodes."""
    build = routed("polarstar", q=q, supernode=supernode, degree=degree)
    forwarding = Forwarding(alternates="all" if spread else "none", protect="node")
    return replace(
        build,
        balance="compact-valiant" if spread else "minimal",
        forwarding=forwarding,
        policy={"minimal_share": "equal-cost", "disjoint": "none"} if spread else {},
        tables=tables_with_choices(build.tables, build.topology, build.wiring, forwarding),
    )


def weights(alternates: np.ndarray, most: int, minimal_share: Fraction | None) -> np.ndarray:
    """uint16[S, C, 1 + most]: the weights of classes with so many alternates, int[S, C]."""
    pairs = weight_pairs(alternates, minimal_share)
    there = np.arange(most) < alternates[..., None]
    return np.concatenate((pairs[..., :1], there * pairs[..., 1:]), axis=2)


def ports_beyond_a_byte(build: Build) -> Build:
    """The same fabric on ports from 291 on, with room for 290 more links."""
    w, c, more = build.wiring, build.tables.classes, 290

    def moved(ports: np.ndarray) -> np.ndarray:
        return np.where(ports > 0, ports.astype(np.int64) + more, 0).astype(ports.dtype)

    def wider(ports: np.ndarray, none: int = 0) -> np.ndarray:
        return np.pad(ports, ((0, 0), (0, more)), constant_values=none)

    unused = tuple(f"unused{number}" for number in range(more))
    wiring = replace(
        w,
        port=wider(moved(w.port)),
        far=wider(w.far, -1),
        far_port=wider(moved(w.far_port)),
        host_port=moved(w.host_port),
        port_names=tuple((*unused, *names) for names in w.port_names),
    )
    words = ("port", "alternate", "protection", "bounce")
    classes = replace(c, **{word: moved(getattr(c, word)) for word in words})
    return replace(build, wiring=wiring, tables=replace(build.tables, classes=classes))


def classes_from(build: Build, first: int, step: int = 1) -> Build:
    """The same tables, with classes of other numbers."""
    routes, classes = build.tables.routes, build.tables.classes
    here, nothing = local(routes.egress), no_route(routes.egress)
    width = first + step * (classes.port.shape[1] - 1) + 1
    egress = empty_egress(*routes.egress.shape, width)
    egress[...] = first + step * routes.egress.astype(np.int64)
    egress[routes.egress == here] = local(egress)
    egress[routes.egress == nothing] = no_route(egress)
    arrays = {word: getattr(classes, word) for word in Classes.__dataclass_fields__}
    wider = {w: np.zeros((len(a), width, *a.shape[2:]), a.dtype) for w, a in arrays.items()}
    for word, array in arrays.items():
        wider[word][:, first::step] = array
    return replace(build, tables=Tables(replace(routes, egress=egress), Classes(**wider)))


def agreed(build: Build, control: Mapping[str, str]) -> Build:
    """The build with what fabric.yaml says that neighbours agree on, as `Build.control`."""
    return replace(build, control={**build.control, **control})


def with_words(build: Build, words: Mapping[str, str]) -> tuple[Build, dict[str, str]]:
    """As `agreed` with those of some words that neighbours agree on; the others, for `--set`."""
    control = {name: value for name, value in words.items() if name in CONTROL_KEYS}
    others = {name: value for name, value in words.items() if name not in CONTROL_KEYS}
    return agreed(build, control), others
