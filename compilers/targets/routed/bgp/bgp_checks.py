"""Checks of a build and of options for eBGP: AS numbers, pools of next hops, abilities of systems.

The targets of systems with eBGP call them before they render, and `compile` calls those of pools.
`bgp_reader` makes the reader of such a target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.bgp.bgp_speaker import BgpSwitch, SpeakerOptions
from compilers.spec.features import AGGREGATES, INGRESS, MULTIPATH, TRANSIT
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.addition import Addition
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, SET, Chosen
from compilers.targets.routed.bgp.bgp_options import (
    BFD,
    NEXT_HOP_POOLS,
    NEXT_HOPS,
    ROUTING,
    WCMP,
    has_gtsm,
    has_wcmp,
)
from compilers.targets.routed.link_addresses import LINKS, UNNUMBERED, LinkPlan
from compilers.targets.routed.router_problems import pool_problems
from inventory.asn_range import LAST_AS, RESERVED_AS
from inventory.problems import InputError, Problem


def announced_pools(build: Build, chosen: Chosen) -> tuple[IPv4Network | IPv6Network, ...]:
    """The pools of next hops that eBGP announces for alternates; () where it announces none."""
    has_alternates = build.tables.classes.alternate.shape[2] > 0
    if not has_alternates or build.forwarding.every_hop:
        return ()
    if chosen.get(ROUTING) != "bgp" or NEXT_HOPS not in chosen:
        return ()
    return tuple(ip_network(chosen[name]) for name in NEXT_HOP_POOLS)


def next_hop_problems(build: Build, chosen: Chosen) -> Iterator[Problem]:
    """Pools of announced next hops that are too small, or have addresses of hosts or of links."""
    announced = dict(zip(NEXT_HOP_POOLS, announced_pools(build, chosen), strict=False))
    host_pools = build.addressing.ipv4, build.addressing.ipv6
    host_pool_of = dict(zip(NEXT_HOP_POOLS, host_pools, strict=True))
    pools = {name: (pool, host_pool_of[name]) for name, pool in announced.items()}
    yield from pool_problems(build, pools, build.tables.switches + 1, "next hops")
    if not announced or LINKS not in chosen:
        return
    plan = LinkPlan.of(build, chosen)
    link_pool_of: dict[str, IPv4Network | IPv6Network] = dict(
        zip(NEXT_HOP_POOLS, (plan.pool4, plan.pool6), strict=True)
    )
    for name, pool in announced.items() if plan.numbered else ():
        links = link_pool_of[name]
        required = "addresses other than those of links"
        # Links take the first addresses of their pool; next hops may lie behind these.
        if pool[0] in links and int(pool[0]) - int(links[0]) < plan.address_count:
            yield Problem(required, f"{pool}", key=CONTROL_KEYS[name])
        elif links[0] in pool:
            yield Problem(required, f"{pool}, and links in {links}", key=CONTROL_KEYS[name])


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
    features = {AGGREGATES, TRANSIT}
    # Where every hop shares packets, those from hosts need no static routes.
    if build.forwarding.every_hop or not no_resolution_reason:
        features |= {INGRESS, MULTIPATH}
    title = f"{target} with eBGP"
    has_alternates = build.tables.classes.alternate.shape[2] > 0
    if no_resolution_reason and has_alternates:
        title += f" ({no_resolution_reason})"
    Capabilities(frozenset(features)).require(build, title)


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
