"""Trees as OpenFlow rows for Open vSwitch: one group of type `all` and one row a tree and switch.

They are added to the build's program, with cookies, groups and matches of their own, so that a
controller leaves them where they are. What a host sends to the address of a tree goes to all other
ports of the tree; Open vSwitch never sends a packet back out of the port that it came in on.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

import numpy as np

from extensions.clusters.trees.spanning_tree import SpanningTree
from extensions.clusters.trees.tree_set import TreeSet
from inventory.problems import InputError

ADDRESS = IPv4Address("239.80.70.0")
"""Trees have the addresses after this one, in a block for use within an organisation (RFC 2365)."""
GROUP = 4096
"""Trees have the groups after this one."""
COOKIE, COOKIE_MASK = 0x5054 << 48, 0xFFFF << 48
PRIORITY = 5
MOST_TREES = 254
FILE = "trees.txt"


def address(tree: int) -> IPv4Address:
    """Where hosts send what a tree, by its number from 0, is to bring to all others."""
    return ADDRESS + tree + 1


def multicast_files(trees: TreeSet) -> Iterator[tuple[str, list[str]]]:
    """The name of each switch, and the lines of its file for `ovs-ofctl bundle`.

    A file replaces the trees that the switch held before, in one step.

    Raises:
        InputError: there are more trees than addresses.
    """
    if len(trees.trees) > MOST_TREES:
        raise InputError.of(f"{MOST_TREES} trees at most", f"{len(trees.trees)}")
    build = trees.build
    neighbours = [tree.neighbours() for tree in trees.trees]
    for vertex in np.flatnonzero(build.topology.present).tolist():
        lines = [
            f"# {build.wiring.names[vertex]}: {len(neighbours)} trees of build {build.identity}",
            f"flow delete cookie={COOKIE:#x}/{COOKIE_MASK:#x}",
        ]
        for number, (tree, around) in enumerate(zip(trees.trees, neighbours, strict=True)):
            lines.append(f"group delete group_id={GROUP + number + 1}")
            if vertex == tree.root or around[vertex]:
                lines += _rows(number, _ports(trees, vertex, tree, around[vertex]))
        yield build.wiring.names[vertex], lines


def _rows(number: int, ports: list[int]) -> list[str]:
    """The group and the row of a tree on a switch."""
    last = int(address(number)) & 0x7FFFFF
    mac = ":".join(f"{byte:02x}" for byte in (0x01005E000000 | last).to_bytes(6, "big"))
    buckets = "".join(f",bucket=actions=output:{port}" for port in ports)
    return [
        f"group add group_id={GROUP + number + 1},type=all{buckets}",
        f"flow add table=0,priority={PRIORITY},cookie={COOKIE | number + 1:#x},ip,eth_dst={mac},"
        f"ip_dst={address(number)},actions=dec_ttl,group:{GROUP + number + 1}",
    ]


def _ports(trees: TreeSet, vertex: int, tree: SpanningTree, around: list[int]) -> list[int]:
    """The ports of a tree on a switch: those of its links, and of its hosts if they are reached."""
    w = trees.build.wiring
    links: list[int] = w.port[vertex][np.isin(w.far[vertex], around)].tolist()
    hosts: list[int] = w.host_port[vertex][w.host_port[vertex] > 0].tolist()
    return links + hosts * bool(trees.reached[vertex] or vertex == tree.root)
