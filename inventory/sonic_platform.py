"""Read SONiC's list of a platform's ports, platform.json or port_config.ini.

Names and lanes of ports differ from platform to platform, so they are read from this file. It is
read as SONiC's portconfig.py (src/sonic-config-engine of sonic-buildimage) does: the first part of
a cage is EthernetN, and the number of the next part is larger by the lanes of a part. A key of
`breakout_modes` such as `2x200G[100G](4)` has the parts, the speed of each, other speeds, and the
lanes if not all are used; `+` joins parts of several kinds. A speed without G is in Mbit/s.

`NodeType.platform_ports` calls `platform_ports` with the cages of a node type. An *entry* of the
file is a cage in platform.json, and a port in port_config.ini.
https://github.com/sonic-net/SONiC/blob/master/doc/dynamic-port-breakout/sonic-dynamic-port-breakout-HLD.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

from inventory.problems import shown
from inventory.values import Model, refusal

GROUP = re.compile(r"([0-9]{1,6})x([0-9]{1,6}G?)(?:\[(?:[0-9]{1,6}G?,?)*\])?(?:\(([0-9]{1,6})\))?")
"""Ports of one kind in a mode, such as `2x200G[100G](4)`. As in SONiC, lanes after other speeds
with a blank are ignored."""
OTHER_SPEEDS = re.compile(r"\[([0-9G, ]*)\]")
"""The other speeds of a mode, such as `[100G,50G]`."""
NAME = re.compile(r"Ethernet([0-9]{1,9})")
"""The name of a port, such as `Ethernet4`."""
INTERNAL = re.compile(r"Ethernet-[A-Za-z]+[0-9]+")
"""The name of a port inside a switch, between chips or for recirculation: `Ethernet-Rec0`."""
OUTER_ROLES = {"", "Ext"}
"""The roles of ports on the face plate, in port_config.ini."""
DIGITS = re.compile(r"[0-9]{1,9}")
"""A number without a unit, such as that of a lane, or a speed in Mbit/s."""
INI_COLUMNS = "name", "lanes", "alias", "index"
"""The columns of port_config.ini without a first line that names them (portconfig.py of SONiC)."""
PLATFORM_FILES = "SONiC's platform.json or port_config.ini, with names and lanes of ports"
"""What the file should be, in messages."""
PLATFORM_REMEDY = "take it from device/ of sonic-buildimage, or from the switch"
"""Where to find the file, in messages."""
MEGABITS = 1000
"""Mbit/s in a Gbit/s."""


class PlatformEntry(Model):
    """An entry of SONiC's platform file."""

    name: str
    """The name of the entry."""
    lanes: tuple[str, ...]
    """The lanes of its cage."""
    modes: tuple[str, ...] | None = None
    """The breakout modes of the cage; None in port_config.ini, which lists ports."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """The aliases of the ports of each mode, or of the port."""


@dataclass(frozen=True, slots=True)
class PlatformPort:
    """A port of a node type, in SONiC."""

    name: str
    """The name of the port."""
    lanes: str
    """Its lanes, separated by commas."""
    cage: str = ""
    """The name of its cage."""
    mode: str = ""
    """The breakout mode of the cage, if the port is one of several parts."""
    alias: str = ""
    """The port's alias, which LLDP sends."""


@dataclass(frozen=True, slots=True)
class Cage:
    """A cage of a node type."""

    parts: int
    """How many ports it is split into."""
    speed: int
    """The speed of each port in Gbit/s; 0 if unknown."""
    lanes: int
    """The lanes of each port; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class PortGroup:
    """Ports of one kind in a breakout mode."""

    ports: int
    """The number of ports."""
    speed: int
    """The default speed of each port in Mbit/s."""
    speeds: frozenset[int]
    """All speeds that a port may have, in Mbit/s."""
    lanes: int
    """The lanes of each port."""


class _BadEntryError(ValueError):
    """An entry cannot be read; the text says what is required of which entry."""


def _read_platform_file(value: Any, info: ValidationInfo) -> Any:
    """The entries of the file of this name, relative to the inventory's folder."""
    if not isinstance(value, str):
        return value
    try:
        text = (Path((info.context or {}).get("folder", "")) / value).read_text("utf-8")
        entries = tuple(_json(text) if value.endswith(".json") else _ini(text))
    except (OSError, UnicodeDecodeError) as error:
        raise refusal("a file that can be read", getattr(error, "strerror", "") or "") from None
    except _BadEntryError as error:
        raise refusal(str(error), PLATFORM_REMEDY) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise refusal(PLATFORM_FILES, PLATFORM_REMEDY) from None
    if not entries:
        todo = "name port_config.ini of the hardware's folder, which lists them"
        raise refusal("a file that lists ports of the face plate", todo)
    return tuple(sorted(entries, key=lambda entry: _number(entry.name)))


