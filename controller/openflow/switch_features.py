"""The abilities and capacities of a switch, by its features and by its errors. No I/O.

`controller.switches.switch` asks for the features, and lowers the switch's profile by its errors.

Packets pass the tables of a program (`flow_tables.Table`) in this order: *dispatch* tells packets
for the gateway from others, *routes* writes the number of the egress class as metadata, and
*classes* matches this number and sends packets to the group of the class. The last table, which
rewrites answers of neighbour discovery, is not looked at here. A program for a single table needs
no metadata.

An error has the xid of the message that the switch refuses: 8 bits for the kind of the message
(`RowKind`), then for rows of classes and for groups 8 bits for the role (`GroupRole`), then 16 bits
for a number.

Sources: OpenFlow Switch Specification 1.3.5, §7.3.5.1 (description), §7.3.5.5 (table features),
§7.3.5.10 (group features), §7.5.4 (errors).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import reduce

import numpy as np

from compilers.readers.openflow.rows import Malformed, blocks_of_one_length
from compilers.targets.openflow.bundled_blocks import fields_at
from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.flow_tables import RowKind, Table
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
    BadInstruction,
    BadRequest,
    ErrorType,
    FlowModFailed,
    GroupModFailed,
    GroupType,
    Instruction,
    TableProperty,
)
from controller.openflow.messages import Error

NO_LIMIT = OVS
"""The profile of a switch that can do all that is asked for. Other limits are this profile with
some abilities less; `Profile.within` puts several limits together."""
SINGLE_TABLE = PROFILES["single-table"]
"""The profile of a switch whose rows are all in one table."""
METADATA = FIELDS["metadata"].space << 7 | FIELDS["metadata"].number
"""The upper 23 bits of an OXM header of metadata: class and field (§7.2.3)."""
CLASS_AND_FIELD_SHIFT, HAS_MASK_SHIFT = 9, 8
"""The lowest bit of class and field in an OXM header, and the bit that says that there is a
mask."""
OXM_HEADER_BYTES = 4
"""The bytes of an OXM header."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a switch can hold at most. A missing table or type has no known limit."""

    rows: Mapping[int, int] = field(default_factory=dict)
    """The most rows of each table."""
    groups: Mapping[int, int] = field(default_factory=dict)
    """The most groups of each type."""

    def exceeded(self, program: FlowProgram) -> str:
        """In words, the tables and group types that a program overfills; "" if it fits."""
        rows, groups = Counter[int](), Counter[int]()
        for block in filter(len, program.flows):
            tables, counts = np.unique(
                fields_at(block, FLOW_MOD, BUNDLED)["table"], return_counts=True
            )
            rows.update(dict(zip(tables.tolist(), counts.tolist(), strict=True)))
        for block in filter(len, program.groups):
            groups[int(fields_at(block, GROUP_MOD, BUNDLED)["type"][0])] += len(block)
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

    Its table features take 1.2 MB and 30 ms (version 3.1), so it is asked for them only after it
    has refused something.
    """
    if description is None or len(description) < DESCRIPTION.size:
        return False
    return bool(DESCRIPTION.read(description).hardware.rstrip(b"\0") == b"Open vSwitch")


def features(groups: bytes | None, tables: bytes | None) -> tuple[Profile, Limits]:
    """The profile and the capacity of a switch by its group and table features.

    Only the tables before the first missing number count: OF-DPA has the tables 0, 10, 20, 30, ….

    Args:
        groups: the reply to a request for group features. None or unreadable: no limit is known.
        tables: the reply to a request for table features. None or unreadable: no limit is known.
            A table of no rows is one of unknown size.
    """
    profile, most_groups = _limited_by_groups(NO_LIMIT, groups or b"")
    profile, most_rows = _limited_by_tables(profile, tables or b"")
    return profile, Limits(most_rows, most_groups)


def _limited_by_groups(profile: Profile, groups: bytes) -> tuple[Profile, dict[int, int]]:
    """A profile without what group features lack, and the most groups of each type."""
    if len(groups) < GROUP_FEATURES.size:
        return profile, {}
    reported = GROUP_FEATURES.read(groups)
    kinds = {kind for kind in GroupType if reported.types >> kind & 1}
    most_groups = {kind: getattr(reported, f"most_{kind.name.lower()}") for kind in kinds}
    limited = replace(
        profile,
        fast_failover=GroupType.FAST_FAILOVER in kinds,
        select_liveness=bool(reported.capabilities & SELECT_LIVENESS),
        buckets=None if GroupType.SELECT in kinds else 1,
    )
    return limited, {kind: most for kind, most in most_groups.items() if most}


def _limited_by_tables(profile: Profile, features: bytes) -> tuple[Profile, dict[int, int]]:
    """A profile without what table features lack, and the most rows of each table."""
    tables = _tables(features)
    if not tables:
        return profile, {}
    metadata = _metadata_match(tables)
    missing = (number for number in range(NO_LIMIT.tables) if number not in tables)
    usable_tables = next(missing, NO_LIMIT.tables)
    # Only metadata tells the table of classes what the table of routes has found.
    needs_single = metadata == _MetadataMatch.NONE or not usable_tables
    limited = replace(
        profile,
        masks=metadata == _MetadataMatch.MASKED,
        tables=1 if needs_single else usable_tables,
    )
    return limited, {number: table.rows for number, table in tables.items() if table.rows}


class _MetadataMatch(Enum):
    """How a table can match the metadata of packets."""

    NONE = "none"
    EXACT = "exact"
    MASKED = "masked"


@dataclass(frozen=True, slots=True)
class _Table:
    """One table of a switch, by its table features."""

    rows: int
    """The most rows; 0 if unknown."""
    properties: Mapping[int, bytes]
    """The table's properties by their type."""

    def lacks(self, instruction: Instruction) -> bool:
        """Whether the table lists its instructions, and this one is not among them."""
        listed = self.properties.get(TableProperty.INSTRUCTIONS)
        if listed is None:
            return False
        return instruction not in {kind for kind, _ in _properties(listed, padded=1)}

    @property
    def metadata_match(self) -> _MetadataMatch:
        """How it matches metadata, by the OXM headers of fields that it lists."""
        listed = self.properties.get(TableProperty.MATCH)
        if listed is None:
            return _MetadataMatch.MASKED
        whole_headers = len(listed) // OXM_HEADER_BYTES * OXM_HEADER_BYTES
        headers = np.frombuffer(listed[:whole_headers], ">u4")
        metadata_headers = headers[headers >> CLASS_AND_FIELD_SHIFT == METADATA]
        if not len(metadata_headers):
            return _MetadataMatch.NONE
        has_mask = metadata_headers >> HAS_MASK_SHIFT & 1
        return _MetadataMatch.MASKED if has_mask.any() else _MetadataMatch.EXACT


