"""SONiC's own list of a platform's ports: platform.json or port_config.ini.

Names and lanes differ from platform to platform, so they are read and never worked out. They are
read as SONiC's portconfig.py (src/sonic-config-engine of sonic-buildimage) reads them: the parts of
a cage are EthernetN, and N plus the lanes of a part for the next. A key of `breakout_modes` such as
`2x200G[100G](4)` has the parts, the speed of each, other speeds, and the lanes if not all are used;
`+` joins parts of several kinds. A speed without G is in Mbit/s.
https://github.com/sonic-net/SONiC/blob/master/doc/dynamic-port-breakout/sonic-dynamic-port-breakout-HLD.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

from inventory.problems import shown
from inventory.values import Model, refusal

GROUP = re.compile(r"([0-9]{1,6})x([0-9]{1,6}G?)(?:\[(?:[0-9]{1,6}G?,?)*\])?(?:\(([0-9]{1,6})\))?")
"""Ports of one kind in a mode. SONiC takes lanes from here only: not behind a blank in brackets."""
OTHER_SPEEDS = re.compile(r"\[([0-9G, ]*)\]")
NAME = re.compile(r"Ethernet([0-9]{1,9})")
INTERNAL = re.compile(r"Ethernet-[A-Za-z]+[0-9]+")
"""Ports between the chips of a switch, and those that send packets round again: Ethernet-Rec0."""
OUTER_ROLES = {"", "Ext"}
LANE = re.compile(r"[0-9]{1,9}")
INI = "name", "lanes", "alias", "index"
"""The columns of port_config.ini unless its first line says others (portconfig.py of SONiC)."""
FILES = "SONiC's platform.json or port_config.ini, with names and lanes of ports"
WHERE = "take it from device/ of sonic-buildimage, or from the switch"
MEGABITS = 1000


class PlatformEntry(Model):
    """An entry of SONiC's platform file."""

    name: str
    """The name of the entry."""
    lanes: tuple[str, ...]
    """The lanes of its cage."""
    modes: tuple[str, ...] | None = None
    """How the cage may be split; None in port_config.ini, which lists ports."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """The aliases of the ports of each mode, or of the port."""


@dataclass(frozen=True, slots=True)
class PlatformPort:
    """A port as SONiC calls it."""

    name: str
    """The name of the port."""
    lanes: str
    """Its lanes, separated by commas."""
    cage: str = ""
    """The name of its cage."""
    mode: str = ""
    """How the cage is broken out, if the port is one of several parts."""
    alias: str = ""
    """Its other name, which LLDP sends."""


@dataclass(frozen=True, slots=True)
class Cage:
    """A cage by its node type."""

    parts: int
    """The ports that it is split into."""
    speed: int
    """The speed of each; 0 if unknown."""
    lanes: int
    """The lanes of each; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class PortGroup:
    """Ports of one kind in a breakout mode."""

    ports: int
    """How many."""
    speed: int
    """Of each in Mbit/s, unless the switch is told another one."""
    speeds: frozenset[int]
    """All speeds that it may have, in Mbit/s."""
    lanes: int
    """Of each."""


class _BadEntryError(ValueError):
    """An entry that is not read: what is required of it, and which entry it is."""


def _read(value: Any, info: ValidationInfo) -> Any:
    """The entries of the file of that name, relative to the inventory's folder."""
    if not isinstance(value, str):
        return value
    try:
        text = (Path((info.context or {}).get("folder", "")) / value).read_text("utf-8")
        entries = tuple(_json(text) if value.endswith(".json") else _ini(text))
    except (OSError, UnicodeDecodeError) as error:
        raise refusal("a file that can be read", getattr(error, "strerror", "") or "") from None
    except _BadEntryError as error:
        raise refusal(str(error), WHERE) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise refusal(FILES, WHERE) from None
    if not entries:
        todo = "name port_config.ini of the hardware's folder, which lists them"
        raise refusal("a file that lists ports of the face plate", todo)
    return tuple(sorted(entries, key=lambda entry: _number(entry.name)))


