"""Abilities of a switch by what it refuses: the profile that is left.

Source: OpenFlow Switch Specification 1.3.5, §7.5.4 (errors).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import MOST_NUMBER, ROLE_SHIFT, XID_BITS
from compilers.targets.openflow.profiles import OVS, PROFILES, Profile
from compilers.targets.openflow.protocol import ErrorType
from controller.openflow.messages import Error

UNKNOWN_REQUEST = frozenset({1, 3, 4})
"""Codes of a bad request: type, experimenter, type of an experimenter."""
NO_METADATA, METADATA_MASK, BAD_TABLE = 3, 4, 2
"""Codes of a bad instruction."""
TABLE_FULL, OUT_OF_GROUPS, OUT_OF_BUCKETS = 1, 3, 4
"""Codes of a flow-mod that failed, and of a group-mod."""
GROUP_TYPE = frozenset({5, 6, 10, 13})
"""Codes of a group-mod that failed: chaining, watching, type of group, what is watched."""


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
    by_moves = kind in (RowKind.ANSWER, RowKind.GROUP)
    if by_moves and error.type in (ErrorType.BAD_ACTION, ErrorType.BAD_MATCH):
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
