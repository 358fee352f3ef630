"""Discovery of cables by a signed LLDP frame out of every port. No I/O.

Switches with a session send in turn, at most `rate` frames a second in all; a frame received at
another switch shows a cable in one direction. A planned link counts as seen if both directions were
received within three turns. A switch whose frames were never received may keep LLDP to itself, and
one that never received any may not pass it on: of their links nothing is known, nor of those
whose ports are not there. A port that receives from another end than planned is miswired; the
as-wired check (`compilers.audit`) finds the moves that mend it. Foreign, forged and old frames and
frames of hosts are ignored.

Frames are of IEEE 802.1AB, §8, with datapath id and port number in the same places as in Ryu and
os-ken. The signature is in an organisationally specific TLV (§8.6) under a locally administered
identifier.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from secrets import token_bytes

import numpy as np
from numpy.typing import NDArray

from compilers.audit.resolve import PortFinder, Wired, likeliest
from compilers.audit.wiring_audit import WiringAudit, check
from compilers.targets.openflow.protocol import WireLayout
from compilers.wiring.wiring import Wiring, links_by_port
from controller.openflow.messages import packet_in, packets_out
from controller.settings import LINK_RATE

LEAST_PERIOD = 2.0
"""Least seconds between two turns of a switch."""
MISSED = 3
"""Turns without a frame after which a cable counts as gone."""
NEVER_SEEN = -np.inf

ETHERTYPE = 0x88CC
NEAREST_BRIDGE = bytes.fromhex("0180c200000e")
"""No bridge forwards it (§7.1): a frame that arrives has crossed one cable."""
OUI, SIGNED = bytes.fromhex("025046"), 1
SIGNATURE = 16
LOCAL, COMPONENT = 7, 2
FRAME = WireLayout(
    "to 6s, source 6s, ethertype H",
    "chassis H, chassis_kind B, switch 21s",
    "port_id H, port_kind B, port L",
    "life H, seconds H",
    f"token H, oui 3s, token_kind B, round L, signature {SIGNATURE}s",
    "2x",
)
"""A frame: chassis, port, time to live, our TLV, and the end TLV, which is 0."""
TLVS = {"chassis": (1, 22), "port_id": (2, 5), "life": (3, 2), "token": (127, 8 + SIGNATURE)}
"""The types of the TLVs (§8.5), and the bytes of their values."""
SIGNED_BYTES = FRAME.size - SIGNATURE - 2
"""All bytes before the signature are signed."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkEnds:
    """The links of a wiring by number."""

    number: NDArray[np.int64]
    """int64[S, K], the number of each switch's k-th link; E beyond its last one."""
    ends: NDArray[np.int64]
    """int64[E, 2, 2], for both ends the switch and the link's index there."""
    place: NDArray[np.int64]
    """int64[S, ports + 1], the link's index by port, or -1."""

    @classmethod
    def of(cls, wiring: Wiring) -> LinkEnds:
        """Number the links of a wiring by their first end."""
        (switch, link), place = wiring.links(), links_by_port(wiring.far, wiring.port)
        far = wiring.far[switch, link]
        back = place[far, wiring.far_port[switch, link]]
        number = np.full(wiring.far.shape, len(far))
        number[switch, link] = number[far, back] = np.arange(len(far))
        ends = np.stack((switch, link, far, back), axis=1).reshape(-1, 2, 2)
        return cls(number, ends.astype(np.int64), place.astype(np.int64))


