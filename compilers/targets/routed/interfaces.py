"""The names that systems have for ports, made from patterns such as `Ethernet{cage}/{lane}`.

The module `port_names` of each system has its `Interfaces`, which say how it names ports, and cites
the vendor's document. A *cage* holds a transceiver. A cage that is *broken out* has several ports,
each with some of its serdes lanes. The inventory says what cages a node type has and may give its
ports other patterns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from compilers.tables.build import Build
from compilers.wiring.node_type_facts import CageBlock, NodeTypeFacts
from inventory.problems import Finding, shown

BRIDGE = "hosts"
"""The bridge that joins the host ports of a Linux switch where it has several. `Interfaces` for
Linux refuse a port of this name."""
PLACEHOLDER = re.compile(r"\{(?P<word>module|cage|lane|port|serdes)(?:\*(?P<factor>[0-9]+))?\}")
"""`{cage}` stands for a number, `{port*4}` for four times a number."""
LANE_PART = re.compile(r"[^}]*\{lane[^}]*\}")
"""`/{lane}` in `Ethernet{cage}/{lane}`: left out in the name of a whole cage."""
ONE_LANE = 25
"""The highest speed in Gb/s whose ports are taken to have one lane, if nothing says how many."""


@dataclass(frozen=True, slots=True)
class PhysicalPort:
    """A port as a system knows it; 0 and "" where the inventory does not say it."""

    name: str
    """Its name."""
    cage: str = ""
    """The name of its cage, if that is broken out."""
    part: int = 0
    """Its number among the ports of the cage, from 0 (the breakout index)."""
    parts: int = 1
    """How many ports the cage is broken out into; 1 if it is not."""
    speed: int = 0
    """Its speed in Gb/s."""
    lanes: int = 0
    """The number of serdes lanes."""
    fec: str = ""
    """Forward error correction: rs, fc or off."""
    mtu: int = 0
    """Bytes of an IP packet."""
    lane_numbers: str = ""
    """The numbers of its lanes in SONiC's platform file."""
    mode: str = ""
    """The breakout mode of its cage in SONiC's platform file."""
    alias: str = ""
    """Its other name in SONiC's platform file."""


class Abbreviation(NamedTuple):
    """How names of ports are abbreviated: `("Ethernet", "Et")` makes `Et4` of `Ethernet4`."""

    beginning: str = ""
    """What names begin with; "" where they are not abbreviated."""
    short_beginning: str = ""
    """What stands in place of the beginning."""


NOT_ABBREVIATED = Abbreviation()
"""Names are written in full."""


class LabNames(NamedTuple):
    """How containerlab names ports: `("Ethernet", "eth", "_")` makes `eth1_1` of `Ethernet1/1`."""

    beginning: str = ""
    """What names of the system begin with; "" where containerlab uses the names as they are."""
    replacement: str = ""
    """What stands in place of the beginning."""
    slash: str = "/"
    """What stands in place of a slash."""


SAME_IN_LAB = LabNames()
"""Containerlab uses the names as they are."""


