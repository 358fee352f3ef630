"""Writes rows and groups as `ovs-ofctl -O OpenFlow13` does, from the values of `rows`.

Target ovs writes these lines into flows.txt and groups.txt, and the controller compares the rows of
a switch by them. Numbers of fields and actions are those of the OpenFlow Switch Specification
1.3.5, §7.2, and of Open vSwitch's ovs-fields(7), ovs-actions(7) and nicira-ext.h.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from struct import Struct, error

from compilers.readers.openflow.rows import (
    ANY,
    FIELD,
    TYPED,
    Bucket,
    Field,
    FlowRow,
    Group,
    Malformed,
    Match,
    actions_of,
    read_row,
)

IN_PORT = 0xFFFFFFF8
"""The port by which the packet came in (`OFPP_IN_PORT`)."""
BASIC, NXM_0, NXM_1, ERICSSON = 0x8000, 0, 1, 0x1000
"""Classes of fields: OpenFlow's, Nicira's of OpenFlow 1.0 and later ones, and Ericsson's."""
ETH_TYPE, IP_PROTO = (BASIC, 5, 2), (BASIC, 10, 1)
"""The fields of a match that say its protocols."""
FAMILIES: dict[tuple[int | None, int | None], str] = {
    (None, None): "",
    (0x0800, None): "ip",
    (0x0806, None): "arp",
    (0x86DD, None): "ipv6",
    (0x86DD, 58): "icmp6",
}
"""The word for an Ethernet type and an IP protocol, None: any."""


def _decimal(value: bytes) -> str:
    """A number as decimal digits."""
    return str(int.from_bytes(value, "big"))


def _hexadecimal(value: bytes) -> str:
    """A number as `0x` and hexadecimal digits."""
    return hex(int.from_bytes(value, "big"))


def _mac(value: bytes) -> str:
    """A MAC address."""
    return value.hex(":")


def _ipv4(value: bytes) -> str:
    """An IPv4 address."""
    return str(IPv4Address(value))


def _ipv6(value: bytes) -> str:
    """An IPv6 address."""
    return str(IPv6Address(value))


WriteValue = Callable[[bytes], str]
"""Writes the value of a field."""
FIELDS: dict[Field, tuple[str, WriteValue]] = {
    (BASIC, 0, 4): ("in_port", _decimal),
    (BASIC, 3, 6): ("eth_dst", _mac),
    (BASIC, 4, 6): ("eth_src", _mac),
    (BASIC, 21, 2): ("arp_op", _decimal),
    (BASIC, 22, 4): ("arp_spa", _ipv4),
    (BASIC, 23, 4): ("arp_tpa", _ipv4),
    (BASIC, 24, 6): ("arp_sha", _mac),
    (BASIC, 25, 6): ("arp_tha", _mac),
    (BASIC, 29, 1): ("icmpv6_type", _decimal),
    (BASIC, 31, 16): ("nd_target", _ipv6),
    (BASIC, 33, 6): ("nd_tll", _mac),
    (BASIC, 11, 4): ("ip_src", _ipv4),
    (BASIC, 12, 4): ("ip_dst", _ipv4),
    (BASIC, 26, 16): ("ipv6_src", _ipv6),
    (BASIC, 27, 16): ("ipv6_dst", _ipv6),
    (NXM_1, 0, 4): ("reg0", _hexadecimal),
    (BASIC, 2, 8): ("metadata", _decimal),
    (ERICSSON, 1, 4): ("nd_reserved", _hexadecimal),
    (ERICSSON, 2, 1): ("nd_options_type", _decimal),
}
"""Names and values of fields, in the order in which a match has them."""
MOVED = {
    (NXM_0, 1, 6): "eth_dst",
    (NXM_0, 2, 6): "eth_src",
    (NXM_0, 16, 4): "arp_spa",
    (NXM_0, 17, 4): "arp_tpa",
    (NXM_1, 0, 4): "reg0",
    (NXM_1, 17, 6): "arp_sha",
    (NXM_1, 18, 6): "arp_tha",
    (NXM_1, 19, 16): "ipv6_src",
    (NXM_1, 20, 16): "ipv6_dst",
    (NXM_1, 23, 16): "nd_target",
}
"""Fields that `move` copies whole."""
WRITTEN = {
    (NXM_0, 0, 2): "NXM_OF_IN_PORT",
    (NXM_0, 1, 6): "NXM_OF_ETH_DST",
    (NXM_1, 0, 4): "NXM_NX_REG0",
}
"""Fields of which `load` and others write some bits."""
GROUP_TYPES = {1: "select", 2: "indirect", 3: "fast_failover"}
"""The words for types of groups (§7.3.4.2)."""
GOTO_TABLE, WRITE_METADATA, APPLY_ACTIONS = 1, 2, 4
"""Types of instructions (§7.2.4)."""
OUTPUT, GROUP, DEC_NW_TTL, SET_FIELD, EXPERIMENTER = 0, 22, 24, 25, 0xFFFF
"""Types of actions (§7.2.5)."""
LOW_16 = 0xFFFF
"""The lowest bits of metadata, which have the class."""
ALL_METADATA = (1 << 64) - 1
"""The mask of all bits of metadata."""
NICIRA = 0x2320
"""The experimenter of Open vSwitch's own actions."""
NICIRA_BODY = 10
"""The bytes before the body of such an action: type, length, experimenter and kind."""
REG_MOVE, REG_LOAD, NX_MULTIPATH, NX_BUNDLE, NX_BUNDLE_LOAD, RESUBMIT_TABLE = 6, 7, 10, 12, 13, 14
"""The kinds of these actions (`nx_action_subtype`, nicira-ext.h)."""
HASHED = "symmetric_l3l4+udp"
"""The fields of a hash in the words of `ovs-ofctl`; SYMMETRIC_L3L4_UDP is their number."""
SYMMETRIC_L3L4_UDP, OFPORT = 3, 2
"""Numbers of nicira-ext.h: the fields of a hash, and the kind of a bundle's members."""
MODULO_N, ACTIVE_BACKUP, HIGHEST_RANDOM_WEIGHT = 0, 0, 1
"""Algorithms that choose a link: of `multipath`, and, the last two, of a bundle."""
AS_IT_CAME = 0xFFF8
"""The port of a `resubmit` that leaves the ingress port as it is."""


