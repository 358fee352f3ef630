"""Allreduce over trees as MSCCL XML, the form of microsoft/msccl-tools (`ir_to_xml`).

A rank is a host, in the order of switches. Tree t carries chunk t over channel t. On each switch
one host represents it, another one for the next tree, so that they share the work; the other hosts
of the switch are its leaves. A rank has one thread block for each neighbour in a tree: it receives
what comes up from a child and sends down to it, or the reverse with the parent. As each waits for
the one before, no two write to the chunk at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np
from numpy.typing import NDArray

from extensions.clusters.trees.tree_set import TreeSet
from inventory.problems import InputError

REDUCE, SEND, RECEIVE = "rrc", "s", "r"
NOBODY, NOTHING = -1, (-1, -1)
MOST_CHANNELS, MOST_PEERS, MOST_BLOCKS = 32, 32, 216
"""Of a rank: channels, neighbours on one of them, thread blocks (msccl.h of microsoft/msccl)."""
LARGEST = 1 << 40
"""Bytes up to which the algorithm is used; a runtime without this bound stops at 128 MiB."""


class _Step(NamedTuple):
    """A step: its thread block and the peer of that, what it does, and the (block, step) before."""

    block: int
    peer: int
    kind: str
    after: tuple[int, int] = NOTHING


def msccl_xml(trees: TreeSet) -> str:
    """The algorithm as XML.

    Raises:
        InputError: a switch has no host, the trees leave switches out, or they are too many or too
            wide for the runtime.
    """
    hosts = _hosts(trees)
    if not hosts[trees.build.topology.present].all():
        raise InputError.of("a host on every switch, which is a rank", "switches without hosts")
    if not trees.whole or trees.switches < np.count_nonzero(hosts):
        todo = "leave out `member` and `fail NODE`"
        raise InputError.of("trees that reach every switch", "trees that do not", todo)
    count, ranks = str(len(trees.trees)), range(hosts.sum())
    algo = Element("algo", name=f"{trees.build.name}-{trees.kind}", proto="Simple")
    algo.attrib |= {"nchannels": count, "nchunksperloop": count, "ngpus": str(len(ranks))}
    algo.attrib |= {"coll": "allreduce", "inplace": "1"}
    algo.attrib |= {"minBytes": "0", "maxBytes": str(LARGEST)}
    chunks = {"i_chunks": count, "o_chunks": "0", "s_chunks": "0"}
    gpus = [SubElement(algo, "gpu", {"id": str(rank)} | chunks) for rank in ranks]
    widest = 0
    for number in range(len(trees.trees)):
        for rank, parent, children in _places(trees, number):
            gpu = gpus[rank]
            _add(gpu, number, list(_steps(len(gpu), parent, children)))
            widest = max(widest, len(children) + (parent >= 0))
    _require(len(trees.trees), widest, max(map(len, gpus)))
    indent(algo)
    return tostring(algo, encoding="unicode") + "\n"


def _require(channels: int, peers: int, blocks: int) -> None:
    """Pass when the runtime has room.

    Raises:
        InputError: it has not.
    """
    if channels > MOST_CHANNELS or peers > MOST_PEERS or blocks > MOST_BLOCKS:
        required = f"{MOST_CHANNELS} trees, {MOST_PEERS} neighbours of a host in one of them and "
        required += f"{MOST_BLOCKS} in all at most, which is what MSCCL holds"
        todo = "`kind disjoint` has fewer trees and narrower ones; fewer hosts on a switch"
        raise InputError.of(required, f"{channels}, {peers} and {blocks}", todo)


def _hosts(trees: TreeSet) -> NDArray[np.int64]:
    """int64[S]: hosts of each switch that is there."""
    build = trees.build
    hosts: NDArray[np.int64] = np.count_nonzero(build.wiring.host_port, axis=1)
    return np.where(build.topology.present, hosts, 0)


def _places(trees: TreeSet, number: int) -> Iterator[tuple[int, int, list[int]]]:
    """Each rank with its parent and its children in a tree."""
    tree, of_switch = trees.trees[number], _hosts(trees)
    first = np.cumsum(of_switch) - of_switch
    stands = (first + number % np.maximum(of_switch, 1)).tolist()
    below: list[list[int]] = [[] for _ in of_switch]
    for above, child in tree.edges.tolist():
        below[above].append(stands[child])
    for vertex in np.flatnonzero(of_switch).tolist():
        own = stands[vertex]
        every = range(int(first[vertex]), int(first[vertex] + of_switch[vertex]))
        leaves = [rank for rank in every if rank != own]
        above = int(tree.parent[vertex])
        yield own, NOBODY if above < 0 else stands[above], below[vertex] + leaves
        yield from ((leaf, own, []) for leaf in leaves)


def _steps(first: int, parent: int, children: list[int]) -> Iterator[_Step]:
    """The steps of a rank in a tree, by thread block from `first`: children, then the parent."""
    last = first + len(children) - 1
    whole = (last, 0) if children else NOTHING
    known = whole if parent < 0 else (last + 1, 1)
    for block, child in enumerate(children, first):
        yield _Step(block, child, REDUCE, (block - 1, 0) if block > first else NOTHING)
        yield _Step(block, child, SEND, known if known[0] != block else NOTHING)
    if parent >= 0:
        yield _Step(last + 1, parent, SEND, whole)
        yield _Step(last + 1, parent, RECEIVE)


def _add(gpu: Element, tree: int, steps: list[_Step]) -> None:
    """Add the thread blocks of these steps, two each."""
    waited, chunk = {step.after for step in steps}, str(tree)
    for place, step in enumerate(steps):
        number = place % 2
        if number == 0:
            peer = str(step.peer)
            SubElement(gpu, "tb", id=str(step.block), send=peer, recv=peer, chan=chunk)
        element = SubElement(gpu[-1], "step", s=str(number), type=step.kind)
        element.attrib |= dict.fromkeys(("srcbuf", "dstbuf"), "i")
        element.attrib |= dict.fromkeys(("srcoff", "dstoff"), chunk)
        before = dict(zip(("depid", "deps"), map(str, step.after), strict=True))
        has = str(int((step.block, number) in waited))
        element.attrib |= {"cnt": "1", **before, "hasdep": has}
