"""Check the names, ids and addresses of a build: each is well formed, and no two are the same.

Each function looks at one kind of values, and yields those that are wrong as `UnsoundValues`.
`build_soundness` calls them after the checks of ports, cables and rows.

In the findings, s is a switch, and i an index in a list of names or addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

import numpy as np

from compilers.proof.soundness.unsound import UnsoundValues, repeated, unsound_where
from compilers.spec.address_blocks import FIRST_HOST, Blocks, block_count, member_bits
from compilers.spec.allocations import LENGTH, POOL, POOL_VALUES
from compilers.spec.allocations_file import ALLOCATIONS
from compilers.tables.build import Build
from compilers.wiring.mac_addresses import format_mac
from inventory.problems import Finding, shown

MULTICAST = 1 << 40
"""The bit of a MAC address that marks it as multicast: the lowest bit of the first byte."""
LARGEST_MAC = (1 << 48) - 1
"""The largest MAC address: all of its 48 bits are 1."""


def check_names(build: Build) -> Iterator[UnsoundValues]:
    """Names of nodes and hosts, and management addresses, that are missing or occur twice.

    Lists with too few or too many of them, and management addresses that are no addresses, too.
    """
    wiring = build.wiring
    switches, hosts = wiring.host_port.shape
    for key, texts, count in (
        ("nodes", wiring.names, switches),
        ("management", wiring.management, switches),
        ("hosts", wiring.host_names, switches * hosts),
    ):
        if len(texts) != count:
            yield UnsoundValues.one(key, f"{count} names", f"{len(texts)}")
    yield from _missing_or_repeated("names", (*wiring.names, *wiring.host_names))
    # A node need not have a management address.
    management = [address for address in wiring.management if address]
    yield from _missing_or_repeated("management", management)
    yield from unsound_where(
        np.array([not _is_address(address) for address in management], np.bool_),
        lambda i: Finding(("management", i), "an address", shown(management[i])),
    )


def _missing_or_repeated(key: str, texts: Sequence[str]) -> Iterator[UnsoundValues]:
    """Texts that are empty, or that occur earlier in the list.

    Args:
        key: the key of the list.
        texts: the list.
    """
    wrong = repeated(texts) | (np.array(texts, object) == "")
    yield from unsound_where(
        wrong,
        lambda i: Finding((key, i), "a name that no other has", shown(texts[i] or None)),
    )


def _is_address(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address."""
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def check_datapath_ids(build: Build) -> Iterator[UnsoundValues]:
    """Datapath ids that are 0, or that two switches have."""
    ids = build.wiring.datapath_id
    yield from unsound_where(
        repeated(ids) | (ids == 0),
        lambda s: Finding(
            (build.wiring.names[s], "datapath_id"),
            "an id that no other switch has",
            f"{int(ids[s]):#x}",
        ),
    )