def _json(text: str) -> Iterator[PlatformEntry]:
    """The entries of platform.json, without ports inside the switch.

    Raises:
        _BadEntryError: an entry lacks lanes or modes.
    """
    for name, entry in json.loads(text)["interfaces"].items():
        if INTERNAL.fullmatch(name):
            continue
        if "default_brkout_mode" in entry and "lanes" not in entry:
            raise _BadEntryError("platform.json, which has the lanes, rather than hwsku.json")
        modes = entry.get("breakout_modes")
        if not isinstance(modes, dict):
            raise _BadEntryError(f"breakout_modes at {shown(name)}")
        yield PlatformEntry(
            name=_checked_name(name),
            lanes=_lanes(entry.get("lanes"), name),
            modes=tuple(modes),
            aliases=tuple(map(_aliases, modes.values())),
        )


def _aliases(names: object) -> tuple[str, ...]:
    """The aliases of a mode: a list, or the one text that some files have instead."""
    if isinstance(names, str):
        return tuple(name.strip(" \t") for name in names.split(","))
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _ini(text: str) -> Iterator[PlatformEntry]:
    """The entries of port_config.ini, without ports inside the switch.

    Raises:
        _BadEntryError: an entry has no name or no lanes.
    """
    columns: Sequence[str] = INI_COLUMNS
    for line in text.split("\n"):
        words = line.split()
        if line.startswith("#"):
            head = line.strip("#").split()
            if {"name", "lanes"} <= set(head):
                columns = head
        elif words:
            values = dict(zip(columns, words, strict=False))
            name = values.get("name", words[0])
            if not INTERNAL.fullmatch(name) and values.get("role", "") in OUTER_ROLES:
                alias = values.get("alias", "")
                yield PlatformEntry(
                    name=_checked_name(name),
                    lanes=_lanes(values.get("lanes"), name),
                    aliases=((alias,),) if alias else (),
                )


def _checked_name(name: str) -> str:
    """The name of an entry, which must be `Ethernet` and a number."""
    if not NAME.fullmatch(name):
        raise _BadEntryError(f"ports named Ethernet and a number, not {shown(name)}")
    return name


def _number(name: str) -> int:
    """The number in the name of a port."""
    return int(name.removeprefix("Ethernet"))


def _lanes(text: object, name: str) -> tuple[str, ...]:
    """The lanes of an entry; some files have a comma after the last lane."""
    lanes = [lane.strip(" \t") for lane in text.split(",")] if isinstance(text, str) else []
    lanes = [lane for lane in lanes if lane]
    if not lanes or not all(map(DIGITS.fullmatch, lanes)):
        raise _BadEntryError(f"lanes at {shown(name)}, numbers with commas between them")
    return tuple(lanes)


PlatformFile = Annotated[
    tuple[PlatformEntry, ...],
    BeforeValidator(_read_platform_file),
    WithJsonSchema({"type": "string"}),
]
"""The entries of SONiC's platform file; an inventory has the name of the file."""


def platform_ports(
    entries: Sequence[PlatformEntry], cages: Iterable[Cage]
) -> Iterator[PlatformPort]:
    """The ports of a node type as SONiC's platform file names them, cage by cage.

    Raises:
        ValueError: the file does not fit the type; with what is required and what the file has.
    """
    remaining = iter(entries)
    for number, cage in enumerate(cages, 1):
        count = 1 if entries[0].modes is not None else cage.parts
        cage_entries = list(islice(remaining, count))
        if len(cage_entries) < count:
            raise ValueError(f"a file with an entry for cage {number}", f"{len(entries)} entries")
        if cage_entries[0].modes is None:
            yield from _ports_of_entries(cage_entries, cage)
        else:
            yield from _ports_of_mode(cage_entries[0], cage)


def _ports_of_entries(entries: Iterable[PlatformEntry], cage: Cage) -> Iterator[PlatformPort]:
    """The ports of a cage in port_config.ini, which has a line for each port."""
    for entry in entries:
        if cage.lanes not in (0, len(entry.lanes)):
            raise _other_lanes(cage, entry.name, len(entry.lanes))
        alias = "".join(name for names in entry.aliases for name in names)
        yield PlatformPort(entry.name, ",".join(entry.lanes), alias=alias)


def _ports_of_mode(entry: PlatformEntry, cage: Cage) -> Iterator[PlatformPort]:
    """The ports of a cage by its entry in platform.json."""
    mode, groups = _choose_mode(entry, cage)
    aliases = dict(zip(entry.modes or (), entry.aliases, strict=False)).get(mode, ())
    first, lane, part = _number(entry.name), 0, 0
    for group in groups:
        for _ in range(group.ports):
            yield PlatformPort(
                name=f"Ethernet{first + lane}",
                lanes=",".join(entry.lanes[lane : lane + group.lanes]),
                cage=entry.name if cage.parts > 1 else "",
                mode=mode if cage.parts > 1 else "",
                alias=aliases[part] if part < len(aliases) else "",
            )
            lane, part = lane + group.lanes, part + 1


