"""LLDP frames that say which switch and port they left by, signed; many at once.

Layout: IEEE 802.1AB, §8; datapath id and port number stand where Ryu and os-ken have them, too. The
signature is in an organisationally specific TLV (§8.6) under a locally administered identifier.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from hmac import compare_digest

import numpy as np
from numpy.typing import NDArray

ETHERTYPE = 0x88CC
NEAREST_BRIDGE = bytes.fromhex("0180c200000e")
"""No bridge passes it on (§7.1): what arrives has crossed one cable."""
OUI, SIGNED = bytes.fromhex("025046"), 1
SIGNATURE = 16
_CHASSIS = struct.Struct("!HB21s")
_PORT = struct.Struct("!HBI")
_TIME_TO_LIVE = struct.Struct("!HH")
_TOKEN = struct.Struct(f"!H3sBI{SIGNATURE}s")
LOCAL, COMPONENT = 7, 2
_HEAD = 14
_PORT_AT = _HEAD + _CHASSIS.size
_TOKEN_AT = _PORT_AT + _PORT.size + _TIME_TO_LIVE.size
_SIGNATURE_AT = _TOKEN_AT + _TOKEN.size - SIGNATURE
SIZE = _TOKEN_AT + _TOKEN.size + 2


def frames(
    datapath_id: int, ports: NDArray[np.integer], round_: int, seconds: int, key: bytes
) -> NDArray[np.uint8]:
    """uint8[n, SIZE]: a frame for each port of a switch.

    Args:
        datapath_id: of the switch.
        ports: int[n], port numbers.
        round_: a number that grows; it dates the frames.
        seconds: for how long they hold (the TTL that LLDP has).
        key: what they are signed with.
    """
    source = b"\x02\x50\x46" + (datapath_id & 0xFFFFFF).to_bytes(3, "big")
    frame = b"".join(
        (
            NEAREST_BRIDGE + source + ETHERTYPE.to_bytes(2, "big"),
            _CHASSIS.pack(_tlv(1, _CHASSIS.size), LOCAL, b"dpid:%016x" % datapath_id),
            _PORT.pack(_tlv(2, _PORT.size), COMPONENT, 0),
            _TIME_TO_LIVE.pack(_tlv(3, _TIME_TO_LIVE.size), seconds),
            _TOKEN.pack(_tlv(127, _TOKEN.size), OUI, SIGNED, round_, b""),
            bytes(2),
        )
    )
    result = np.tile(np.frombuffer(frame, np.uint8), (len(ports), 1))
    result[:, _PORT_AT + 3 : _PORT_AT + 7] = _big_endian(ports)
    signed = np.ascontiguousarray(result[:, :_SIGNATURE_AT]).tobytes()
    signatures = b"".join(
        _signature(signed[at : at + _SIGNATURE_AT], key)
        for at in range(0, len(signed), _SIGNATURE_AT)
    )
    result[:, _SIGNATURE_AT:-2] = np.frombuffer(signatures, np.uint8).reshape(-1, SIGNATURE)
    return result


def read(frame: bytes | memoryview, key: bytes) -> tuple[int, int, int] | None:
    """The datapath id, port and round of a frame that was signed with this key; else None."""
    data = bytes(frame[:SIZE])
    signature = data[_SIGNATURE_AT:-2]
    if len(data) < SIZE or not data.startswith(NEAREST_BRIDGE):
        return None
    if not compare_digest(signature, _signature(data[:_SIGNATURE_AT], key)):
        return None
    _, _, chassis = _CHASSIS.unpack_from(data, _HEAD)
    _, _, port = _PORT.unpack_from(data, _PORT_AT)
    _, _, _, round_, _ = _TOKEN.unpack_from(data, _TOKEN_AT)
    return int(chassis.removeprefix(b"dpid:"), 16), port, round_


def _tlv(kind: int, size: int) -> int:
    """Type and length in 7 and 9 bits (§8.4); size counts these two bytes."""
    return kind << 9 | size - 2


def _signature(data: bytes, key: bytes) -> bytes:
    """A keyed BLAKE2b (RFC 7693, §2.9), which needs no HMAC around it."""
    return blake2b(data, key=key, digest_size=SIGNATURE).digest()


def _big_endian(numbers: NDArray[np.integer]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(numbers.astype(">u4")).view(np.uint8).reshape(-1, 4)
