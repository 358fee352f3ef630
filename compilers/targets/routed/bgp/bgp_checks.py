"""Checks of a build and of options for eBGP: AS numbers, pools of next hops, abilities of systems.

The targets of systems with eBGP call them before they render, and `compile` calls those of pools.
`bgp_reader` makes the reader of such a target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.bgp.bgp_speaker import BgpSwitch, SpeakerOptions
from compilers.spec.features import INGRESS, MULTIPATH, WITH_BGP
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.addition import Addition
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, SET, Chosen
from compilers.targets.routed.bgp.bgp_options import (
    BFD,
    GTSM,
    NEXT_HOP_POOLS,
    NEXT_HOPS,
    NEXT_HOPS6,
    ROUTING,
    WCMP,
    has_gtsm,
    has_wcmp,
)
from compilers.targets.routed.link_addresses import LINKS, UNNUMBERED, LinkPlan
from compilers.targets.routed.router_problems import pool_problems
from inventory.asn_range import LAST_AS, RESERVED_AS
from inventory.problems import InputError, Problem

Network: TypeAlias = IPv4Network | IPv6Network
NO_GTSM = "false with static routes: it is for sessions of BGP"
"""What is required of `control_plane.gtsm` where a fabric has no sessions of BGP."""


def announced_pools(build: Build, chosen: Chosen) -> tuple[Network, ...]:
    """The pools of next hops that eBGP announces for alternates: of IPv4, then of IPv6.

    They are () where it announces none.
    """
    has_alternates = build.tables.classes.alternate.shape[2] > 0
    if not has_alternates or build.forwarding.every_hop:
        return ()
    if chosen.get(ROUTING) != "bgp" or NEXT_HOPS not in chosen:
        return ()
    return tuple(ip_network(chosen[name]) for name in NEXT_HOP_POOLS)


def next_hop_problems(build: Build, chosen: Chosen) -> Iterator[Problem]:
    """Pools of announced next hops that are too small, or have addresses of hosts or of links."""
    announced = announced_pools(build, chosen)
    if not announced:
        return
    ipv4_pool, ipv6_pool = announced
    pools = {
        NEXT_HOPS: (ipv4_pool, build.addressing.ipv4),
        NEXT_HOPS6: (ipv6_pool, build.addressing.ipv6),
    }
    yield from pool_problems(build, pools, build.tables.switches + 1, "next hops")
    if LINKS not in chosen:
        return
    links = LinkPlan.of(build, chosen)
    if links.numbered:
        yield from _link_problems(NEXT_HOPS, ipv4_pool, links.pool4, links.address_count)
        yield from _link_problems(NEXT_HOPS6, ipv6_pool, links.pool6, links.address_count)


def _link_problems(
    option: str, pool: Network, link_pool: Network, link_addresses: int
) -> Iterator[Problem]:
    """The problem of a pool of next hops that has addresses of links.

    Args:
        option: the option that gives the pool of next hops.
        pool: that pool.
        link_pool: the pool of links in the same address family.
        link_addresses: how many addresses links take, the first ones of their pool. Next hops may
            lie behind these.
    """
    required = "addresses other than those of links"
    if pool[0] in link_pool and int(pool[0]) - int(link_pool[0]) < link_addresses:
        yield Problem(required, f"{pool}", key=CONTROL_KEYS[option])
    elif link_pool[0] in pool:
        yield Problem(required, f"{pool}, and links in {link_pool}", key=CONTROL_KEYS[option])


def bgp_reader(speaker: Callable[[Path, SpeakerOptions], BgpSwitch], chosen: Chosen) -> BgpReader:
    """The reader of a target with eBGP.

    Args:
        speaker: reads the folder of a switch, given what the options say about its sessions.
        chosen: the value of every option.
    """
    options = SpeakerOptions(
        bfd=chosen[BFD] == "on",
        gtsm=has_gtsm(chosen),
        numbered=chosen.get(UNNUMBERED, OFF) == OFF,
        wcmp=has_wcmp(chosen),
    )
    return BgpReader(lambda folder: speaker(folder, options))


def require_no_additions(requested: Sequence[Addition[Any, Any]], chosen: Chosen) -> None:
    """Refuse additions with eBGP: what they print was proved for compiled paths only.

    Raises:
        InputError: the options ask for an addition.
    """
    if requested:
        option = requested[0].option
        raise InputError.of(
            key=f"{SET} {option}",
            required=f"{OFF} with eBGP, which finds paths of its own after a failure",
            given=chosen[option],
        )


def require_bgp(build: Build, target: str, chosen: Chosen, no_resolution_reason: str = "") -> None:
    """Check that a target with BGP can do what the build asks for.

    BGP has minimal routes and aggregates. Static routes beside it share packets from hosts, if the
    system has BGP resolve their next hops.

    Args:
        build: what is to be rendered.
        target: the name of the target.
        chosen: the value of every option.
        no_resolution_reason: why BGP cannot resolve next hops of static routes on the system; ""
            where it can.

    Raises:
        InputError: the build asks for more.
    """
    if has_wcmp(chosen) and not build.forwarding.every_hop:
        required = "false without `transit: ecmp`, where a prefix has one path"
        raise InputError.of(required, "true", key=CONTROL_KEYS[WCMP])
    features = WITH_BGP
    # Where every hop shares packets, those from hosts need no static routes.
    if no_resolution_reason and not build.forwarding.every_hop:
        features -= {INGRESS, MULTIPATH}
    title = f"{target} with eBGP"
    has_alternates = build.tables.classes.alternate.shape[2] > 0
    if no_resolution_reason and has_alternates:
        title += f" ({no_resolution_reason})"
    Capabilities(features).require(build, title)


def require_no_gtsm(build: Build) -> None:
    """Refuse TTL security for static routes that have no sessions of BGP beside them.

    Raises:
        InputError: fabric.yaml turns it on.
    """
    if build.control.get(GTSM) == "on":
        todo = "remove it, or write `routes: ebgp`"
        raise InputError.of(NO_GTSM, "true", todo, key=CONTROL_KEYS[GTSM])


def as_number_problems(numbers: NDArray[np.int64]) -> list[Problem]:
    """The problem of AS numbers that no switch may have; [] if all are right.

    Args:
        numbers: int64[n], the numbers that follow from `base.asn`, in ascending order.
    """
    if numbers.max(initial=0) <= LAST_AS and not np.isin(numbers, RESERVED_AS).any():
        return []
    return [
        Problem(
            key="base.asn",
            required=f"AS numbers for {len(numbers):,} switches, none above {LAST_AS}, "
            f"and not {' or '.join(map(str, RESERVED_AS))}",
            given=f"{numbers[0]} to {numbers[-1]}",
        )
    ]