@lru_cache(1 << 17)
def row_line(row: bytes) -> str:
    """A line of flows.txt, from the bytes of `rows.ROW`; switches share most of their rows.

    Raises:
        Malformed: the row has a part that no row of polarfab has, or cannot be read.
    """
    return row_text(read_row(row))


def row_text(row: FlowRow) -> str:
    """A line of flows.txt.

    Raises:
        Malformed: the row has a part that no row of polarfab has.
    """
    if row.idle_timeout or row.hard_timeout or row.flags:
        raise Malformed("required a row that stays, and without flags")
    place = f"table={row.table},priority={row.priority},cookie={row.cookie:#x}"
    return f"{place}{_match(row.match)},actions={_instructions(row.instructions)}"


def group_text(group: Group) -> str:
    """A line of groups.txt.

    Raises:
        Malformed: the group has a part that no group of polarfab has.
    """
    group_type = GROUP_TYPES.get(group.type)
    if group_type is None:
        raise Malformed(f"required a group of a known type, given {group.type}")
    buckets = (f",bucket={_bucket(bucket, group_type)}" for bucket in group.buckets)
    return f"group_id={group.number},type={group_type}{''.join(buckets)}"


def _bucket(bucket: Bucket, group_type: str) -> str:
    """A bucket of a group of some type."""
    weight = f"weight:{bucket.weight}," if group_type == "select" else ""
    port = f"watch_port:{bucket.watch_port}," if bucket.watch_port != ANY else ""
    group = f"watch_group:{bucket.watch_group}," if bucket.watch_group != ANY else ""
    return f"{weight}{port}{group}actions={_actions(bucket.actions)}"


@lru_cache(1 << 16)
def _match(match: Match) -> str:
    """The fields of a match, each with a comma before it."""
    remaining = {field: (value, mask) for field, value, mask in match}
    ethertype, protocol = remaining.pop(ETH_TYPE, None), remaining.pop(IP_PROTO, None)
    ethertype_number = int.from_bytes(ethertype[0], "big") if ethertype else None
    protocol_number = int.from_bytes(protocol[0], "big") if protocol else None
    family = FAMILIES.get((ethertype_number, protocol_number))
    if family is None:
        numbers = [ethertype_number, protocol_number]
        raise Malformed(f"required IP, ARP or ICMPv6, given types {numbers}")
    words = [family] if family else []
    for field, (name, write) in FIELDS.items():
        if field in remaining:
            words.append(f"{name}={_masked(name, write, *remaining.pop(field))}")
    if remaining:
        raise Malformed(f"required a match without field {_field_name(next(iter(remaining)))}")
    return "".join(f",{word}" for word in words)


