"""OpenFlow messages read by the parser of Ryu or os-ken, as text in ovs-ofctl's words.

The oracle of our own reader (`compilers.readers.openflow`): layouts and numbers are the
framework's.
"""

from __future__ import annotations

import importlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from struct import Struct
from typing import Any

FAMILIES: dict[tuple[int | None, int | None], str] = {
    (None, None): "",
    (0x0800, None): "ip",
    (0x0806, None): "arp",
    (0x86DD, None): "ipv6",
    (0x86DD, 58): "icmp6",
}
FIELDS = {
    "in_port": "in_port",
    "eth_dst": "eth_dst",
    "arp_op": "arp_op",
    "arp_tpa": "arp_tpa",
    "icmpv6_type": "icmpv6_type",
    "ipv6_nd_target": "nd_target",
    "ipv4_src": "ip_src",
    "ipv4_dst": "ip_dst",
    "ipv6_src": "ipv6_src",
    "ipv6_dst": "ipv6_dst",
}
"""What matches are called, in the order of the text."""
SET = {"ipv6_nd_tll": "nd_tll", "field_524290": "nd_options_type", "field_524289": "nd_reserved"}
RAW = {"field_524290", "field_524289"}
"""Fields of Open vSwitch's own, whose values the parsers leave in base64."""
RAW_DECIMALS = 256
WIDTHS = {"reg0": 32, "arp_tpa": 32, "arp_spa": 32, "arp_sha": 48, "arp_tha": 48}
WIDTHS |= {"eth_src": 48, "eth_dst": 48, "ipv6_src": 128, "ipv6_dst": 128, "nd_target": 128}
HASHED_TO_PORTS = 1, 3, 2, 0, 0
"""Algorithm hrw, fields symmetric_l3l4+udp, kind of members, and that the port is no result."""
FIRST_INTO_REGISTER = 0, 3, 0, 2, 1, 15, "reg0"
"""The same of a bundle_load: active_backup, basis 0, one member, 16 bits of register 0."""
DRAWN = 3, 0, 0, 15, "eth_dst"
"""Of a multipath: the fields, modulo_n without an argument, 16 bits of the address."""
NAMES = {"in_port": ("NXM_OF_IN_PORT", 16), "reg0": ("NXM_NX_REG0", 32)}
"""Fields that are loaded: their names and bits."""
AS_IT_CAME = 0xFFF8
"""The port of a resubmit, where that stays what it was."""
CLASS_METADATA, ALL_METADATA = 0xFFFF, (1 << 64) - 1
"""The masks whose values are in decimals; the last one goes without saying."""


