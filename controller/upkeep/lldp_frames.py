"""Signed LLDP frames, which show which port is at the other end of a cable. No I/O.

`controller.upkeep.discovery` makes the frames of a switch's turn, and reads those that arrive.
Frames are of IEEE 802.1AB, §8, with datapath id and port number in the same places as in Ryu and
os-ken. The signature is in an organisationally specific TLV (§8.6) under a locally administered
identifier.
"""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.protocol import WireLayout

ETHERTYPE = 0x88CC
"""The type of LLDP frames."""
NEAREST_BRIDGE = bytes.fromhex("0180c200000e")
"""The destination address of frames. No bridge forwards it (§7.1), so a frame that arrives has
crossed one cable."""
OUI, SIGNED_SUBTYPE = bytes.fromhex("025046"), 1
"""The organisation's identifier and the subtype in our TLV."""
SIGNATURE_BYTES = 16
"""The bytes of the signature."""
LOCAL, PORT_COMPONENT = 7, 2
"""The subtypes of the TLVs that name the chassis and the port (§8.5.2.2, §8.5.3.2): a locally
assigned name, and a number."""
FRAME = WireLayout(
    "destination 6s, source 6s, ethertype H",
    "chassis H, chassis_kind B, switch 21s",
    "port_id H, port_kind B, port L",
    "time_to_live H, seconds H",
    f"signed H, oui 3s, signed_kind B, turn L, signature {SIGNATURE_BYTES}s",
    "2x",
)
"""A frame: the TLVs of the chassis, the port and the time to live, our signed TLV, and the end TLV,
which is 0. The field that is named like a TLV is its head: its type and length."""
TLVS = {
    "chassis": (1, 22),
    "port_id": (2, 5),
    "time_to_live": (3, 2),
    "signed": (127, 8 + SIGNATURE_BYTES),  # identifier and subtype, turn, signature
}
"""The type of each TLV (§8.5), and the bytes of its value."""
TLV_TYPE_SHIFT = 9
"""The lowest bit of the type in the head of a TLV; the bits below are the length (§8.4)."""
SIGNED_BYTES = FRAME.size - SIGNATURE_BYTES - 2
"""How many bytes are signed: all before the signature, which the end TLV follows."""


class FrameContents(NamedTuple):
    """What a frame says of its sender."""

    datapath_id: int
    """The OpenFlow datapath id of the switch."""
    port: int
    """The number of the port."""
    turn: int
    """The number of the switch's turn, a sequence number: it grows with each turn."""


def frames(
    datapath_id: int, ports: NDArray[np.integer], turn: int, seconds: int, key: bytes
) -> NDArray[np.uint8]:
    """uint8[n, 80]: a frame for each port of a switch.

    Args:
        datapath_id: the OpenFlow datapath id of the switch.
        ports: int[n], the numbers of the ports.
        turn: the number of the switch's turn, which grows: a replayed frame has an old one.
        seconds: the time to live of the frames.
        key: the key of the signatures.
    """
    result: NDArray[np.void] = np.zeros(len(ports), FRAME.dtype)
    result["destination"], result["ethertype"] = NEAREST_BRIDGE, ETHERTYPE
    result["source"] = OUI + (datapath_id & 0xFFFFFF).to_bytes(3, "big")
    for name, (kind, size) in TLVS.items():
        result[name] = kind << TLV_TYPE_SHIFT | size
    result["chassis_kind"], result["switch"] = LOCAL, b"dpid:%016x" % datapath_id
    result["port_kind"], result["port"] = PORT_COMPONENT, ports
    result["seconds"] = seconds
    result["oui"], result["signed_kind"], result["turn"] = OUI, SIGNED_SUBTYPE, turn
    signatures = b"".join(_signature(frame.tobytes(), key) for frame in result)
    result["signature"] = np.frombuffer(signatures, FRAME.dtype["signature"])
    return result.view(np.uint8).reshape(len(ports), FRAME.size)


def read_frame(frame: bytes | memoryview, key: bytes) -> FrameContents | None:
    """The contents of a frame that is signed with this key; None for any other frame."""
    data = bytes(frame[: FRAME.size])
    if len(data) < FRAME.size or not data.startswith(NEAREST_BRIDGE):
        return None
    fields = FRAME.read(data)
    if not compare_digest(fields.signature, _signature(data, key)):
        return None
    datapath_id = int(fields.switch.removeprefix(b"dpid:"), 16)
    return FrameContents(datapath_id, fields.port, fields.turn)


def _signature(frame: bytes, key: bytes) -> bytes:
    """A keyed BLAKE2b (RFC 7693, §2.9), which needs no HMAC."""
    return blake2b(frame[:SIGNED_BYTES], key=key, digest_size=SIGNATURE_BYTES).digest()