def _masked(name: str, write: WriteValue, value: bytes, mask: bytes) -> str:
    """The value of a field of a match with its mask; an IP address with its length."""
    if all(byte == 0xFF for byte in mask):
        return write(value)
    bits = int.from_bytes(mask, "big")
    if write in (_ipv4, _ipv6):
        length = bits.bit_count()
        width = 8 * len(mask)
        if bits != (1 << width) - (1 << width - length):
            raise Malformed(f"required the mask of a prefix, given {name} under {bits:#x}")
        return f"{write(value)}/{length}"
    return f"{write(value)}/{_mac(mask) if write is _mac else hex(bits)}"


@lru_cache(1 << 16)
def _instructions(instructions: tuple[bytes, ...]) -> str:
    """The instructions of a row, in the order of `ovs-ofctl`: by descending types."""
    return ",".join(map(_instruction, reversed(instructions))) or "drop"


def _instruction(data: bytes) -> str:
    """An instruction, from its bytes on the wire.

    Type and length are four bytes. `write_metadata` has four bytes of padding, then value and mask.
    """
    kind, _ = TYPED.unpack_from(data)
    if kind == GOTO_TABLE:
        return f"goto_table:{data[4]}"
    if kind == WRITE_METADATA:
        value, mask = int.from_bytes(data[8:16], "big"), int.from_bytes(data[16:24], "big")
        number = value if mask & LOW_16 else hex(value)
        return f"write_metadata:{number}" + ("" if mask == ALL_METADATA else f"/{mask:#x}")
    if kind == APPLY_ACTIONS:
        return _actions(actions_of(data[8:]))
    raise Malformed(f"required a known instruction, given type {kind}")


@lru_cache(1 << 16)
def _actions(actions: tuple[bytes, ...]) -> str:
    """A list of actions."""
    return ",".join(map(_action, actions))


def _action(data: bytes) -> str:
    """An action, from its bytes on the wire.

    Type and length are four bytes. Then comes the value: a port, a group, a field, or the
    experimenter of an action and the number of its kind.
    """
    kind, _ = TYPED.unpack_from(data)
    try:
        number = int.from_bytes(data[4:8], "big")
        if kind == OUTPUT:
            return "in_port" if number == IN_PORT else f"output:{number}"
        if kind == GROUP:
            return f"group:{number}"
        if kind == DEC_NW_TTL:
            return "dec_ttl"
        if kind == SET_FIELD:
            return _set_field(data)
        if kind == EXPERIMENTER and number == NICIRA:
            return _nicira_action(int.from_bytes(data[8:NICIRA_BODY], "big"), data)
    except error as too_short:
        raise Malformed(f"an action of type {kind} in {len(data)} bytes") from too_short
    raise Malformed(f"required a known action, given type {kind:#x}")


def _set_field(data: bytes) -> str:
    """The action that sets a whole field of a packet."""
    space, number, length = FIELD.unpack_from(data, 4)
    field = space, number >> 1, length
    if field not in FIELDS or number & 1:
        raise Malformed(f"required a known field without a mask, given {_field_name(field)}")
    name, write = FIELDS[field]
    return f"set_field:{write(data[8 : 8 + length])}->{name}"


# Open vSwitch's own actions, by the number of their kind

MOVE = Struct(">HHHLL")
"""The number of bits, the first bits in the source and the target, and the headers of both."""
LOAD = Struct(">HLQ")
"""The bits that are written, the header of their field, and the value."""
MULTIPATH = Struct(">HH2xHHL2xHL")
"""Fields and basis of the hash, algorithm, highest link, argument, and the bits that get the
link."""
BUNDLE = Struct(">HHHLHHL4x")
"""Algorithm, fields and basis of the hash, kind and number of members, and the bits that get
one."""
RESUBMIT = Struct(">HB3x")
"""The ingress port and the table."""


def _nicira_action(kind: int, data: bytes) -> str:
    """An action of Open vSwitch's own, by the number of its kind."""
    action = NICIRA_ACTIONS.get(kind)
    if action is None:
        raise Malformed(f"required a known action of Open vSwitch, given number {kind}")
    return action(data)


def _move(data: bytes) -> str:
    """The action that copies a whole field to another."""
    bits, from_bit, to_bit, source, target = MOVE.unpack_from(data, NICIRA_BODY)
    ends = _header(source), _header(target)
    unknown = next((end for end in ends if end not in MOVED), None)
    if unknown:
        raise Malformed(f"required a known field, given {_field_name(unknown)} in a move")
    is_whole = (from_bit, to_bit) == (0, 0) and {8 * end[2] for end in ends} == {bits}
    if not is_whole:
        raise Malformed(f"required a move of a whole field, given {bits} bits")
    return f"move:{MOVED[ends[0]]}->{MOVED[ends[1]]}"


