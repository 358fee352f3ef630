"""What a switch can do and hold: by what it says of itself, and by what it refuses.

Sources: OpenFlow Switch Specification 1.3.5, §7.3.5.1 (description), §7.3.5.5 (table features),
§7.3.5.10 (group features), §7.5.4 (errors).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from compilers.readers.openflow.rows import Malformed, runs
from compilers.targets.openflow.bundled_blocks import heads
from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import MOST_NUMBER, ROLE_SHIFT, XID_BITS
from compilers.targets.openflow.profiles import OVS, PROFILES, Profile
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
    ErrorType,
    GroupType,
    Instruction,
    TableProperty,
)
from controller.openflow.messages import Error

EVERYTHING = OVS
"""The profile that limits nothing: `within` it changes no other."""
METADATA = FIELDS["metadata"].space << 7 | FIELDS["metadata"].number
"""The upper 23 bits of an OXM header of metadata: class and field."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a switch can hold at most. A missing table or type has no known limit."""

    rows: Mapping[int, int] = field(default_factory=dict)
    """The most rows of each table."""
    groups: Mapping[int, int] = field(default_factory=dict)
    """The most groups of each type."""

    def exceeded(self, program: FlowProgram) -> str:
        """What of a program is too much, in words; "" if it fits."""
        rows, groups = Counter[int](), Counter[int]()
        for block in filter(len, program.flows):
            tables, counts = np.unique(heads(block, FLOW_MOD, BUNDLED)["table"], return_counts=True)
            rows.update(dict(zip(tables.tolist(), counts.tolist(), strict=True)))
        for block in filter(len, program.groups):
            groups[int(heads(block, GROUP_MOD, BUNDLED)["type"][0])] += len(block)
        exceeded = [
            f"{count:,} rows in table {table}, of which the switch holds {self.rows[table]:,}"
            for table, count in sorted(rows.items())
            if count > self.rows.get(table, count)
        ] + [
            f"{count:,} groups of type {GroupType(kind).name.lower().replace('_', ' ')}, of which "
            f"the switch holds {self.groups[kind]:,}"
            for kind, count in sorted(groups.items())
            if count > self.groups.get(kind, count)
        ]
        return f"its program needs {' and '.join(exceeded)}" if exceeded else ""


def is_open_vswitch(description: bytes | None) -> bool:
    """Whether a switch describes itself as Open vSwitch, which can do all that is asked for.

    Its table features take 1.2 MB and 30 ms (version 3.1), so it is asked only if it refuses.
    """
    if description is None or len(description) < DESCRIPTION.size:
        return False
    return bool(DESCRIPTION.read(description).hardware.rstrip(b"\0") == b"Open vSwitch")


def features(groups: bytes | None, tables: bytes | None) -> tuple[Profile, Limits]:
    """What a switch can do by its group and table features.

    None, or what cannot be read: it does not say. A table of no rows is one of unknown size.
    Tables count up to the first number that is not there: OF-DPA has 0, 10, 20, 30, ….
    """
    able, most_groups, most_rows = OVS, dict[int, int](), dict[int, int]()
    if groups is not None and len(groups) >= GROUP_FEATURES.size:
        reported = GROUP_FEATURES.read(groups)
        kinds = {kind for kind in GroupType if reported.types >> kind & 1}
        limits = {kind: getattr(reported, f"most_{kind.name.lower()}") for kind in kinds}
        most_groups = {kind: limit for kind, limit in limits.items() if limit}
        able = replace(
            able,
            fast_failover=GroupType.FAST_FAILOVER in kinds,
            select_liveness=bool(reported.capabilities & SELECT_LIVENESS),
            buckets=None if GroupType.SELECT in kinds else 1,
        )
    by_number = _tables(tables or b"")
    if by_number:
        most_rows = {number: table.rows for number, table in by_number.items() if table.rows}
        masks = _metadata(by_number)
        missing = (number for number in range(OVS.tables) if number not in by_number)
        count = next(missing, OVS.tables)
        is_single = masks is None or not count
        able = replace(able, masks=masks is True, tables=1 if is_single else count)
    return able, Limits(most_rows, most_groups)


@dataclass(frozen=True, slots=True)
class _Table:
    """What a switch says of one of its tables."""

    rows: int
    """The most rows; 0 if unknown."""
    properties: Mapping[int, bytes]
    """The table's properties by their type."""

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
            entry.tobytes() for block in runs(features, TABLE_FEATURES.size) for entry in block
        ]
    except Malformed:
        return {}
    tables = {}
    for entry in entries:
        head = TABLE_FEATURES.read(entry)
        properties = dict(_properties(entry[TABLE_FEATURES.size :]))
        tables[head.table] = _Table(head.most_entries, properties)
    return tables


