"""Identities that only one node or host may have: names, datapath ids, addresses, blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

import numpy as np

from compilers.proof.soundness.unsound import Unsound, repeated, where
from compilers.spec.address_blocks import FIRST_HOST, block_count
from compilers.tables.build import Build
from compilers.wiring.addressing import format_mac
from inventory.problems import Finding, shown

MULTICAST, LARGEST_MAC = 1 << 40, (1 << 48) - 1


def names(build: Build) -> Iterator[Unsound]:
    """Names that are missing, or those of two nodes, hosts or management addresses."""
    w = build.wiring
    order, hosts = w.host_port.shape
    for word, texts, count in (
        ("nodes", w.names, order),
        ("management", w.management, order),
        ("hosts", w.host_names, order * hosts),
    ):
        if len(texts) != count:
            yield Unsound.one(word, f"{count} names", f"{len(texts)}")
    yield from _names("names", (*w.names, *w.host_names))
    given = [text for text in w.management if text]
    yield from _names("management", given)
    yield from where(
        np.array([not _is_address(t) for t in given], np.bool_),
        lambda i: Finding(("management", i), "an address", shown(given[i])),
    )


def _names(word: str, texts: Sequence[str]) -> Iterator[Unsound]:
    wrong = repeated(texts) | (np.array(texts, object) == "")
    yield from where(
        wrong,
        lambda i: Finding((word, i), "a name that no other has", shown(texts[i] or None)),
    )


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def datapath_ids(build: Build) -> Iterator[Unsound]:
    """Datapath ids that are 0, or those of two switches."""
    ids = build.wiring.datapath_id
    yield from where(
        repeated(ids) | (ids == 0),
        lambda s: Finding(
            (build.wiring.names[s], "datapath_id"),
            "an id that no other switch has",
            f"{int(ids[s]):#x}",
        ),
    )


def mac_addresses(build: Build) -> Iterator[Unsound]:
    """MAC addresses that are no host's own: of two, of the gateway, or of a group."""
    a, hosts = build.addressing, build.wiring.host_port.shape[1]
    mac, gateway = a.host_mac.ravel(), a.gateway_mac
    # A pool of switches without hosts has the same addresses at several of them.
    wrong = repeated(mac) | (mac == gateway) | (mac == 0) | (mac > LARGEST_MAC)
    wrong |= (mac & np.uint64(MULTICAST)) != 0
    yield from where(
        wrong,
        lambda i: Finding(
            (build.wiring.names[i // hosts], "hosts", i % hosts, "mac"),
            "a unicast MAC address that no other host has, nor the gateway",
            format_mac(int(mac[i])) if mac[i] <= LARGEST_MAC else f"{int(mac[i]):#x}",
        ),
    )
    if not 0 < gateway <= LARGEST_MAC or gateway & MULTICAST:
        yield Unsound.one("addressing.gateway_mac", "a unicast MAC address", f"{gateway:#x}")


def blocks(build: Build) -> Iterator[Unsound]:
    """Pools that cannot hold the blocks of all switches, blocks that cannot hold their hosts."""
    a, order, hierarchy = build.addressing, build.tables.switches, build.topology.hierarchy
    if a.hierarchy != hierarchy:
        yield Unsound.one("addressing.hierarchy", f"{hierarchy}", f"{a.hierarchy}")
        return
    hosts = build.wiring.host_port.shape[1]
    length, needed = a.ipv4_length, block_count(order, hierarchy)
    most = 1 << max(32 - length, 0)
    if not 0 < length <= 32 or most < hosts + FIRST_HOST + 1:
        yield Unsound.one(
            "addressing.ipv4_length", f"blocks with room for {hosts} hosts", f"/{length}"
        )
        return
    yield from _pool("addressing.ipv4", a.ipv4, length, needed)
    if a.ipv6 is not None:
        yield from _pool("addressing.ipv6", a.ipv6, 64, needed)


def _pool(
    path: str, pool: IPv4Network | IPv6Network, length: int, needed: int
) -> Iterator[Unsound]:
    if pool.prefixlen > length or 1 << (length - pool.prefixlen) < needed:
        yield Unsound.one(path, f"a pool of {needed:,} blocks of /{length}", f"{pool}")
    if any((pool.is_multicast, pool.is_loopback, pool.is_link_local, pool.is_unspecified)):
        yield Unsound.one(path, "a pool of unicast addresses", f"{pool}")