def check_mac_addresses(build: Build) -> Iterator[UnsoundValues]:
    """MAC addresses of hosts that another host or the gateway has, or that are not unicast."""
    addressing, hosts = build.addressing, build.wiring.host_port.shape[1]
    mac, gateway = addressing.host_mac.ravel(), addressing.gateway_mac
    # A pool of switches without hosts has the same addresses at several of them.
    wrong = repeated(mac) | (mac == gateway) | (mac == 0) | (mac > LARGEST_MAC)
    wrong |= (mac & np.uint64(MULTICAST)) != 0
    yield from unsound_where(
        wrong,
        lambda i: Finding(
            (build.wiring.names[i // hosts], "hosts", i % hosts, "mac"),
            "a unicast MAC address that no other host has, nor the gateway",
            format_mac(int(mac[i])) if mac[i] <= LARGEST_MAC else f"{int(mac[i]):#x}",
        ),
    )
    if not 0 < gateway <= LARGEST_MAC or gateway & MULTICAST:
        yield UnsoundValues.one("addressing.gateway_mac", "a unicast MAC address", f"{gateway:#x}")


def check_blocks(build: Build) -> Iterator[UnsoundValues]:
    """Address pools and blocks that are too small, or begin at another address than allocated.

    The checks end at the first fault, as the later ones need what the earlier ones have checked.
    """
    addressing, switches, supernode_size = (
        build.addressing,
        build.tables.switches,
        build.topology.hierarchy,
    )
    if addressing.hierarchy != supernode_size:
        yield UnsoundValues.one(
            "addressing.hierarchy", f"{supernode_size}", f"{addressing.hierarchy}"
        )
        return
    hosts, length = build.wiring.host_port.shape[1], addressing.ipv4_length
    block_size = 1 << max(32 - length, 0)
    if not 0 < length <= 32 or block_size < hosts + FIRST_HOST + 1:
        yield UnsoundValues.one(
            "addressing.ipv4_length", f"blocks with room for {hosts} hosts", f"/{length}"
        )
        return
    pools = [pool for pool in (addressing.ipv4, addressing.ipv6) if pool]
    if addressing.first and not _are_of_pools(addressing.first, pools):
        required = f"the first address of the blocks in each of {len(pools)} pools, or none"
        yield UnsoundValues.one("addressing.first", required, ", ".join(map(str, addressing.first)))
        return
    for pool, pool_blocks in zip(pools, addressing.blocks(), strict=True):
        yield from _pool(
            pool,
            pool_blocks,
            block_count(switches, supernode_size),
            aligned_bits=member_bits(supernode_size),
        )
    yield from _allocated_blocks(build)


def _are_of_pools(firsts: Sequence[str], pools: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Whether texts are addresses, one of the IP version of each pool."""
    return len(firsts) == len(pools) and all(
        _is_address(first) and ip_address(first).version == pool.version
        for first, pool in zip(firsts, pools, strict=True)
    )


def _pool(
    pool: IPv4Network | IPv6Network, blocks: Blocks, needed: int, aligned_bits: int
) -> Iterator[UnsoundValues]:
    """What is wrong with a pool: it is not unicast, or has no room for its blocks where they begin.

    Args:
        pool: the pool.
        blocks: its blocks.
        needed: how many blocks there have to be.
        aligned_bits: by how many bits the prefix of a supernode is shorter than that of a block.
            The first block begins at such a shorter prefix.
    """
    path, length = f"addressing.ipv{pool.version}", blocks.length
    block_size = 1 << max(pool.max_prefixlen - length, 0)
    begin, end = int(pool[0]), int(pool[-1]) + 1
    if (end - begin) // block_size < needed:
        yield UnsoundValues.one(path, f"a pool of {needed:,} blocks of /{length}", f"{pool}")
    elif not begin <= blocks.first <= end - needed * block_size:
        required = f"a first address with {needed:,} blocks of /{length} behind it in {pool}"
        yield UnsoundValues.one("addressing.first", required, f"{ip_address(blocks.first)}")
    elif blocks.first % (block_size << aligned_bits):
        required = f"a first address at which a /{length - aligned_bits} begins"
        yield UnsoundValues.one("addressing.first", required, f"{ip_address(blocks.first)}")
    if any((pool.is_multicast, pool.is_loopback, pool.is_link_local, pool.is_unspecified)):
        yield UnsoundValues.one(path, "a pool of unicast addresses", f"{pool}")


def _allocated_blocks(build: Build) -> Iterator[UnsoundValues]:
    """Allocations that name another beginning or length of blocks than the build has."""
    addressing, allocated = build.addressing, build.allocations.of(POOL).used
    in_build = {**addressing.first_addresses(), LENGTH: addressing.ipv4_length}
    for key, number in allocated.items():
        if number == in_build.get(key):
            continue
        as_value = POOL_VALUES[key]
        required = "no such row, as there is no pool"
        if key in in_build:
            required = str(as_value(in_build[key]))
        yield UnsoundValues.one(f"{ALLOCATIONS}: pool {key}", required, str(as_value(number)))