class FrameworkReader:
    """The parser of a framework.

    Args:
        package: "ryu" or "os_ken".

    Raises:
        ImportError: it is not installed.
    """

    def __init__(self, package: str) -> None:
        self.parser = importlib.import_module(f"{package}.ofproto.ofproto_v1_3_parser")
        protocol = importlib.import_module(f"{package}.ofproto.ofproto_protocol")
        common = importlib.import_module(f"{package}.ofproto.ofproto_common")
        self.numbers = n = importlib.import_module(f"{package}.ofproto.ofproto_v1_3")
        self.datapath = protocol.ProtocolDesc(version=n.OFP_VERSION)
        self.types = {n.OFPGT_SELECT: "select", n.OFPGT_INDIRECT: "indirect"}
        self.types[n.OFPGT_FF] = "fast_failover"
        head, group = n.OFP_HEADER_PACK_STR, n.OFP_GROUP_MOD_PACK_STR
        wrapped = n.OFP_EXPERIMENTER_HEADER_PACK_STR, n.ONF_BUNDLE_ADD_MSG_PACK_STR
        self._header, self._group_mod = Struct(head), Struct(head + group[1:])
        self._wrapper = Struct(head + "".join(layout[1:] for layout in wrapped))
        self._adds = common.ONF_EXPERIMENTER_ID, n.ONF_ET_BUNDLE_ADD_MESSAGE
        self._known: dict[bytes, str] = {}

    def texts(self, data: bytes) -> tuple[list[str], list[str]]:
        """The flows and the groups that messages in a bundle add, a line each.

        Raises:
            ValueError: a message is none that adds one, or has what no text here has.
        """
        flows: list[str] = []
        groups: list[str] = []
        for kind, message in self._bundled(data):
            body = message[self._header.size :]
            # Switches differ in few of their rows, so most are known.
            if body not in self._known:
                made = self._flow if kind == self.numbers.OFPT_FLOW_MOD else self._group
                self._known[body] = made(message)
            (flows if kind == self.numbers.OFPT_FLOW_MOD else groups).append(self._known[body])
        return flows, groups

    def _bundled(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The type of each message that is added to a bundle, and the message."""
        n, place = self.numbers, 0
        expected = (n.OFP_VERSION, n.OFPT_EXPERIMENTER, *self._adds)
        while place < len(data):
            version, kind, length, _, *about, _, _ = self._wrapper.unpack_from(data, place)
            message = data[place + self._wrapper.size : place + length]
            added = (version, kind, *about) == expected
            _require(added and len(message) >= self._header.size, "a message in a bundle")
            inner = self._header.unpack_from(message)[1]
            _require(inner in (n.OFPT_FLOW_MOD, n.OFPT_GROUP_MOD), "a row or a group")
            yield inner, message
            place += length

    def _flow(self, data: bytes) -> str:
        message = self.parser.OFPFlowMod.parser(
            self.datapath, *self._header.unpack_from(data), bytearray(data)
        )
        _require(message.command == self.numbers.OFPFC_ADD, "a row is added")
        _require(not (message.idle_timeout or message.hard_timeout), "a row stays")
        alone = (message.buffer_id, message.flags) == (self.numbers.OFP_NO_BUFFER, 0)
        _require(alone, "a row is all that is sent, and without flags")
        head = f"table={message.table_id},priority={message.priority},cookie={message.cookie:#x}"
        actions = list(self._actions(message.instructions)) or ["drop"]
        parts = (head, *_match(dict(message.match.items())), f"actions={','.join(actions)}")
        return ",".join(filter(None, parts))

    def _actions(self, instructions: list[Any]) -> Iterator[str]:
        """In the order in which a switch carries them out."""
        by_name = {
            type(each).__name__.removeprefix("OFPInstruction"): each for each in instructions
        }
        known = {"Actions", "WriteMetadata", "GotoTable"}
        _require(len(by_name) == len(instructions) and by_name.keys() <= known, "instructions")
        if applied := by_name.get("Actions"):
            _require(
                applied.type == self.numbers.OFPIT_APPLY_ACTIONS, "actions are applied at once"
            )
            yield from map(self._action, applied.actions)
        if written := by_name.get("WriteMetadata"):
            value, mask = written.metadata, written.metadata_mask
            whole = mask == ALL_METADATA
            number = value if whole or mask == CLASS_METADATA else hex(value)
            yield f"write_metadata:{number}" + f"/{mask:#x}" * (not whole)
        if after := by_name.get("GotoTable"):
            yield f"goto_table:{after.table_id}"

    def _group(self, data: bytes) -> str:
        *_, command, kind, number = self._group_mod.unpack_from(data)
        _require(command == self.numbers.OFPGC_ADD, "a group is added")
        _require(kind in self.types, "a group of a known type")
        place, buckets, none = self._group_mod.size, [], self.numbers.OFPP_ANY
        while place < len(data):
            bucket = self.parser.OFPBucket.parser(data, place)
            weight = f"weight:{bucket.weight}," if kind == self.numbers.OFPGT_SELECT else ""
            watch = f"watch_port:{bucket.watch_port}," if bucket.watch_port != none else ""
            if bucket.watch_group != none:
                watch += f"watch_group:{bucket.watch_group},"
            actions = ",".join(map(self._action, bucket.actions))
            buckets.append(f"bucket={weight}{watch}actions={actions}")
            place += bucket.len
        return ",".join((f"group_id={number},type={self.types[kind]}", *buckets))

    def _action(self, action: Any) -> str:
        name = type(action).__name__
        if name == "OFPActionOutput":
            back = action.port == self.numbers.OFPP_IN_PORT
            return "in_port" if back else f"output:{action.port}"
        found = _ACTIONS.get(name)
        _require(found is not None, f"an action that is no {name}")
        return found(action) if found else ""


def _match(match: dict[str, Any]) -> Iterator[str]:
    yield FAMILIES[match.pop("eth_type", None), match.pop("ip_proto", None)]
    for field, name in FIELDS.items():
        if field in match:
            value = match.pop(field)
            masked = _masked_mac if name == "eth_dst" else _network
            yield f"{name}={masked(value) if isinstance(value, tuple) else value}"
    if "reg0" in match:
        yield "reg0=" + "/".join(map(hex, match.pop("reg0")))
    if "metadata" in match:
        value = match.pop("metadata")
        yield "metadata=" + (
            f"{value[0]}/{value[1]:#x}" if isinstance(value, tuple) else str(value)
        )
    _require(not match, f"a match without {', '.join(match)}")


def _masked_mac(value: tuple[str, str]) -> str:
    return "/".join(value)


def _network(value: tuple[str, str]) -> str:
    """An address and its mask as a prefix.

    Raises:
        ValueError: the mask is none of a prefix.
    """
    address, mask = value
    if ":" not in address:
        return str(ip_network(f"{address}/{mask}"))
    bits = int(ip_network(mask).network_address)
    length = bits.bit_count()
    _require(bits == (1 << 128) - (1 << 128 - length), "a mask of a prefix")
    return str(ip_network(f"{address}/{length}"))


def _set_field(action: Any) -> str:
    value = action.value
    if action.key in RAW:
        number = int.from_bytes(b64decode(value), "big")
        value = number if number < RAW_DECIMALS else f"{number:#x}"
    return f"set_field:{value}->{SET.get(action.key, action.key)}"


def _move(action: Any) -> str:
    source, target = (end.removesuffix("_nxm") for end in (action.src_field, action.dst_field))
    whole = (action.src_ofs, action.dst_ofs) == (0, 0)
    same = action.n_bits == WIDTHS.get(source) == WIDTHS.get(target)
    _require(whole and same, "a field is moved whole")
    return f"move:{source}->{target}"


def _load(action: Any) -> str:
    target, (bit, more) = action.dst.removesuffix("_nxm"), divmod(action.ofs_nbits, 64)
    name, whole = NAMES.get(target, (target, 0))
    bits = f"{bit}..{bit + more}" if more else f"{bit}"
    return f"load:{action.value}->{name}[{'' if more + 1 == whole else bits}]"


def _bundle(action: Any) -> str:
    known = action.algorithm, action.fields, action.slave_type, action.ofs_nbits, action.dst
    _require(known == HASHED_TO_PORTS, "ports chosen by the highest random weight")
    _require(action.n_slaves == len(action.slaves), "as many ports as there are")
    members = ",".join(map(str, action.slaves))
    return f"bundle(symmetric_l3l4+udp,{action.basis},hrw,ofport,members:{members})"


def _bundle_load(action: Any) -> str:
    known = action.algorithm, action.fields, action.basis, action.slave_type, action.n_slaves
    target = action.dst.removesuffix("_nxm")
    _require((*known, action.ofs_nbits, target) == FIRST_INTO_REGISTER, "a port into register 0")
    return (
        "bundle_load(symmetric_l3l4+udp,0,active_backup,ofport,NXM_NX_REG0[0..15],"
        f"members:{action.slaves[0]})"
    )


def _multipath(action: Any) -> str:
    known = action.fields, action.algorithm, action.arg, action.ofs_nbits
    target = action.dst.removesuffix("_nxm")
    _require((*known, target) == DRAWN, "an intermediate is drawn")
    count = action.max_link + 1
    hashed = f"symmetric_l3l4+udp,{action.basis},modulo_n,{count},0"
    return f"multipath({hashed},NXM_OF_ETH_DST[0..15])"


def _resubmit(action: Any) -> str:
    _require(action.in_port == AS_IT_CAME, "the port stays what it was")
    return f"resubmit(,{action.table_id})"


_ACTIONS: dict[str, Callable[[Any], str]] = {
    "OFPActionGroup": lambda action: f"group:{action.group_id}",
    "OFPActionSetField": _set_field,
    "NXActionBundle": _bundle,
    "NXActionBundleLoad": _bundle_load,
    "NXActionMultipath": _multipath,
    "NXActionResubmitTable": _resubmit,
    "NXActionRegMove": _move,
    "NXActionRegLoad": _load,
    "OFPActionDecNwTtl": lambda _: "dec_ttl",
}


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"required {what}")