class Discovery:
    """Received frames by port: port p of vertex v is v·W + p, as in `compilers.audit.resolve`."""

    def __init__(self, wiring: Wiring, rate: float = LINK_RATE, key: bytes | None = None) -> None:
        self.wiring, self.cables = wiring, LinkEnds.of(wiring)
        self.interval = max(LEAST_PERIOD, float(np.count_nonzero(wiring.far >= 0)) / rate)
        self._key = key or token_bytes(32)
        ports = PortFinder(wiring)
        self._width, self._planned = ports.width, ports.planned()
        self._vertex = {d: v for v, d in enumerate(wiring.datapath_id.tolist())}
        order = len(wiring.far)
        self._last, self._allowed = 0.0, 0.0
        self._sends, self._hears = np.zeros(order, np.bool_), np.zeros(order, np.bool_)
        self._ports = np.zeros((order, ports.width), np.bool_)
        self._round = np.zeros(order, np.int64)
        self._turn = np.full(order, np.inf)
        self._since = np.full(order, np.inf)
        self._from = np.full(order * ports.width, -1)
        self._heard = np.full(order * ports.width, NEVER_SEEN)
        self._at = np.full(order * ports.width, -1)
        end = self.cables.ends
        at = end[..., 0] * ports.width + wiring.port[end[..., 0], end[..., 1]]
        self._near: NDArray[np.int64] = at[:, 0]
        self._far: NDArray[np.int64] = at[:, 1]

    @property
    def age(self) -> float:
        """Seconds for which a received frame counts."""
        return MISSED * self.interval

    def present(self, vertex: int, ports: NDArray[np.integer] | None, now: float) -> None:
        """A switch has a session and these ports, or (None) has left.

        Its first turn is now, later ones at an offset of its own.
        """
        self._ports[vertex] = False
        self._turn[vertex] = self._since[vertex] = np.inf if ports is None else now
        if ports is not None:
            self._ports[vertex, ports[(ports > 0) & (ports < self._width)]] = True

    def port(self, vertex: int, port: int, exists: bool) -> None:
        """A port of a switch with a session has been added or removed."""
        if np.isfinite(self._since[vertex]) and 0 < port < self._width:
            self._ports[vertex, port] = exists

    def due(self, now: float) -> list[tuple[int, bytes]]:
        """The packet-outs to send now, by vertex: those of switches that are due."""
        turns = np.flatnonzero(self._turn <= now)
        passed = min(now - self._last, 1.0)
        self._allowed += passed * len(self._turn) / self.interval
        most = int(min(self._allowed, len(turns)))
        self._last, self._allowed = now, min(self._allowed - most, 1.0)
        chosen = turns[np.argsort(self._turn[turns], kind="stable")[:most]]
        self._turn[chosen] = now + self.interval
        return [(vertex, self._frames(vertex)) for vertex in chosen.tolist()]

    def received(self, vertex: int, message: bytes, now: float) -> bool:
        """A packet-in has arrived; returns whether it was one of our valid frames."""
        port, frame = packet_in(message)
        origin_port = read_frame(frame, self._key)
        if origin_port is None:
            return False
        datapath_id, sender, round_ = origin_port
        origin = self._vertex.get(datapath_id)
        if origin is None or not 0 < port < self._width or not 0 < sender < self._width:
            return False
        if not self._round[origin] - MISSED < round_ <= self._round[origin]:
            return False  # a replayed frame
        at, of = vertex * self._width + port, origin * self._width + sender
        before = self._at[of]
        if before not in (at, -1) and self._from[before] == of:
            self._heard[before] = NEVER_SEEN  # the plug was moved
        self._from[at], self._heard[at], self._at[of] = of, now, at
        self._sends[origin] = self._hears[vertex] = True
        return True

    def unseen(self, now: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """bool[E] each: planned links of which a direction is not received, though it should be by
        now, and those that are seen. It should be once both switches have had a session for long.
        """
        a, b = self.cables.ends[:, 0, 0], self.cables.ends[:, 1, 0]
        ready = now - np.maximum(self._since[a], self._since[b]) > self.age
        ready &= self._ports.take(self._near) & self._ports.take(self._far)
        at_a = self._fresh(now, self._near) & (self._from[self._near] == self._far)
        at_b = self._fresh(now, self._far) & (self._from[self._far] == self._near)
        missed = self._sends[b] & self._hears[a] & ~at_a | self._sends[a] & self._hears[b] & ~at_b
        return ready & missed, at_a & at_b

    def wired(self, now: float) -> Wired:
        """The cables seen now, one a port."""
        at = np.flatnonzero(self._heard >= now - self.age)
        seen = Counter(zip(at.tolist(), self._from[at].tolist(), strict=True))
        cables, contested = likeliest(seen, self._planned)
        settled = now - self._since > self.age
        reporters = frozenset(np.flatnonzero(settled).tolist())
        return Wired(cables, reporters, contested, (), ())

    def miswired(self, now: float) -> WiringAudit | None:
        """The as-wired check if a port receives from another end than planned; else None.

        A link that is not seen at all is broken, which is no sign of misplaced plugs.
        """
        at = np.flatnonzero(self._heard >= now - self.age)
        planned = np.full(len(self._from), -1)
        planned[self._near], planned[self._far] = self._far, self._near
        odd = at[planned[at] != self._from[at]]
        ends = np.concatenate((odd, planned[odd][planned[odd] >= 0])) // self._width
        # Links are not missing while their switches have not had the time to report them.
        if not len(odd) or (now - self._since[ends] <= self.age).any():
            return None
        return check(self.wiring, self.wired(now))

    def _fresh(self, now: float, ports: NDArray[np.int64]) -> NDArray[np.bool_]:
        fresh: NDArray[np.bool_] = self._heard[ports] >= now - self.age
        return fresh

    def _frames(self, vertex: int) -> bytes:
        self._round[vertex] += 1
        ports = np.flatnonzero(self._ports[vertex])
        seconds = min(0xFFFF, round(self.age) + 1)
        datapath_id = int(self.wiring.datapath_id[vertex])
        lldp = frames(datapath_id, ports, int(self._round[vertex]), seconds, self._key)
        return packets_out(ports, lldp)


def frames(
    datapath_id: int, ports: NDArray[np.integer], round_: int, seconds: int, key: bytes
) -> NDArray[np.uint8]:
    """uint8[n, 80]: a frame for each port, int[n], of a switch; the round grows and dates them.

    seconds: their time to live.
    """
    result: NDArray[np.void] = np.zeros(len(ports), FRAME.dtype)
    result["to"], result["ethertype"] = NEAREST_BRIDGE, ETHERTYPE
    result["source"] = OUI + (datapath_id & 0xFFFFFF).to_bytes(3, "big")
    for name, (kind, size) in TLVS.items():
        result[name] = kind << 9 | size  # 7 and 9 bits (§8.4)
    result["chassis_kind"], result["switch"] = LOCAL, b"dpid:%016x" % datapath_id
    result["port_kind"], result["port"] = COMPONENT, ports
    result["seconds"] = seconds
    result["oui"], result["token_kind"], result["round"] = OUI, SIGNED, round_
    signatures = b"".join(_signature(frame.tobytes(), key) for frame in result)
    result["signature"] = np.frombuffer(signatures, FRAME.dtype["signature"])
    return result.view(np.uint8).reshape(len(ports), FRAME.size)


def read_frame(frame: bytes | memoryview, key: bytes) -> tuple[int, int, int] | None:
    """The datapath id, port and round of a frame signed with this key; else None."""
    data = bytes(frame[: FRAME.size])
    if len(data) < FRAME.size or not data.startswith(NEAREST_BRIDGE):
        return None
    fields = FRAME.read(data)
    if not compare_digest(fields.signature, _signature(data, key)):
        return None
    return int(fields.switch.removeprefix(b"dpid:"), 16), fields.port, fields.round


def _signature(frame: bytes, key: bytes) -> bytes:
    """A keyed BLAKE2b (RFC 7693, §2.9), which needs no HMAC."""
    return blake2b(frame[:SIGNED_BYTES], key=key, digest_size=SIGNATURE).digest()
