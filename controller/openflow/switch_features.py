"""Features of a switch: what it says that it can do and hold, as a profile and limits.

Sources: OpenFlow Switch Specification 1.3.5, §7.3.5.1 (description), §7.3.5.5 (table features),
§7.3.5.10 (group features).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from compilers.targets.openflow.bundled_blocks import heads
from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.profiles import OVS, Profile
from compilers.targets.openflow.protocol import (
    BUNDLED,
    DESCRIPTION,
    FIELDS,
    FLOW_MOD,
    GROUP_FEATURES,
    GROUP_MOD,
    PROPERTY,
    SELECT_LIVENESS,
    TABLE_FEATURES,
    GroupType,
    Instruction,
    Malformed,
    TableProperty,
)
from controller.openflow import multipart

METADATA = FIELDS["metadata"][0] << 7 | FIELDS["metadata"][1]
"""The upper 23 bits of an OXM header of metadata: class and field."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most rows of each table and groups of each type; what is not there is not known."""

    rows: Mapping[int, int] = field(default_factory=dict)
    groups: Mapping[int, int] = field(default_factory=dict)

    def exceeded(self, program: FlowProgram) -> str:
        """What of a program is too much, in words; "" if it fits."""
        rows, groups = Counter[int](), Counter[int]()
        for block in filter(len, program.flows):
            tables, counts = np.unique(heads(block, FLOW_MOD, BUNDLED)["table"], return_counts=True)
            rows.update(dict(zip(tables.tolist(), counts.tolist(), strict=True)))
        for block in filter(len, program.groups):
            groups[int(heads(block, GROUP_MOD, BUNDLED)["type"][0])] += len(block)
        wrong = [
            f"{count:,} rows in table {table}, of which the switch holds {self.rows[table]:,}"
            for table, count in sorted(rows.items())
            if count > self.rows.get(table, count)
        ] + [
            f"{count:,} groups of type {GroupType(kind).name.lower().replace('_', ' ')}, of which "
            f"the switch holds {self.groups[kind]:,}"
            for kind, count in sorted(groups.items())
            if count > self.groups.get(kind, count)
        ]
        return f"its program needs {' and '.join(wrong)}" if wrong else ""


def is_open_vswitch(description: bytes | None) -> bool:
    """Whether a switch describes itself as Open vSwitch, which can do all that is asked for.

    Its table features take 1.2 MB and 30 ms (version 3.1), so it is asked only if it refuses.
    """
    if description is None or len(description) < DESCRIPTION.size:
        return False
    return bool(DESCRIPTION.read(description).hardware.rstrip(b"\0") == b"Open vSwitch")


def features(groups: bytes | None, tables: bytes | None) -> tuple[Profile, Limits]:
    """What a switch can do by its group and table features.

    None, or what cannot be read: it does not say. A table of no rows is one whose size is not told.
    Tables count up to the first number that is not there: OF-DPA has 0, 10, 20, 30, ….
    """
    able, most, rows = OVS, dict[int, int](), dict[int, int]()
    if groups is not None and len(groups) >= GROUP_FEATURES.size:
        said = GROUP_FEATURES.read(groups)
        kinds = {kind for kind in GroupType if said.types >> kind & 1}
        holds = {kind: getattr(said, f"most_{kind.name.lower()}") for kind in kinds}
        most = {kind: number for kind, number in holds.items() if number}
        able = replace(
            able,
            fast_failover=GroupType.FAST_FAILOVER in kinds,
            select_liveness=bool(said.capabilities & SELECT_LIVENESS),
            buckets=None if GroupType.SELECT in kinds else 1,
        )
    if found := _tables(tables or b""):
        rows = {number: one.rows for number, one in found.items() if one.rows}
        masks, numbers = _metadata(found), range(OVS.tables)
        count = next((number for number in numbers if number not in found), OVS.tables)
        single = masks is None or not count
        able = replace(able, masks=masks is True, tables=1 if single else count)
    return able, Limits(rows, most)


@dataclass(frozen=True, slots=True)
class _Table:
    """What a table says of itself: its rows, 0 if unknown, and its properties by type."""

    rows: int
    properties: Mapping[int, bytes]

    def lacks(self, instruction: Instruction) -> bool:
        """Whether it names its instructions, and this one is not among them."""
        named = self.properties.get(TableProperty.INSTRUCTIONS)
        return named is not None and instruction not in {kind for kind, _ in _properties(named, 1)}

    @property
    def metadata(self) -> bool | None:
        """Whether it matches metadata under masks; None: not at all."""
        named = self.properties.get(TableProperty.MATCH)
        if named is None:
            return True
        fields = np.frombuffer(named[: len(named) // 4 * 4], ">u4")
        masked = fields[fields >> 9 == METADATA] >> 8 & 1
        return bool(masked.any()) if len(masked) else None


def _tables(features: bytes) -> dict[int, _Table]:
    """The tables by number; none if they cannot be read."""
    try:
        entries = [
            entry.tobytes()
            for block in multipart.blocks(features, TABLE_FEATURES.size)
            for entry in block
        ]
    except Malformed:
        return {}
    found = {}
    for entry in entries:
        head = TABLE_FEATURES.read(entry)
        properties = dict(_properties(entry[TABLE_FEATURES.size :]))
        found[head.table] = _Table(head.most_entries, properties)
    return found


def _properties(data: bytes, padded: int = 8) -> Iterator[tuple[int, bytes]]:
    """Types and bodies of a list, as far as it can be read, each padded to so many bytes."""
    place, least = 0, PROPERTY.size
    while place + least <= len(data):
        kind, length = PROPERTY.read(data, place)
        yield kind, data[place + least : place + length]
        place += max(-(-length // padded) * padded, least)


def _metadata(tables: Mapping[int, _Table]) -> bool | None:
    """Whether classes of packets are told by metadata under masks; None: by no metadata."""
    dispatch, routes, classes = (tables.get(number, _Table(0, {})) for number in range(3))
    ends = dispatch.lacks(Instruction.GOTO_TABLE) or routes.lacks(Instruction.GOTO_TABLE)
    if ends or routes.lacks(Instruction.WRITE_METADATA):
        return None
    return classes.metadata
