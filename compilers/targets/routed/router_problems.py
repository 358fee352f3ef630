"""Checks of what routers are rendered from: names of nodes, and pools of addresses.

The targets of routers check all of them before they render. `compile` checks the pools, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address
from itertools import compress

from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.routed.link_addresses import LINKS, LINKS6, LinkPlan
from inventory.problems import Problem

Pool = IPv4Network | IPv6Network
"""A pool of addresses."""
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""`leaf-7.pod1`: a name that configurations and folders can have."""


def pool_problems(
    build: Build,
    pools: Mapping[str, tuple[Pool, Pool | None]],
    needed: int,
    purpose: str,
) -> Iterator[Problem]:
    """Pools that are too small, or have addresses of hosts or of management.

    Args:
        build: the build of the fabric.
        pools: by the name of an option, its pool, and the pool of hosts in the same address family;
            None: the fabric has no such family.
        needed: how many addresses a pool has to have.
        purpose: what the addresses are for, in messages.
    """
    management = [ip_address(address) for address in build.wiring.management if address]
    for name, (pool, host_pool) in pools.items():
        if host_pool is None:
            continue  # the fabric does not have the address family
        key = CONTROL_KEYS[name]
        if pool.num_addresses < needed:
            required, given = f"a network of at least {needed:,} addresses", f"{pool}"
        elif pool.overlaps(host_pool):
            required, given = (
                "addresses other than those of hosts",
                f"{pool}, and hosts in {host_pool}",
            )
        elif inside := [address for address in management if address in pool]:
            required = "addresses other than those of management"
            given = f"{pool}, and {inside[0]}"
        else:
            continue
        yield Problem(f"{required} for {purpose}", given, key=key)


def link_problems(addresses: LinkPlan) -> Iterator[Problem]:
    """Pools of links that are too small, or have addresses of hosts or of management."""
    if addresses.numbered:
        host_addressing = addresses.build.addressing
        pools: dict[str, tuple[Pool, Pool | None]] = {
            LINKS: (addresses.pool4, host_addressing.ipv4),
            LINKS6: (addresses.pool6, host_addressing.ipv6),
        }
        yield from pool_problems(addresses.build, pools, addresses.address_count, "links")


def name_problems(names: Iterable[str], key: str, reason: str) -> list[Problem]:
    """The problems of names that configurations or folders cannot have.

    Args:
        names: the names.
        key: where the names are given.
        reason: what makes the demand, in words, such as `it becomes a file name`.
    """
    return [
        Problem(
            key=key,
            required="a name of at most 63 letters, digits and . _ -, a letter or digit first",
            given=repr(name),
            todo=reason,
        )
        for name in names
        if not HOST_NAME.fullmatch(name)
    ]


def node_name_problems(build: Build) -> list[Problem]:
    """The problems of the names of present nodes, which become host names and file names."""
    names = compress(build.wiring.names, build.topology.present)
    return name_problems(names, "nodes", "it becomes a host name and a file name")
