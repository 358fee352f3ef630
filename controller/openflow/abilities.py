"""Abilities of a switch: what its refusals and its features say, as a profile and limits.

Sources: OpenFlow Switch Specification 1.3.5, §7.3.5.5 (table features), §7.3.5.8 (group features),
§7.5.4 (errors).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from compilers.targets.openflow.bundled_blocks import heads
from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.encoder import Program
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import MOST_NUMBER, ROLE_SHIFT, XID_BITS
from compilers.targets.openflow.profiles import OVS, PROFILES, Profile
from compilers.targets.openflow.protocol import (
    BUNDLED_FLOW_MOD,
    BUNDLED_GROUP_MOD,
    GROUP_FEATURES,
    TABLE_FEATURES,
    ErrorType,
    GroupType,
)
from controller.openflow import multipart
from controller.openflow.messages import Error, read

UNKNOWN_REQUEST = frozenset({1, 3, 4})
"""Codes of a bad request: type, experimenter, type of an experimenter."""
NO_METADATA, METADATA_MASK, BAD_TABLE = 3, 4, 2
"""Codes of a bad instruction."""
TABLE_FULL, OUT_OF_GROUPS, OUT_OF_BUCKETS = 1, 3, 4
"""Codes of a flow-mod that failed, and of a group-mod."""
GROUP_TYPE = frozenset({5, 6, 10, 13})
"""Codes of a group-mod that failed: chaining, watching, type of group, what is watched."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most rows of each table and groups of each type; what is not there is not known."""

    rows: Mapping[int, int] = field(default_factory=dict)
    groups: Mapping[int, int] = field(default_factory=dict)

    def exceeded(self, program: Program) -> str:
        """What of a program is too much, in words; "" if it fits."""
        rows, groups = Counter[int](), Counter[int]()
        for block in filter(len, program.flows):
            tables, counts = np.unique(heads(block, BUNDLED_FLOW_MOD)["table"], return_counts=True)
            rows.update(dict(zip(tables.tolist(), counts.tolist(), strict=True)))
        for block in filter(len, program.groups):
            groups[int(heads(block, BUNDLED_GROUP_MOD)["type"][0])] += len(block)
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


def told(
    lesser: Profile, before: Profile, groups: bytes | None, tables: bytes | None
) -> tuple[Profile, Limits]:
    """What a switch can do by its refusals and by its group and table features.

    Features that tell of less than was asked for explain a refusal; where they do not, it counts
    as it is. A table of no rows is one whose size is not told.

    Args:
        lesser: by its refusals.
        before: what was known until then.
        groups: group features, None where it does not tell them.
        tables: table features, None where it does not tell them.

    Raises:
        Malformed: they cannot be read.
    """
    most, rows = dict[int, int](), dict[int, int]()
    if groups is not None:
        said = read(GROUP_FEATURES, groups, 0)
        kinds = {kind for kind in GroupType if int(said["types"]) >> kind & 1}
        most = {kind: int(said["most"][kind]) for kind in kinds if said["most"][kind]}
        failover = lesser.fast_failover and GroupType.FAST_FAILOVER in kinds
        lesser = replace(lesser, fast_failover=failover)
        lesser = lesser if GroupType.SELECT in kinds else replace(lesser, buckets=1)
    if tables is not None:
        found = [
            read(TABLE_FEATURES, entry.tobytes(), 0)
            for block in multipart.blocks(tables, TABLE_FEATURES.itemsize)
            for entry in block
        ]
        rows = {int(one["table"]): int(one["most_entries"]) for one in found if one["most_entries"]}
        if len(found) < before.tables:
            lesser = replace(lesser, tables=max(len(found), 1))
    return before.within(lesser), Limits(rows, most)


def lowered(profile: Profile, errors: Sequence[Error]) -> Profile:
    """The profile without what a switch has refused; the same if the errors say nothing of it.

    Args:
        profile: of the program that it was sent.
        errors: what it said, one of each kind.
    """
    if profile.bundles and any(map(_of_bundles, errors)):
        return profile.within(replace(OVS, bundles=False))
    return reduce(Profile.within, (_without(profile, error) for error in errors), profile)


def asks_too_much(refused: Iterable[Error]) -> bool:
    """Whether a table or the groups are full."""
    full = {(ErrorType.FLOW_MOD, TABLE_FULL), (ErrorType.GROUP_MOD, OUT_OF_GROUPS)}
    return any((error.type, error.code) in full for error in refused)


def _of_bundles(error: Error) -> bool:
    """Whether a switch does not know bundles."""
    of_bundle = error.xid >> XID_BITS in (RowKind.OPEN, RowKind.COMMIT)
    return of_bundle and error.type == ErrorType.BAD_REQUEST and error.code in UNKNOWN_REQUEST


def _without(profile: Profile, error: Error) -> Profile:
    """Any profile, but without what this error is about."""
    kind, role = error.xid >> XID_BITS, (error.xid & MOST_NUMBER) >> ROLE_SHIFT
    if error.type == ErrorType.GROUP_MOD and kind == RowKind.GROUP:
        return _without_groups(profile, error.code, role)
    if kind == RowKind.ANSWER and error.type in (ErrorType.BAD_ACTION, ErrorType.BAD_MATCH):
        return replace(OVS, experimenters=False)
    instruction = error.type == ErrorType.BAD_INSTRUCTION
    if profile.masks and (
        (instruction and error.code in (NO_METADATA, METADATA_MASK))
        or (error.type == ErrorType.BAD_MATCH and kind in (RowKind.CLASS, RowKind.ROUTE))
    ):
        return replace(OVS, masks=False)
    no_table = error.type == ErrorType.FLOW_MOD and error.code == BAD_TABLE
    tabled = kind in (RowKind.CLASS, RowKind.ROUTE, RowKind.HOST, RowKind.FORWARD)
    no_metadata = error.type == ErrorType.BAD_MATCH and kind == RowKind.CLASS
    if no_metadata or (tabled and (instruction or no_table)):
        return PROFILES["single-table"].within(profile)
    return OVS


def _without_groups(profile: Profile, code: int, role: int) -> Profile:
    if code in GROUP_TYPE:
        if role == GroupRole.ENTER:
            return replace(OVS, buckets=1)
        return replace(OVS, fast_failover=False)
    if code == OUT_OF_BUCKETS:
        few = PROFILES["few-buckets"].buckets or 1
        most = profile.buckets
        return replace(OVS, buckets=few if most is None or most > few else max(most // 2, 1))
    return OVS