def _properties(data: bytes, padded: int = 8) -> Iterator[tuple[int, bytes]]:
    """Types and bodies of a list, as far as it can be read, each padded to so many bytes."""
    place, head = 0, PROPERTY.size
    while place + head <= len(data):
        kind, length = PROPERTY.read(data, place)
        yield kind, data[place + head : place + length]
        place += max(-(-length // padded) * padded, head)


def _metadata(tables: Mapping[int, _Table]) -> bool | None:
    """Whether classes of packets are matched by masked metadata; None: by no metadata."""
    dispatch, routes, classes = (tables.get(number, _Table(0, {})) for number in range(3))
    leads_on = not (dispatch.lacks(Instruction.GOTO_TABLE) or routes.lacks(Instruction.GOTO_TABLE))
    if not leads_on or routes.lacks(Instruction.WRITE_METADATA):
        return None
    return classes.metadata


UNKNOWN_REQUEST = frozenset({1, 3, 4})
"""Codes of a bad request: type, experimenter, type of an experimenter."""
NO_METADATA, METADATA_MASK, BAD_TABLE = 3, 4, 2
"""Codes of a bad instruction."""
TABLE_FULL, OUT_OF_GROUPS, OUT_OF_BUCKETS = 1, 3, 4
"""Codes of a flow-mod that failed, and of a group-mod."""
GROUP_TYPE = frozenset({5, 6, 10, 13})
"""Codes of a group-mod that failed: chaining, watching, type of group, what is watched."""


def lowered(profile: Profile, errors: Sequence[Error]) -> Profile:
    """The profile without what a switch has refused; the same if the errors say nothing of it."""
    if profile.bundles and any(map(_of_bundles, errors)):
        return profile.within(replace(OVS, bundles=False))
    return reduce(Profile.within, (_limit_shown_by(error, profile) for error in errors), profile)


def asks_too_much(refused: Iterable[Error]) -> bool:
    """Whether a table or the groups are full."""
    full = {(ErrorType.FLOW_MOD, TABLE_FULL), (ErrorType.GROUP_MOD, OUT_OF_GROUPS)}
    return any((error.type, error.code) in full for error in refused)


def _of_bundles(error: Error) -> bool:
    """Whether a switch does not know bundles."""
    of_bundle = error.xid >> XID_BITS in (RowKind.OPEN, RowKind.COMMIT)
    return of_bundle and error.type == ErrorType.BAD_REQUEST and error.code in UNKNOWN_REQUEST


def _limit_shown_by(error: Error, profile: Profile) -> Profile:
    """The most that a switch with this error can do; EVERYTHING if it shows no limit."""
    kind, role = error.xid >> XID_BITS, (error.xid & MOST_NUMBER) >> ROLE_SHIFT
    bad_match = error.type == ErrorType.BAD_MATCH
    bad_instruction = error.type == ErrorType.BAD_INSTRUCTION
    if error.type == ErrorType.GROUP_MOD and kind == RowKind.GROUP:
        return _limit_of_groups(error.code, role, profile)
    # Rows that answer, and groups, may have actions of Nicira, and such rows fields of its own.
    if kind in (RowKind.ANSWER, RowKind.GROUP) and (
        bad_match or error.type == ErrorType.BAD_ACTION
    ):
        return replace(OVS, experimenters=False)
    # With masks, routes write bits of metadata and classes match them: first try without masks.
    if profile.masks and bad_instruction and error.code in (NO_METADATA, METADATA_MASK):
        return replace(OVS, masks=False)
    if profile.masks and bad_match and kind in (RowKind.CLASS, RowKind.ROUTE):
        return replace(OVS, masks=False)
    # Without masks, what remains is metadata as a whole.
    if bad_match and kind == RowKind.CLASS:
        return PROFILES["single-table"].within(profile)
    # These rows name further tables, or are in them.
    no_table = error.type == ErrorType.FLOW_MOD and error.code == BAD_TABLE
    if kind in (RowKind.CLASS, RowKind.ROUTE, RowKind.HOST, RowKind.FORWARD) and (
        bad_instruction or no_table
    ):
        return PROFILES["single-table"].within(profile)
    return EVERYTHING


def _limit_of_groups(code: int, role: int, profile: Profile) -> Profile:
    """The most that a switch can do that refuses a group of a role with this code."""
    # Groups of ENTER are of type select, most others of type fast failover.
    if code in GROUP_TYPE and role == GroupRole.ENTER:
        return replace(OVS, buckets=1)
    if code in GROUP_TYPE:
        return replace(OVS, fast_failover=False)
    # Fewer buckets: first as many as "few-buckets" has, then half as many each time.
    if code == OUT_OF_BUCKETS:
        few = PROFILES["few-buckets"].buckets or 1
        if profile.buckets is None or profile.buckets > few:
            return replace(OVS, buckets=few)
        return replace(OVS, buckets=max(profile.buckets // 2, 1))
    return EVERYTHING