def _json(text: str) -> Iterator[PlatformEntry]:
    for name, entry in json.loads(text)["interfaces"].items():
        if INTERNAL.fullmatch(name):
            continue
        if "default_brkout_mode" in entry and "lanes" not in entry:
            raise _BadEntryError("platform.json, which has the lanes, rather than hwsku.json")
        modes = entry.get("breakout_modes")
        if not isinstance(modes, dict):
            raise _BadEntryError(f"breakout_modes at {shown(name)}")
        yield PlatformEntry(
            name=_named(name),
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
    columns: Sequence[str] = INI
    for line in text.split("\n"):
        words = line.split()
        if line.startswith("#"):
            head = line.strip("#").split()
            columns = head if {"name", "lanes"} <= set(head) else columns
        elif words:
            values = dict(zip(columns, words, strict=False))
            name = values.get("name", words[0])
            if not INTERNAL.fullmatch(name) and values.get("role", "") in OUTER_ROLES:
                alias = values.get("alias", "")
                yield PlatformEntry(
                    name=_named(name),
                    lanes=_lanes(values.get("lanes"), name),
                    aliases=((alias,),) if alias else (),
                )


def _named(name: str) -> str:
    if not NAME.fullmatch(name):
        raise _BadEntryError(f"ports named Ethernet and a number, not {shown(name)}")
    return name


def _number(name: str) -> int:
    return int(name.removeprefix("Ethernet"))


def _lanes(text: object, name: str) -> tuple[str, ...]:
    """The numbers of lanes; some files have a comma behind the last one."""
    lanes = [lane.strip(" \t") for lane in text.split(",")] if isinstance(text, str) else []
    lanes = [lane for lane in lanes if lane]
    if not lanes or not all(map(LANE.fullmatch, lanes)):
        raise _BadEntryError(f"lanes at {shown(name)}, numbers with commas between them")
    return tuple(lanes)


PlatformFile = Annotated[
    tuple[PlatformEntry, ...], BeforeValidator(_read), WithJsonSchema({"type": "string"})
]


def platform_ports(
    entries: Sequence[PlatformEntry], cages: Iterable[Cage]
) -> Iterator[PlatformPort]:
    """The ports of a node type as its platform's file has them, cage by cage in its order.

    Raises:
        ValueError: (what the file must have, what it has) where the two do not fit.
    """
    left = iter(entries)
    for number, cage in enumerate(cages, 1):
        rows = 1 if entries[0].modes is not None else cage.parts
        cage_entries = [entry for _, entry in zip(range(rows), left, strict=False)]
        if len(cage_entries) < rows:
            raise ValueError(f"a file with an entry for cage {number}", f"{len(entries)} entries")
        if cage_entries[0].modes is None:
            yield from _listed(cage_entries, cage)
        else:
            yield from _split(cage_entries[0], cage)


def _listed(entries: Iterable[PlatformEntry], cage: Cage) -> Iterator[PlatformPort]:
    """The parts of a cage in port_config.ini, which has a line for each."""
    for entry in entries:
        if cage.lanes not in (0, len(entry.lanes)):
            raise ValueError(*_other_lanes(cage, entry.name, len(entry.lanes)))
        alias = "".join(name for names in entry.aliases for name in names)
        yield PlatformPort(entry.name, ",".join(entry.lanes), alias=alias)


def _split(entry: PlatformEntry, cage: Cage) -> Iterator[PlatformPort]:
    """The parts of an entry of platform.json."""
    mode, groups = _chosen(entry, cage)
    aliases = dict(zip(entry.modes or (), entry.aliases, strict=False)).get(mode, ())
    first, lane, part = _number(entry.name), 0, 0
    split = (entry.name, mode) if cage.parts > 1 else ("", "")
    for group in groups:
        for _ in range(group.ports):
            lanes = ",".join(entry.lanes[lane : lane + group.lanes])
            alias = "".join(aliases[part : part + 1])
            yield PlatformPort(f"Ethernet{first + lane}", lanes, *split, alias=alias)
            lane, part = lane + group.lanes, part + 1


def _chosen(entry: PlatformEntry, cage: Cage) -> tuple[str, tuple[PortGroup, ...]]:
    """The mode of an entry that gives a cage what its node type says.

    Raises:
        ValueError: (required, given): none does, or several do, with other lanes each.
    """
    modes = {mode: port_groups(mode, len(entry.lanes)) for mode in entry.modes or ()}
    fitting = {mode: groups for mode, groups in modes.items() if _fits(groups, cage)}
    if not fitting:
        required = f"a cage with a mode {cage.parts}x{cage.speed or ''}G"
        raise ValueError(required, f"{entry.name} with {', '.join(modes)}")
    right = {
        mode: groups
        for mode, groups in fitting.items()
        if cage.lanes == 0 or all(group.lanes == cage.lanes for group in groups)
    }
    if not right:
        lanes = next(iter(fitting.values()))[0].lanes
        raise ValueError(*_other_lanes(cage, entry.name, lanes))
    ranks = {mode: _rank(groups, cage, len(entry.lanes)) for mode, groups in right.items()}
    best = [mode for mode, rank in ranks.items() if rank == min(ranks.values())]
    if len({tuple((group.ports, group.lanes) for group in right[mode]) for mode in best}) > 1:
        required = "`speed` and `lanes` of the node type that choose one mode of a cage"
        raise ValueError(required, f"{entry.name} with {', '.join(best)}")
    return best[0], right[best[0]]


def _fits(groups: Sequence[PortGroup], cage: Cage) -> bool:
    """Whether a mode has the parts of a cage, at its speed."""
    return sum(group.ports for group in groups) == cage.parts and all(
        cage.speed == 0 or cage.speed * MEGABITS in group.speeds for group in groups
    )


def _rank(groups: Sequence[PortGroup], cage: Cage, lanes: int) -> tuple[bool, bool, bool]:
    """Least for ports that are alike, have their speed untold, and use all lanes."""
    mixed = len({(group.speed, group.lanes) for group in groups}) > 1
    told = cage.speed > 0 and any(group.speed != cage.speed * MEGABITS for group in groups)
    return mixed, told, sum(group.ports * group.lanes for group in groups) < lanes


def _other_lanes(cage: Cage, name: str, lanes: int) -> tuple[str, str]:
    return f"ports of {cage.lanes} lanes", f"{name}, which has {lanes}"


def port_groups(mode: str, lanes: int) -> tuple[PortGroup, ...]:
    """The ports of a breakout mode; none where SONiC does not take it.

    Args:
        mode: a key of `breakout_modes`, such as `1x200G[100G](4)+4x50G(4)`.
        lanes: of the cage.
    """
    groups = []
    for text in mode.split("+"):
        match = GROUP.match(text)
        ports = int(match[1]) if match else 0
        if match is None or ports == 0:
            return ()
        others = ",".join(OTHER_SPEEDS.findall(text)).split(",")
        speeds = [_megabits(speed.strip()) for speed in (match[2], *others)]
        shared = int(match[3] or 0) or lanes
        groups.append(PortGroup(ports, speeds[0], frozenset(speeds) - {0}, shared // ports))
    used = sum(group.ports * group.lanes for group in groups)
    fits = used <= lanes and all(group.lanes for group in groups)
    return tuple(groups) if fits else ()


def _megabits(speed: str) -> int:
    """`25G` and `1000` in Mbit/s; 0 for what is no speed."""
    if speed.endswith("G"):
        return int(speed[:-1]) * MEGABITS if LANE.fullmatch(speed[:-1]) else 0
    return int(speed) if LANE.fullmatch(speed) else 0
