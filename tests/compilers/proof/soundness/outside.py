"""An outside walker: plain Python over the files of a build folder, with no code of the product.

It knows the forwarding rule from docs/concepts/failures.md and the files from
docs/architecture.md, sends one packet after the other, and says what it objects to.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from ipaddress import ip_address, ip_network
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

TOO_FAR = 64
FAILURES = {"none": False, "link": True, "node": True}
Dead = frozenset[frozenset[int]]
"""Links that are down, each by the two switches that it joins."""


class Outside:
    """A fabric as its files say it is."""

    def __init__(self, folder: Path) -> None:
        self.fabric = json.loads((folder / "fabric.json").read_text())
        loaded = {path.stem: np.load(path) for path in (folder / "arrays").glob("*.npy")}
        self.a: dict[str, Any] = {name: array.tolist() for name, array in loaded.items()}
        self.here = int(np.iinfo(loaded["route_egress"].dtype).max)
        self.order = len(self.a["port"])
        self.hosts = [v for v, has in enumerate(self.a["endpoints"]) if has]

    @cached_property
    def cable(self) -> dict[tuple[int, int], tuple[int, int]]:
        """The other end of every end of a cable."""
        a = self.a
        return {
            (s, a["port"][s][k]): (far, a["far_port"][s][k])
            for s in range(self.order)
            for k, far in enumerate(a["far"][s])
            if far >= 0
        }

    def egress(self, s: int, d: int) -> int | None:
        """The class by the longest prefix, -1: deliver."""
        sets = len(self.a["route_prefix"])
        prefixes = self.a["route_prefix"][s * sets // self.order]
        for prefix in (d, self.a["route_aggregate"][d]):
            if prefix in prefixes:
                value = self.a["route_egress"][s][prefixes.index(prefix)]
                if value != self.here - 1:
                    return -1 if value == self.here else value
        return None

    @cached_property
    def table(self) -> list[list[int | None]]:
        """The class of every switch for every destination."""
        return [[self.egress(s, d) for d in range(self.order)] for s in range(self.order)]

    def entering(self, s: int, k: int) -> dict[int, Fraction]:
        """The ports that a host's packet may take, each with its part."""
        ports = [self.a["class_port"][s][k], *self.a["class_alternate"][s][k]]
        pairs = [
            (p, w) for p, w in zip(ports, self.a["class_weight"][s][k], strict=True) if p and w
        ]
        whole = sum(w for _, w in pairs)
        return {p: Fraction(w, whole) for p, w in pairs}

    def up(self, s: int, p: int, dead: Dead) -> bool:
        """Whether a port has a cable, and that is not dead."""
        return (s, p) in self.cable and frozenset((s, self.cable[s, p][0])) not in dead

    def transit(self, s: int, came: int, k: int, dead: Dead) -> int:
        """The port by which a packet leaves, 0 where it is dropped."""
        own, repair = self.a["class_port"][s][k], self.a["class_protection"][s][k]
        order = self.a["class_bounce"][s][k] if came == own else [own, *repair]
        for p in order:
            if p and p != came and (self.up(s, p, dead) or (s, p) not in self.cable):
                return int(p)
        return came if came in (own, *repair) else 0

    def arrives(self, s: int, d: int, first: int, dead: Dead) -> int:
        """The links to the destination by this port, 0 where the packet gets lost."""
        at, out = s, first
        for links in range(1, TOO_FAR):
            if (at, out) not in self.cable:
                return 0
            at, came = self.cable[at, out]
            k = self.table[at][d]
            if k == -1 or k is None or k >= len(self.a["class_port"][at]):
                return links if at == d and k == -1 else 0
            out = self.transit(at, came, k, dead)
        return 0

    def alternates(self, s: int, d: int, dead: Dead) -> Iterator[int]:
        """The links of every path that a packet may take, 0 for those by which it gets lost."""
        k = self.table[s][d]
        if k is None or k == -1 or k >= len(self.a["class_port"][s]):
            yield 0
            return
        parts = self.entering(s, k)
        live = [p for p in parts if self.up(s, p, dead) or (s, p) not in self.cable]
        for first in live or [self.transit(s, 0, k, dead)]:
            yield self.arrives(s, d, first, dead)

    def distance(self, s: int, dead: Dead = frozenset()) -> dict[int, int]:
        """Links to every switch that cables lead to."""
        reached, queue = {s: 0}, deque([s])
        while queue:
            at = queue.popleft()
            for p in self.a["port"][at]:
                if self.up(at, p, dead) and (far := self.cable[at, p][0]) not in reached:
                    reached[far] = reached[at] + 1
                    queue.append(far)
        return reached