def _load(data: bytes) -> str:
    """The action that writes a constant to bits of a field."""
    bits, target, value = LOAD.unpack_from(data, NICIRA_BODY)
    return f"load:{value}->{_bits(bits, target)}"


def _multipath(data: bytes) -> str:
    """The action that writes the number of a link, chosen by a hash, to bits of a field."""
    fields, basis, algorithm, highest, argument, bits, target = MULTIPATH.unpack_from(
        data, NICIRA_BODY
    )
    _require_action("multipath", (fields, SYMMETRIC_L3L4_UDP), (algorithm, MODULO_N), (argument, 0))
    return f"multipath({HASHED},{basis},modulo_n,{highest + 1},0,{_bits(bits, target)})"


def _bundle(data: bytes) -> str:
    """The action that sends a packet to one of several ports, chosen by a hash."""
    algorithm, fields, basis, kind, count, bits, target = BUNDLE.unpack_from(data, NICIRA_BODY)
    _require_action(
        "bundle",
        (algorithm, HIGHEST_RANDOM_WEIGHT),
        (fields, SYMMETRIC_L3L4_UDP),
        (kind, OFPORT),
        (bits | target, 0),
    )
    return f"bundle({HASHED},{basis},hrw,ofport,members:{_members(data, count)})"


def _bundle_load(data: bytes) -> str:
    """The action that writes the first port that is up to bits of a field."""
    algorithm, fields, basis, kind, count, bits, target = BUNDLE.unpack_from(data, NICIRA_BODY)
    _require_action(
        "bundle_load",
        (algorithm, ACTIVE_BACKUP),
        (fields, SYMMETRIC_L3L4_UDP),
        (basis, 0),
        (kind, OFPORT),
    )
    where, members = _bits(bits, target), _members(data, count)
    return f"bundle_load({HASHED},0,active_backup,ofport,{where},members:{members})"


def _resubmit(data: bytes) -> str:
    """The action that looks a packet up in another table, and comes back."""
    port, table = RESUBMIT.unpack_from(data, NICIRA_BODY)
    _require_action("resubmit", (port, AS_IT_CAME))
    return f"resubmit(,{table})"


def _members(data: bytes, count: int) -> str:
    """The ports of a bundle, of two bytes each behind its body."""
    ports = Struct(f">{count}H").unpack_from(data, NICIRA_BODY + BUNDLE.size)
    return ",".join(map(str, ports))


def _bits(bits: int, target: int) -> str:
    """Bits of a field, such as `NXM_NX_REG0[0..15]`.

    Args:
        bits: the first bit in the upper 10 of 16 bits, the number of bits less one in the lower 6.
        target: the header of the field as a number.
    """
    field = _header(target)
    if field not in WRITTEN:
        raise Malformed(f"required a known field, given bits of {_field_name(field)}")
    first = bits >> 6
    last = first + (bits & 0x3F)
    if last - first + 1 == 8 * field[2]:
        return f"{WRITTEN[field]}[]"
    return f"{WRITTEN[field]}[{first}..{last}]"


def _header(header: int) -> Field:
    """The field of a header that is a number.

    A header has 16 bits for the class, 7 for the number, 1 for a mask, and 8 for the length.
    """
    return header >> 16, header >> 9 & 0x7F, header & 0xFF


def _require_action(name: str, *required: tuple[int, int]) -> None:
    """Pass if members of an action have the only values that are understood.

    Args:
        name: of the action.
        required: the value of each member, and the value that it has to have.

    Raises:
        Malformed: a member has another value.
    """
    for value, only_value in required:
        if value != only_value:
            raise Malformed(f"required a {name} with {only_value:#x}, given {value:#x}")


def _field_name(field: Field) -> str:
    """A field in messages."""
    return f"{field[1]} of class {field[0]:#x} with {field[2]} bytes"


NICIRA_ACTIONS: dict[int, Callable[[bytes], str]] = {
    REG_MOVE: _move,
    REG_LOAD: _load,
    NX_MULTIPATH: _multipath,
    NX_BUNDLE: _bundle,
    NX_BUNDLE_LOAD: _bundle_load,
    RESUBMIT_TABLE: _resubmit,
}
"""The writer of each of Open vSwitch's own actions, by the number of its kind."""
