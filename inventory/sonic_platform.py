"""SONiC's own list of a platform's ports: platform.json or port_config.ini.

Names and lanes differ from platform to platform, so they are read and never worked out. The names
of a cage's parts follow SONiC's dynamic port breakout (design document, "Port naming"): EthernetN,
and N plus the lanes of a part for the next. A key of `breakout_modes` such as `2x200G[100G](8)` has
the parts, the speed of each, other speeds, and the lanes if not all are used.
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

from inventory.values import Model, refusal

MODE = re.compile(r"([0-9]+)x([0-9]+)G(?:\[([0-9G,]*)\])?(?:\(([0-9]+)\))?")
NAME = re.compile(r"Ethernet([0-9]+)")
LANES = re.compile(r"[0-9]+(,[0-9]+)*")


INI = "name", "lanes", "alias", "index"
"""The columns of port_config.ini unless its first line says others (portconfig.py of SONiC)."""


class PlatformEntry(Model):
    """An entry of the file; modes: how it may be split, None in port_config.ini, which lists ports.

    aliases: of the ports of each mode, or of the port.
    """

    name: str
    lanes: tuple[str, ...]
    modes: tuple[str, ...] | None = None
    aliases: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class PlatformPort:
    """A port as SONiC calls it, and its lanes, separated by commas.

    cage: its cage's name, and mode: how that is broken out, where it is one of several parts.
    alias: its other name, which LLDP sends.
    """

    name: str
    lanes: str
    cage: str = ""
    mode: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Cage:
    """What a node type says of a cage: its parts, and speed and lanes of each, 0 where unknown."""

    parts: int
    speed: int
    lanes: int


def _read(value: Any, info: ValidationInfo) -> Any:
    """The entries of the file of that name, relative to the inventory's folder."""
    if not isinstance(value, str):
        return value
    try:
        text = (Path((info.context or {}).get("folder", "")) / value).read_text("utf-8")
        return tuple(_json(text) if value.endswith(".json") else _ini(text))
    except (OSError, UnicodeDecodeError) as error:
        raise refusal("a file that can be read", getattr(error, "strerror", "") or "") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise refusal(
            "SONiC's platform.json or port_config.ini, with names and lanes of ports",
            "take it from device/ of sonic-buildimage, or from the switch",
        ) from None


def _json(text: str) -> Iterator[PlatformEntry]:
    entries = json.loads(text)["interfaces"].items()
    for name, entry in sorted(entries, key=lambda item: _number(item[0])):
        modes = dict(entry["breakout_modes"])
        aliases = tuple(tuple(map(str, names or ())) for names in modes.values())
        lanes = _lanes(entry["lanes"])
        yield PlatformEntry(name=name, lanes=lanes, modes=tuple(modes), aliases=aliases)


def _ini(text: str) -> Iterator[PlatformEntry]:
    rows = [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]
    if not rows:
        raise ValueError(text)
    heads = [line.lstrip("# ").split() for line in text.splitlines() if line.startswith("#")]
    head = next((words for words in heads if {"name", "lanes"} <= set(words)), INI)
    for row in sorted(rows, key=lambda row: _number(row[0])):
        known = dict(zip(head, row, strict=False))
        alias = known.get("alias", "")
        yield PlatformEntry(name=row[0], lanes=_lanes(row[1]), aliases=((alias,),) if alias else ())


def _number(name: str) -> int:
    found = NAME.fullmatch(name)
    if not found:
        raise ValueError(name)
    return int(found[1])


def _lanes(text: str) -> tuple[str, ...]:
    if not LANES.fullmatch(text):
        raise ValueError(text)
    return tuple(text.split(","))


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
        found = [entry for _, entry in zip(range(rows), left, strict=False)]
        if len(found) < rows:
            raise ValueError(f"a file with an entry for cage {number}", f"{len(entries)} entries")
        ports = _whole(found) if found[0].modes is None else _split(found[0], cage)
        for port in ports:
            count = len(port.lanes.split(","))
            if cage.lanes not in (0, count):
                raise ValueError(f"ports of {cage.lanes} lanes", f"{port.name}, which has {count}")
            yield port


def _whole(found: Iterable[PlatformEntry]) -> Iterator[PlatformPort]:
    for entry in found:
        alias = "".join(name for names in entry.aliases for name in names)
        yield PlatformPort(entry.name, ",".join(entry.lanes), alias=alias)


def _split(entry: PlatformEntry, cage: Cage) -> Iterator[PlatformPort]:
    """The parts of an entry of platform.json."""
    wanted = f"{cage.parts}x{cage.speed or ''}"
    aliases = dict(zip(entry.modes or (), entry.aliases, strict=False))
    for mode in entry.modes or ():
        match = MODE.fullmatch(mode)
        if match and int(match[1]) == cage.parts:
            speeds = {match[2], *(match[3] or "").replace("G", "").split(",")}
            each = int(match[4] or len(entry.lanes)) // cage.parts
            if cage.speed == 0 or str(cage.speed) in speeds:
                break
    else:
        given = f"{entry.name} with {', '.join(entry.modes or ())}"
        raise ValueError(f"a cage with a mode {wanted}G", given)
    first = _number(entry.name)
    for part in range(cage.parts):
        lanes = entry.lanes[part * each : (part + 1) * each]
        split = (entry.name, mode) if cage.parts > 1 else ("", "")
        name = f"Ethernet{first + part * each}"
        alias = aliases.get(mode, ())[part : part + 1]
        yield PlatformPort(name, ",".join(lanes), *split, alias="".join(alias))