def objections(folder: Path, good: Outside) -> Iterator[str]:
    """What is wrong with a build; `good` is the same before it was edited."""
    try:
        it = Outside(folder)
        yield from _identities(it)
        yield from _cables(it, good)
        yield from _packets(it, good)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        yield f"it cannot be read: {error!r}"


def _identities(it: Outside) -> Iterator[str]:
    nodes, addressing = it.fabric["nodes"], it.fabric["addressing"]
    macs = [mac for row in it.a["host_mac"] for mac in row]
    for word, values in (
        ("name", nodes["names"] + nodes["hosts"]),
        ("datapath id", it.a["datapath_id"]),
        ("MAC address", [*macs, addressing["gateway_mac"]]),
        ("management address", [text for text in nodes["management"] if text]),
    ):
        if len(set(values)) < len(values) or not all(values):
            yield f"a {word} twice"
    if any(mac >> 40 & 1 or mac >= 1 << 48 for mac in (*macs, addressing["gateway_mac"])):
        yield "a MAC address that no host can have"
    size = 1 << (32 - addressing["ipv4_length"])
    hosts = len(it.a["host_port"][0])
    members = it.fabric["topology"]["hierarchy"]
    blocks = it.order // members * (1 << (members - 1).bit_length())
    pools = [(ip_network(addressing["ipv4"]), size)]
    if addressing["ipv6"]:
        pools.append((ip_network(addressing["ipv6"]), 1 << 64))
    firsts = addressing.get("first") or [str(pool[0]) for pool, _ in pools]
    if size < hosts + 3:
        yield "too small blocks"
    for (pool, of_block), first in zip(pools, firsts, strict=True):
        if not pool[0] <= ip_address(first) <= pool[-1] - blocks * of_block + 1:
            yield "too few addresses"


def _cables(it: Outside, good: Outside) -> Iterator[str]:
    types = it.fabric["node_types"]["ports"]
    for s in range(it.order):
        ports = [p for p in it.a["port"][s] + it.a["host_port"][s] if p]
        most = len(types[it.a["node_type"][s]])
        if len(set(ports)) < len(ports) or not all(0 < p <= most for p in ports):
            yield f"ports of {s}"
        links = sum(far >= 0 for far in it.a["far"][s])
        if sum(p > 0 for p in it.a["port"][s]) != links or links != sum(
            far >= 0 for far in good.a["far"][s]
        ):
            yield f"links of {s}"
        if sum(p > 0 for p in it.a["host_port"][s]) != sum(p > 0 for p in good.a["host_port"][s]):
            yield f"hosts of {s}"
    for end, other in it.cable.items():
        if it.cable.get(other) != end:
            yield f"one end of the cable at {end}"


def _packets(it: Outside, good: Outside) -> Iterator[str]:
    if it.hosts != good.hosts:
        yield "other switches have hosts"
        return
    whole: Dead = frozenset()
    pairs = [(s, d) for s in it.hosts for d in it.hosts if s != d]
    for s in it.hosts:
        distance = it.distance(s)
        for d in it.hosts:
            k = it.table[s][d]
            if s == d:
                if k != -1:
                    yield f"{s} does not deliver"
                continue
            if k is None or k == -1 or k >= len(it.a["class_port"][s]):
                yield f"{s} has no class for {d}"
                return
            shortest = it.arrives(s, d, it.a["class_port"][s][k], whole)
            if not shortest or shortest > distance.get(d, 0):
                yield f"{s} to {d} takes {shortest} links"
            if not it.entering(s, k):
                yield f"{s} to {d} is shared over nothing"
            if not all(it.alternates(s, d, whole)):
                yield f"{s} to {d} is lost on an alternate"
    if not FAILURES[good.fabric["forwarding"]["protect"]]:
        return
    links = sorted({frozenset((s, far)) for (s, _), (far, _) in it.cable.items()}, key=sorted)
    for dead in [frozenset([link]) for link in links] + _promised_pairs(good, links):
        for s, d in pairs:
            if not all(it.alternates(s, d, dead)) and d in it.distance(s, dead):
                down = " and ".join("-".join(map(str, sorted(link))) for link in dead)
                yield f"{s} to {d} is lost without the link {down}"


def _promised_pairs(good: Outside, links: list[frozenset[int]]) -> list[Dead]:
    """Two links of one switch, of which a whole PolarFly loses none: where it did, they were so."""
    topology = good.fabric["topology"]
    q = topology["parameters"].get("q", 0)
    if topology["family"] != "polarfly" or q < 3 or len(links) < q * (q + 1) ** 2 // 2:
        return []
    return [frozenset(two) for two in combinations(links, 2) if two[0] & two[1]]