@dataclass(frozen=True, slots=True)
class Interfaces:
    """How a system names its ports.

    Patterns of names have the placeholders `{port}`, `{module}`, `{cage}`, `{lane}` and `{serdes}`
    for numbers; `{port*4}` stands for four times the number.
    """

    system: str
    """The key of the system's patterns in a node type of the inventory."""
    pattern: re.Pattern[str]
    """Matches a name."""
    required: str
    """What `pattern` requires of a name, in words."""
    advice: str
    """A pattern that a node type may have in the inventory, for messages."""
    default_pattern: str = ""
    """The pattern of names where there is no inventory; "" keeps the names of the build."""
    first: int = 1
    """The number of the first port, module and cage."""
    first_lane: int = 1
    """The number of the first lane."""
    by_serdes: bool = False
    """What `{lane}` stands for in the names of a cage's ports.

    True: the number of the port's first serdes lane, which is 1, 3, 5, 7 for four ports of two
    lanes. A cage that is not broken out has its lane in its name as well: `Ethernet5/1`.

    False: the number of the port in its cage, which is 1, 2, 3, 4. A cage that is not broken out
    has no lane in its name: `Ethernet5`."""
    in_platform_file: bool = False
    """Whether names are in SONiC's platform file."""
    management: str = "eth0"
    """The management port, unless fabric.yaml names another."""
    vrf: str = "mgmt"
    """The management VRF."""
    abbreviation: Abbreviation = NOT_ABBREVIATED
    """How outputs of devices abbreviate names of ports."""
    lab_names: LabNames = SAME_IN_LAB
    """How containerlab names ports."""
    lab_by_number: bool = False
    """Whether the name of a port in containerlab is `eth` and its number, in place of `lab_names`.
    """
    subinterface_abbreviation: Abbreviation = NOT_ABBREVIATED
    """How names of subinterfaces abbreviate those of their ports: ("Ethernet", "Eth") makes
    `Eth4.3` of `Ethernet4`."""
    vlan: str = "Vlan"
    """The beginning of the name of a VLAN's interface."""

    def subinterface(self, name: str, number: int) -> str:
        """The name of a subinterface of a port."""
        beginning, short_beginning = self.subinterface_abbreviation
        return f"{short_beginning}{name.removeprefix(beginning)}.{number}"

    def lab_interface(self, name: str, port: int) -> str:
        """The interface that containerlab wires for a port, by the port's name and number."""
        if self.lab_by_number:
            return f"eth{port}"
        beginning, replacement, slash = self.lab_names
        return replacement + name.removeprefix(beginning).replace("/", slash)

    def named(self, build: Build, target: str = "") -> Build:
        """The build with its ports named as the system names them.

        Args:
            build: what is to be rendered.
            target: a target whose names in node types are preferred to the system's.
        """
        names = tuple(tuple(port.name for port in ports) for ports in self.ports(build, target))
        return replace(build, wiring=replace(build.wiring, port_names=names))

    def ports(self, build: Build, target: str = "") -> list[list[PhysicalPort]]:
        """The ports of each node type, by number; a port without a pattern keeps its name.

        Args:
            build: the build.
            target: a target whose names in node types are preferred to the system's.
        """
        has_inventory = "inventory" in build.inputs
        types = build.hardware.types if build.hardware and has_inventory else None
        pattern = "" if has_inventory else self.default_pattern
        return self.ports_by_type(build.wiring.port_names, types, pattern, target)

    def ports_by_type(
        self,
        names_of_build: Sequence[tuple[str, ...]],
        types: Sequence[NodeTypeFacts] | None,
        default_pattern: str,
        target: str = "",
    ) -> list[list[PhysicalPort]]:
        """The ports of each node type, by number.

        Args:
            names_of_build: the names of ports in the build, by node type.
            types: the node types of an inventory; None: there is none.
            default_pattern: the pattern of names without an inventory.
            target: a target whose names in node types are preferred to the system's.
        """
        if types is None:
            return [
                [
                    PhysicalPort(self._name(default_pattern, {"port": number}) or name)
                    for number, name in enumerate(names, self.first)
                ]
                for names in names_of_build
            ]
        return [
            list(self._ports_of_node_type(facts, names, target))
            for facts, names in zip(types, names_of_build, strict=True)
        ]

    def _ports_of_node_type(
        self, facts: NodeTypeFacts, names_of_build: tuple[str, ...], target: str
    ) -> Iterator[PhysicalPort]:
        """Yield the ports of a node type, block by block of its cages.

        Args:
            facts: the node type.
            names_of_build: the names of its ports in the build, for blocks without a pattern.
            target: a target whose names are preferred to the system's.
        """
        cages = ports = serdes = 0  # how many cages, ports and serdes lanes precede the cage
        for block in facts.blocks:
            pattern = block.names.get(target) or block.names.get(self.system, "")
            for module, cage in product(range(block.modules), range(block.count)):
                # Cages are numbered in their module if names have its number, else in the switch.
                preceding_cages = cage if "{module}" in pattern else cages
                numbers = {
                    "module": block.first_module + module,
                    "cage": self.first + preceding_cages,
                    "port": self.first + ports,
                    "serdes": self.first + serdes,
                }
                for physical in self._ports_of_cage(block, pattern, numbers):
                    if not physical.name:
                        physical = replace(physical, name=names_of_build[ports])
                    if self.in_platform_file and facts.platform:
                        physical = _as_in_platform(physical, facts.platform[ports])
                    yield physical
                    ports += 1
                serdes += block.breakout * block.lanes
                cages += 1

    def _ports_of_cage(
        self, block: CageBlock, pattern: str, numbers: Mapping[str, int]
    ) -> Iterator[PhysicalPort]:
        """Yield the ports of a cage; their names are "" without a pattern.

        Args:
            block: the block that the cage is of.
            pattern: the pattern of the names of its ports.
            numbers: what stands for each placeholder but `{lane}` at the first port of the cage.
        """
        cage_name = self._name(LANE_PART.sub("", pattern), numbers)
        is_split = block.breakout > 1
        for breakout_index in range(block.breakout):
            name = cage_name
            if is_split or self.by_serdes:
                lanes_per_port = block.lanes if self.by_serdes else 1
                numbers_of_port = {
                    **numbers,
                    "port": numbers["port"] + breakout_index,
                    "serdes": numbers["serdes"] + breakout_index * block.lanes,
                    "lane": self.first_lane + breakout_index * lanes_per_port,
                }
                name = self._name(pattern, numbers_of_port)
            yield PhysicalPort(
                name=name,
                cage=cage_name if is_split else "",
                part=breakout_index,
                parts=block.breakout,
                speed=block.speed,
                lanes=block.lanes,
                fec=block.fec,
                mtu=block.mtu,
            )

    def _name(self, pattern: str, numbers: Mapping[str, int]) -> str:
        """The name that a pattern makes, with a number in the place of each placeholder.

        Args:
            pattern: the pattern.
            numbers: by the word of a placeholder, its number before a factor; the system's first
                number stands for a word that is left out.
        """

        def text_of(placeholder: re.Match[str]) -> str:
            word, factor = placeholder["word"], int(placeholder["factor"] or 1)
            first = self.first_lane if word == "lane" else self.first
            return str(numbers.get(word, first) * factor)

        return PLACEHOLDER.sub(text_of, pattern)

    def port_name_findings(self, build: Build) -> Iterator[tuple[int, Finding]]:
        """The node types whose ports in use have names that the system cannot have, or equal names.

        Args:
            build: the build, with ports named as the system names them.

        Yields:
            The number of a node type, and the finding.
        """
        wiring, types = build.wiring, build.hardware.types if build.hardware else ()
        for type_number, (type_name, names) in enumerate(
            zip(wiring.type_names, wiring.port_names, strict=True)
        ):
            is_of_type = wiring.node_type == type_number
            ports = wiring.port[is_of_type].ravel(), wiring.host_port[is_of_type].ravel()
            port_numbers = np.unique(np.concatenate(ports))  # from 1; 0 is no port
            in_use = [names[port - 1] for port in port_numbers[port_numbers > 0].tolist()]
            impossible = [name for name in in_use if not self.pattern.fullmatch(name)]
            repeated = [name for name, count in Counter(in_use).items() if count > 1]
            if bad_names := impossible or repeated:
                more = f" and {len(bad_names) - 1} more" if len(bad_names) > 1 else ""
                facts = types[type_number] if types else None
                advice = self._names_advice(facts, names.index(bad_names[0]))
                finding = Finding(
                    path=("node_types", type_name, "names"),
                    required=self.required if impossible else "names that differ",
                    given=f"{shown(bad_names[0])}{more}",
                    todo=f"say what the switch calls them, such as {advice}, "
                    "or choose another target",
                )
                yield type_number, finding

    def _names_advice(self, facts: NodeTypeFacts | None, port_index: int) -> str:
        """What to write into the inventory for the names of a node type's ports.

        Args:
            facts: the node type; None where it is not known.
            port_index: the index of the port whose name is refused, from 0.
        """
        if facts is None:
            return f'`names: {{{self.system}: "{self.advice}"}}`'
        pattern_of_port = [
            self._pattern_advice(block)
            for block in facts.blocks
            for _ in range(block.modules * block.count * block.breakout)
        ]
        pattern, where = pattern_of_port[port_index], ""
        # Some blocks need a pattern with lanes, and others one without.
        if len({*pattern_of_port}) > 1:
            if self.by_serdes:
                where = " at their block"
            else:  # names of whole cages leave the lane of a pattern out, so one pattern fits all
                pattern = self.advice
        return f'`names: {{{self.system}: "{pattern}"}}`{where}'

    def _pattern_advice(self, block: CageBlock) -> str:
        """The pattern that a block of ports may have: with `{lane}` only if its names need it."""
        is_single = block.lanes == 1 or (not block.lanes and 0 < block.speed <= ONE_LANE)
        has_lanes = block.breakout > 1 or (self.by_serdes and not is_single)
        return self.advice if has_lanes else LANE_PART.sub("", self.advice)


def _as_in_platform(port: PhysicalPort, row: Sequence[str]) -> PhysicalPort:
    """A port with what SONiC's platform file says of it.

    Args:
        port: as the node type has it.
        row: its name, lanes, cage, breakout mode and alias, as `NodeTypeFacts.platform` has them;
            the alias may be missing.
    """
    name, lanes, cage, mode, *alias = row
    return replace(port, name=name, lane_numbers=lanes, cage=cage, mode=mode, alias="".join(alias))
