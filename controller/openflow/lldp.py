"""Signed LLDP frames that name the switch and port they left by; many at once.

Layout: IEEE 802.1AB, §8, with datapath id and port number in the same places as in Ryu and os-ken.
The signature is in an organisationally specific TLV (§8.6) under a locally administered identifier.
"""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest

import numpy as np
from numpy.typing import NDArray

ETHERTYPE = 0x88CC
NEAREST_BRIDGE = bytes.fromhex("0180c200000e")
"""No bridge forwards it (§7.1): a frame that arrives has crossed one cable."""
OUI, SIGNED = bytes.fromhex("025046"), 1
SIGNATURE = 16
LOCAL, COMPONENT = 7, 2
CHASSIS = np.dtype([("tlv", ">u2"), ("kind", "u1"), ("text", "S21")])
PORT_ID = np.dtype([("tlv", ">u2"), ("kind", "u1"), ("port", ">u4")])
TIME_TO_LIVE = np.dtype([("tlv", ">u2"), ("seconds", ">u2")])
TOKEN = np.dtype(
    [
        ("tlv", ">u2"),
        ("oui", "V3"),
        ("kind", "u1"),
        ("round", ">u4"),
        ("signature", f"V{SIGNATURE}"),
    ]
)
FRAME = np.dtype(
    [
        ("to", "V6"),
        ("from", "V6"),
        ("ethertype", ">u2"),
        ("chassis", CHASSIS),
        ("port", PORT_ID),
        ("time", TIME_TO_LIVE),
        ("token", TOKEN),
        ("end", "V2"),
    ]
)
"""A frame: chassis, port, time to live, our TLV, and the end TLV, which is 0."""
SIGNED_BYTES = FRAME.itemsize - SIGNATURE - FRAME["end"].itemsize
"""All bytes before the signature are signed."""


def frames(
    datapath_id: int, ports: NDArray[np.integer], round_: int, seconds: int, key: bytes
) -> NDArray[np.uint8]:
    """uint8[n, 80]: a frame for each port of a switch.

    Args:
        datapath_id: of the switch.
        ports: int[n], port numbers.
        round_: a number that grows; it dates the frames.
        seconds: the frames' time to live.
        key: the signing key.
    """
    result: NDArray[np.void] = np.zeros(len(ports), FRAME)
    result["to"], result["ethertype"] = np.void(NEAREST_BRIDGE), ETHERTYPE
    result["from"] = np.void(OUI + (datapath_id & 0xFFFFFF).to_bytes(3, "big"))
    for kind, name in TLVS.items():
        result[name]["tlv"] = kind << 9 | FRAME[name].itemsize - 2  # 7 and 9 bits (§8.4)
    chassis, token = result["chassis"], result["token"]
    chassis["kind"], chassis["text"] = LOCAL, b"dpid:%016x" % datapath_id
    result["port"]["kind"], result["port"]["port"] = COMPONENT, ports
    result["time"]["seconds"] = seconds
    token["oui"], token["kind"], token["round"] = np.void(OUI), SIGNED, round_
    signatures = b"".join(_signature(frame.tobytes(), key) for frame in result)
    token["signature"] = np.frombuffer(signatures, TOKEN["signature"])
    return result.view(np.uint8).reshape(len(ports), FRAME.itemsize)


def read(frame: bytes | memoryview, key: bytes) -> tuple[int, int, int] | None:
    """The datapath id, port and round of a frame signed with this key; else None."""
    data = bytes(frame[: FRAME.itemsize])
    if len(data) < FRAME.itemsize or not data.startswith(NEAREST_BRIDGE):
        return None
    said = np.frombuffer(data, FRAME)[0]
    if not compare_digest(said["token"]["signature"].tobytes(), _signature(data, key)):
        return None
    datapath_id = int(said["chassis"]["text"].removeprefix(b"dpid:"), 16)
    return datapath_id, int(said["port"]["port"]), int(said["token"]["round"])


TLVS = {1: "chassis", 2: "port", 3: "time", 127: "token"}
"""The types of the TLVs (§8.5)."""


def _signature(frame: bytes, key: bytes) -> bytes:
    """A keyed BLAKE2b (RFC 7693, §2.9), which needs no HMAC."""
    return blake2b(frame[:SIGNED_BYTES], key=key, digest_size=SIGNATURE).digest()
