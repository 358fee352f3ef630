"""Names of ports in each system.

Where cages are broken out, the parts are numbered as the vendor documents it, which the folder of
each system cites.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from compilers.tables.build import Build
from compilers.wiring.hardware import PortFacts
from inventory.problems import Finding, shown

BRIDGE = "hosts"
"""The interface for the host ports of a Linux switch where it has several."""
PLACEHOLDER = re.compile(r"\{(module|cage|lane|port|serdes)(?:\*([0-9]+))?\}")
LANE_PART = re.compile(r"[^}]*\{lane[^}]*\}")


@dataclass(frozen=True, slots=True)
class PhysicalPort:
    """A port as a system knows it; 0 and "" where the inventory does not say it.

    cage: what its cage is called where that is broken out into `parts` ports, this one number
    `part` from 0. speed: Gb/s; lanes: how many; mtu: bytes of an IP packet; fec: rs, fc or off.
    lane_numbers, mode, alias: its lanes, how its cage is broken out, and its other name, in SONiC's
    platform file.
    """

    name: str
    cage: str = ""
    part: int = 0
    parts: int = 1
    speed: int = 0
    lanes: int = 0
    fec: str = ""
    mtu: int = 0
    lane_numbers: str = ""
    mode: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Interfaces:
    """The names that a system has for ports.

    system: the key of its names in a node type. pattern: a whole name; required: the same for
    people. advice: what a node type may say. usual: the names where no inventory says any, "" keeps
    the build's own. first, first_lane: where the system counts from. by_serdes: {lane} is the first
    serdes lane of a part, and is in the name of a whole cage, too. in_platform_file: names
    are in SONiC's platform file. management, vrf: the usual port of management, and its VRF.
    short: how names begin, and what some outputs have in its place. lab: likewise what containerlab
    has for the beginning and for each slash; lab_by_number: it has `eth` and the port's number.
    inner: likewise what names of subinterfaces have for the beginning. vlan: how the name of the
    interface of a VLAN begins.
    """

    system: str
    pattern: re.Pattern[str]
    required: str
    advice: str
    usual: str = ""
    first: int = 1
    first_lane: int = 1
    by_serdes: bool = False
    in_platform_file: bool = False
    management: str = "eth0"
    vrf: str = "mgmt"
    short: tuple[str, str] = ("", "")
    lab: tuple[str, str, str] = ("", "", "/")
    lab_by_number: bool = False
    inner: tuple[str, str] = ("", "")
    vlan: str = "Vlan"

    def within(self, name: str, number: int) -> str:
        """The subinterface of a port, by its number."""
        begins, other = self.inner
        return f"{other}{name.removeprefix(begins)}.{number}"

    def in_lab(self, name: str, port: int) -> str:
        """The interface that containerlab wires for a port: its name and number on the node."""
        if self.lab_by_number:
            return f"eth{port}"
        begins, other, slash = self.lab
        return other + name.removeprefix(begins).replace("/", slash)

    def named(self, build: Build, target: str = "") -> Build:
        """The build with its ports named as the system names them.

        Args:
            build: what is to be rendered.
            target: whose names go before the system's.
        """
        names = tuple(tuple(port.name for port in ports) for ports in self.ports(build, target))
        return replace(build, wiring=replace(build.wiring, port_names=names))

    def ports(self, build: Build, target: str = "") -> list[list[PhysicalPort]]:
        """The ports of each node type by number; those without one keep the build's own name."""
        given = "inventory" in build.inputs
        types = build.hardware.types if build.hardware and given else None
        return self.of_types(build.wiring.port_names, types, "" if given else self.usual, target)

    def of_types(
        self,
        own: Sequence[tuple[str, ...]],
        types: Sequence[PortFacts] | None,
        usual: str,
        target: str = "",
    ) -> list[list[PhysicalPort]]:
        """See `ports`: by the own names and the facts of each node type, or the usual pattern."""
        if types is None:
            return [
                [PhysicalPort(self._filled(usual, port=n) or name) for n, name in enumerate(names)]
                for names in own
            ]
        known = zip(types, own, strict=True)
        return [list(self._of_type(facts, names, target)) for facts, names in known]

    def _of_type(
        self, facts: PortFacts, own: tuple[str, ...], target: str
    ) -> Iterator[PhysicalPort]:
        cage = port = serdes = 0
        for block in facts.blocks:
            pattern = block.names.get(target) or block.names.get(self.system, "")
            for module, number in product(range(block.modules), range(block.count)):
                place = {
                    "module": block.first_module + module - self.first,
                    "cage": number if "{module}" in pattern else cage,
                }
                whole = self._filled(LANE_PART.sub("", pattern), **place, port=port, serdes=serdes)
                for part in range(block.breakout):
                    lane = part * (block.lanes if self.by_serdes else 1)
                    split = block.breakout > 1
                    name = self._filled(pattern, **place, lane=lane, port=port, serdes=serdes)
                    found = PhysicalPort(
                        name=(name if split or self.by_serdes else whole) or own[port],
                        cage=whole if split else "",
                        part=part,
                        parts=block.breakout,
                        speed=block.speed,
                        lanes=block.lanes,
                        fec=block.fec,
                        mtu=block.mtu,
                    )
                    if self.in_platform_file and facts.platform:
                        name, lanes, parent, mode, *alias = facts.platform[port]
                        found = replace(
                            found,
                            name=name,
                            lane_numbers=lanes,
                            cage=parent,
                            mode=mode,
                            alias="".join(alias),
                        )
                    yield found
                    port, serdes = port + 1, serdes + block.lanes
                cage += 1

    def _filled(self, pattern: str, **numbers: int) -> str:
        def number(match: re.Match[str]) -> str:
            first = self.first_lane if match[1] == "lane" else self.first
            return str((numbers.get(match[1], 0) + first) * int(match[2] or 1))

        return PLACEHOLDER.sub(number, pattern)

    def wrong_names(self, build: Build) -> Iterator[Finding]:
        """The node types that have ports in use without a name of the system, or without their own.

        Args:
            build: ports named as the system names them.
        """
        w = build.wiring
        for t, (kind, names) in enumerate(zip(w.type_names, w.port_names, strict=True)):
            here = w.node_type == t
            used = np.unique(np.concatenate((w.port[here].ravel(), w.host_port[here].ravel())))
            in_use = [names[port - 1] for port in used[used > 0].tolist()]
            wrong = [name for name in in_use if not self.pattern.fullmatch(name)]
            twice = [name for name, count in Counter(in_use).items() if count > 1]
            if found := wrong or twice:
                more = f" and {len(found) - 1} more" * (len(found) > 1)
                yield Finding(
                    path=("node_types", kind, "names"),
                    required=self.required if wrong else "names that differ",
                    given=f"{shown(found[0])}{more}",
                    todo=f"say what the switch calls them, such as "
                    f'`names: {{{self.system}: "{self.advice}"}}`, or choose another target',
                )