def _tables(features: bytes) -> dict[int, _Table]:
    """The tables by number; none if they cannot be read."""
    try:
        entries = [
            entry.tobytes()
            for block in blocks_of_one_length(features, TABLE_FEATURES.size)
            for entry in block
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
    """Type and body of each entry of a list, as far as the list can be read.

    Args:
        data: the entries, each with a head of type and length.
        padded: each entry is padded to a multiple of so many bytes.
    """
    offset, head = 0, PROPERTY.size
    while offset + head <= len(data):
        kind, length = PROPERTY.read(data, offset)
        yield kind, data[offset + head : offset + length]
        padded_length = -(-length // padded) * padded
        offset += max(padded_length, head)


def _metadata_match(tables: Mapping[int, _Table]) -> _MetadataMatch:
    """How the table of classes can match metadata that the table of routes has written.

    NONE also where packets cannot get from dispatch to routes or from routes to classes, or where
    routes cannot write metadata.
    """
    missing = _Table(0, {})
    dispatch, routes, classes = (
        tables.get(table, missing) for table in (Table.DISPATCH, Table.ROUTES, Table.CLASSES)
    )
    ends_early = dispatch.lacks(Instruction.GOTO_TABLE) or routes.lacks(Instruction.GOTO_TABLE)
    if ends_early or routes.lacks(Instruction.WRITE_METADATA):
        return _MetadataMatch.NONE
    return classes.metadata_match


REQUEST_UNKNOWN = frozenset(
    {BadRequest.BAD_TYPE, BadRequest.BAD_EXPERIMENTER, BadRequest.BAD_EXPERIMENTER_TYPE}
)
"""The codes by which a switch says that it does not know a request."""
GROUP_TYPE_REFUSED = frozenset(
    {
        GroupModFailed.CHAINING_UNSUPPORTED,
        GroupModFailed.WATCH_UNSUPPORTED,
        GroupModFailed.BAD_TYPE,
        GroupModFailed.BAD_WATCH,
    }
)
"""The codes by which a switch refuses the type of a group, or what such a group does."""


@dataclass(frozen=True, slots=True)
class _ShownLimit:
    """A limit that a switch shows by refusing messages of some kinds with some errors."""

    type: ErrorType
    """The type of the error."""
    kinds: Collection[RowKind]
    """The kinds of the refused messages; () for all."""
    limit: Profile
    """The most that the switch can do."""
    codes: Collection[int] = ()
    """The codes of the error; () for all."""
    needs_masks: bool = False
    """Whether this is shown only by a program that matches with masks."""

    def is_shown_by(self, error: Error, profile: Profile) -> bool:
        """Whether an error shows this limit, for a program of a profile."""
        return (
            error.type == self.type
            and (not self.kinds or _kind(error) in self.kinds)
            and (not self.codes or error.code in self.codes)
            and (profile.masks or not self.needs_masks)
        )


WITHOUT_EXPERIMENTERS = replace(NO_LIMIT, experimenters=False)
WITHOUT_MASKS = replace(NO_LIMIT, masks=False)
WITH_NICIRA = (RowKind.ANSWER, RowKind.GROUP)
"""Rows that answer ARP and neighbour discovery, and groups: they may have Nicira's actions, and
these rows may match fields of Open vSwitch's own."""
OF_SEVERAL_TABLES = (RowKind.CLASS, RowKind.ROUTE, RowKind.HOST, RowKind.FORWARD)
"""Rows that are in further tables, or lead there."""
SHOWN_LIMITS = (
    _ShownLimit(ErrorType.BAD_MATCH, WITH_NICIRA, WITHOUT_EXPERIMENTERS),
    _ShownLimit(ErrorType.BAD_ACTION, WITH_NICIRA, WITHOUT_EXPERIMENTERS),
    # With masks, routes write bits of metadata and classes match them. What is tried next writes
    # and matches metadata as a whole.
    _ShownLimit(
        ErrorType.BAD_INSTRUCTION, (), WITHOUT_MASKS, tuple(BadInstruction), needs_masks=True
    ),
    _ShownLimit(
        ErrorType.BAD_MATCH, (RowKind.CLASS, RowKind.ROUTE), WITHOUT_MASKS, needs_masks=True
    ),
    # Classes match nothing but metadata.
    _ShownLimit(ErrorType.BAD_MATCH, (RowKind.CLASS,), SINGLE_TABLE),
    _ShownLimit(ErrorType.BAD_INSTRUCTION, OF_SEVERAL_TABLES, SINGLE_TABLE),
    _ShownLimit(ErrorType.FLOW_MOD, OF_SEVERAL_TABLES, SINGLE_TABLE, (FlowModFailed.BAD_TABLE_ID,)),
)
"""The limits that errors show, besides those of groups and bundles. The first one counts."""


def lowered_profile(profile: Profile, errors: Sequence[Error]) -> Profile:
    """The profile without the abilities that a switch has refused; the same if it refused none.

    Args:
        profile: that of the program.
        errors: the answers of the switch to the program.
    """
    if profile.bundles and any(map(_is_of_unknown_bundles, errors)):
        return profile.within(replace(NO_LIMIT, bundles=False))
    return reduce(Profile.within, (_limit_shown_by(error, profile) for error in errors), profile)


def asks_too_much(errors: Iterable[Error]) -> bool:
    """Whether an error says that a table is full, or that there are no more groups."""
    codes_of_full = {
        (ErrorType.FLOW_MOD, FlowModFailed.TABLE_FULL),
        (ErrorType.GROUP_MOD, GroupModFailed.OUT_OF_GROUPS),
    }
    return any((error.type, error.code) in codes_of_full for error in errors)


def _kind(error: Error) -> int:
    """The kind of the message that an error is about; a `RowKind`, if it is one of a program."""
    return error.xid >> XID_BITS


def _role(error: Error) -> int:
    """The `GroupRole` of the group that an error is about."""
    return (error.xid & MOST_NUMBER) >> ROLE_SHIFT


def _is_of_unknown_bundles(error: Error) -> bool:
    """Whether an error says that the switch does not know bundles."""
    is_of_bundle = _kind(error) in (RowKind.OPEN, RowKind.COMMIT)
    return is_of_bundle and error.type == ErrorType.BAD_REQUEST and error.code in REQUEST_UNKNOWN


def _limit_shown_by(error: Error, profile: Profile) -> Profile:
    """The most that a switch with this error can do; NO_LIMIT if it shows no limit."""
    if error.type == ErrorType.GROUP_MOD and _kind(error) == RowKind.GROUP:
        return _limit_of_groups(error.code, _role(error), profile)
    shown = (row.limit for row in SHOWN_LIMITS if row.is_shown_by(error, profile))
    return next(shown, NO_LIMIT)


def _limit_of_groups(code: int, role: int, profile: Profile) -> Profile:
    """The most that a switch can do that refuses a group with this error code.

    Args:
        code: the error's code, a `GroupModFailed`.
        role: the `GroupRole` of the refused group.
        profile: the profile of the program with the group.
    """
    # Groups of ENTER are of type select, most others of type fast failover.
    if code in GROUP_TYPE_REFUSED and role == GroupRole.ENTER:
        return replace(NO_LIMIT, buckets=1)
    if code in GROUP_TYPE_REFUSED:
        return replace(NO_LIMIT, fast_failover=False)
    # Fewer buckets: first as many as "few-buckets" has, then half as many each time.
    if code == GroupModFailed.OUT_OF_BUCKETS:
        few = PROFILES["few-buckets"].buckets or 1
        if profile.buckets is None or profile.buckets > few:
            return replace(NO_LIMIT, buckets=few)
        return replace(NO_LIMIT, buckets=max(profile.buckets // 2, 1))
    return NO_LIMIT