class _Mode(NamedTuple):
    """A breakout mode of a cage."""

    name: str
    """The key of `breakout_modes`."""
    groups: tuple[PortGroup, ...]
    """The ports of the mode."""


def _choose_mode(entry: PlatformEntry, cage: Cage) -> _Mode:
    """The mode of an entry that splits a cage as its node type does.

    Raises:
        ValueError: there is no such mode, or there are several, with different lanes.
    """
    modes = {mode: port_groups(mode, len(entry.lanes)) for mode in entry.modes or ()}
    fitting = {mode: groups for mode, groups in modes.items() if _fits(groups, cage)}
    if not fitting:
        required = f"a cage with a mode {cage.parts}x{cage.speed or ''}G"
        raise ValueError(required, f"{entry.name} with {', '.join(modes)}")
    with_lanes = {
        mode: groups
        for mode, groups in fitting.items()
        if cage.lanes == 0 or all(group.lanes == cage.lanes for group in groups)
    }
    if not with_lanes:
        lanes = next(iter(fitting.values()))[0].lanes
        raise _other_lanes(cage, entry.name, lanes)
    ranks = {mode: _rank(groups, cage, len(entry.lanes)) for mode, groups in with_lanes.items()}
    best = [mode for mode, rank in ranks.items() if rank == min(ranks.values())]
    if len({tuple((group.ports, group.lanes) for group in with_lanes[mode]) for mode in best}) > 1:
        required = "`speed` and `lanes` of the node type that choose one mode of a cage"
        raise ValueError(required, f"{entry.name} with {', '.join(best)}")
    return _Mode(best[0], with_lanes[best[0]])


def _fits(groups: Sequence[PortGroup], cage: Cage) -> bool:
    """Whether a mode has as many ports as a cage, at its speed."""
    return sum(group.ports for group in groups) == cage.parts and all(
        cage.speed == 0 or cage.speed * MEGABITS in group.speeds for group in groups
    )


class _Rank(NamedTuple):
    """The order in which modes that fit a cage are preferred, the least first."""

    is_mixed: bool
    """Whether the ports differ."""
    needs_speed: bool
    """Whether the ports need another speed than the default."""
    leaves_lanes: bool
    """Whether the ports leave lanes of the cage unused."""


def _rank(groups: Sequence[PortGroup], cage: Cage, lanes: int) -> _Rank:
    """The rank of a mode for a cage with so many lanes."""
    speed = cage.speed * MEGABITS
    return _Rank(
        is_mixed=len({(group.speed, group.lanes) for group in groups}) > 1,
        needs_speed=speed > 0 and any(group.speed != speed for group in groups),
        leaves_lanes=sum(group.ports * group.lanes for group in groups) < lanes,
    )


def _other_lanes(cage: Cage, name: str, lanes: int) -> ValueError:
    """The error of an entry with another number of lanes than its cage."""
    return ValueError(f"ports of {cage.lanes} lanes", f"{name}, which has {lanes}")


def port_groups(mode: str, lanes: int) -> tuple[PortGroup, ...]:
    """The ports of a breakout mode; () if SONiC does not accept the mode.

    Args:
        mode: a key of `breakout_modes`, such as `1x200G[100G](4)+4x50G(4)`.
        lanes: the lanes of the cage.
    """
    groups = []
    for text in mode.split("+"):
        match = GROUP.match(text)
        ports = int(match[1]) if match else 0
        if match is None or ports == 0:
            return ()
        other_speeds = ",".join(OTHER_SPEEDS.findall(text)).split(",")
        speeds = [_megabits(speed.strip()) for speed in (match[2], *other_speeds)]
        lanes_of_group = int(match[3] or 0) or lanes
        groups.append(
            PortGroup(
                ports=ports,
                speed=speeds[0],
                speeds=frozenset(speeds) - {0},
                lanes=lanes_of_group // ports,
            )
        )
    used = sum(group.ports * group.lanes for group in groups)
    fits = used <= lanes and all(group.lanes for group in groups)
    return tuple(groups) if fits else ()


def _megabits(speed: str) -> int:
    """A speed such as `25G` or `1000` in Mbit/s; 0 for another text."""
    if speed.endswith("G"):
        return int(speed[:-1]) * MEGABITS if DIGITS.fullmatch(speed[:-1]) else 0
    return int(speed) if DIGITS.fullmatch(speed) else 0
