"""Pairs of builds, and a fabric of switches that move from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from compilers.expansion.grow import grow
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder
from compilers.update.matching import HostTable, kept_hosts
from compilers.update.move_plan import Update
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import Slots, messages
from tests.compilers.targets.openflow_switch import DROP, MARK_SHIFT, Switch

MINIMAL = ("minimal", "none")
LINK_NAMES = tuple[str, str]
SPARSE_LINKS = (
    ("n0", "n10"),
    ("n1", "n5"),
    ("n2", "n11"),
    ("n3", "n8"),
    ("n3", "n12"),
    ("n5", "n9"),
    ("n7", "n10"),
)
"""Dead links of PolarFly q = 3 that leave 17 of 24 cables: some switches are the only way."""


@cache
def build(
    topology: str = "{family: polarfly, q: 3}",
    policy: tuple[str, str] = MINIMAL,
    dead: Sequence[LINK_NAMES] = (),
    more: str = "",
) -> Build:
    """A build with an identity of its own."""
    links = ", ".join(f"{{a: '{a}', b: '{b}'}}" for a, b in dead)
    with TemporaryDirectory() as name:
        folder = Path(name)
        inventory = f"generate: {{type: copackaged-4x8}}\ndead_links: [{links}]\n"
        (folder / "inventory.yaml").write_text(inventory)
        (folder / "fabric.yaml").write_text(
            f"name: lab\ntopology: {topology}\nrouting: {{balance: {policy[0]}, "
            f"protect: {policy[1]}}}\ninventory: inventory.yaml\n{more}"
        )
        made = compile_fabric(load_fabric(str(folder / "fabric.yaml")))
    return named(made, f"{abs(hash((topology, policy, dead, more))):016x}"[:16])


@cache
def grown(small: Build, racks: str, count: int) -> Build:
    return named(grow(small, racks, count).build, "9" * 16)


def named(made: Build, identity: str) -> Build:
    return replace(made, identity=identity)


def links_of(made: Build) -> list[LINK_NAMES]:
    names, far = made.wiring.names, made.wiring.far
    return [(names[u], names[v]) for u, row in enumerate(far.tolist()) for v in row if v > u]


def programmed(made: Build, vertices: Sequence[int], generation: int) -> list[Switch]:
    """The switch of each node with the program of its vertex; -1: an empty one."""
    known = _programmed(made, tuple(map(int, vertices)), generation)
    return [switch.copy() for switch in known]


@lru_cache(4)  # a build that was read keeps some thirty descriptors
def _programmed(made: Build, vertices: tuple[int, ...], generation: int) -> list[Switch]:
    """The same switches, which nobody changes: tests move from one build in several ways."""
    encoder, switches = Encoder(made), [Switch() for _ in vertices]
    for switch, vertex in zip(switches, vertices, strict=True):
        if vertex >= 0:
            program = encoder.program(vertex, generation)
            switch.apply((*program.groups, *program.flows))
    return switches


class Moving:
    """The switches of an update, programmed by messages alone; node numbers are the matching's.

    done[node] is the last round that the node has carried out, -1 for none. back: the nodes that
    have sent a packet back to where it came from.
    """

    def __init__(self, update: Update, generation: int = 0) -> None:
        self.update, self.generation = update, generation
        self.programs = SwitchPrograms(update)
        self.nodes = range(len(update.nodes.datapath_id))
        self.done = [-1] * len(self.nodes)
        self.back: set[int] = set()
        self.old = programmed(update.old, update.nodes.old_vertex, generation)
        new_generation = self.programs.generation_after(generation)
        self.new = programmed(update.new, update.nodes.new_vertex, new_generation)
        self.switches = [switch.copy() for switch in self.old]
        self.cables = {}
        for made, node in (
            (update.old, update.nodes.node_of_old),
            (update.new, update.nodes.node_of_new),
        ):
            w = made.wiring
            for v, k in np.argwhere(w.far >= 0).tolist():
                far = int(w.far[v, k])
                end = int(node[far]), int(w.far_port[v, k])
                self.cables[int(node[v]), int(w.port[v, k])] = end
        self.hosts = self._hosts()

    @cached_property
    def slots(self) -> list[tuple[Slots, ...]]:
        """What changes at each node; repairs, which have messages of their own, need none."""
        return [self.programs.slots(node, self.generation) for node in self.nodes]

    def _hosts(self) -> list[tuple[int, int, int]]:
        """Node, port and address of every host that both builds have."""
        old, new = HostTable.of(self.update.old), HostTable.of(self.update.new)
        kept = kept_hosts(old, new) >= 0
        port = self.update.old.wiring.host_port[old.vertex, old.host]
        node = self.update.nodes.node_of_old[old.vertex]
        return [
            (int(n), int(p), int(a))
            for n, p, a in zip(node[kept], port[kept], old.address[kept], strict=True)
        ]

    def advance(self, node: int, round: int) -> None:
        """Have a node carry out the next round."""
        assert self.done[node] == round - 1
        self.switches[node].apply(messages(self.slots[node], round))
        self.done[node] = round

    def retreat(self, node: int) -> None:
        """Have a node take its last round back."""
        turned = [slots.opposite_move() for slots in self.slots[node]]
        self.switches[node].apply(messages(turned, self.done[node]))
        self.done[node] -= 1

    def worst(self) -> tuple[int, list[str]]:
        """The longest path of all packets between hosts that stay, and what goes wrong."""
        longest, wrong = 0, []
        for node, port, address in self.hosts:
            seen: dict[tuple[int, int], int] = {}
            for source, entry, sender in self.hosts:
                if source == node:
                    continue
                try:
                    start = source, entry, sender, 0
                    hops = self._follow(start, address, (node, port), seen, set())
                except Lost as lost:
                    wrong.append(f"{source} to {node}: {lost}")
                else:
                    longest = max(longest, hops)
        return longest, wrong

    def _follow(self, here, address, home, seen, passing) -> int:
        node, in_port, sender, mark = here
        if here in seen:
            return seen[here]
        if here in passing:
            raise Lost(f"loops at {node}")
        passing.add(here)
        most = 0
        for out in self.switches[node].outcomes(in_port, sender, address, mark):
            if out == DROP:
                raise Lost(f"dropped at {node}, came in on {in_port}")
            if isinstance(out, tuple):
                if (node, out[0]) != home:
                    raise Lost(f"delivered at {node}")
                continue
            mark, port = divmod(out, 1 << MARK_SHIFT)
            if port == in_port:
                self.back.add(node)
            far = *self.cables[node, port], 0, mark
            most = max(most, 1 + self._follow(far, address, home, seen, passing))
        passing.discard(here)
        seen[here] = most
        return most


class Lost(Exception):
    """What becomes of a packet that does not arrive."""


def unchecked(made: Build) -> Build:
    """The same build, in which hosts may send from any address.

    With checks, hosts' packets keep to the minimal path from the first round on where the new build
    has no alternates.
    """
    return replace(made, addressing=replace(made.addressing, source_checks=False))
