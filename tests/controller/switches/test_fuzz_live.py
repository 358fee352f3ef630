"""Peers that send broken OpenFlow to the real listener, under the names of switches too."""

import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.controller.makers import BRIDGES, OTHERS_TRY_RYU, SWITCHES, connect, leave
from tests.waiting import until

pytestmark = pytest.mark.live
PEERS, PEERS_AT_ONCE = 24, 8
HELLO, ERROR, ECHO_REQUEST, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 5, 6
MULTIPART_REQUEST, MULTIPART_REPLY = 18, 19
TYPES = (1, 2, 3, 4, 6, 10, 11, 12, 19, 21, 25, 200)
FLOW = struct.pack("!HBxIIHHHH4xQQQ", 56, 1, 1, 1, 5, 0, 0, 0, 0x5046 << 48, 1, 1) + bytes.fromhex(
    "0001000400000000"
)
GROUP = struct.pack("!HBxI", 40, 2, 1) + struct.pack("!HHII4xHHIH6x", 32, 0, 1, 1, 0, 16, 1, 0)


def message(kind, xid, body=b""):
    return struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body


class Peer:
    """Says hello, names itself, answers requests, and gets something wrong sooner or later."""

    patience = 1.0

    def __init__(self, port, pick, datapath):
        self.pick, self.datapath, self.heard = pick, datapath, b""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=self.patience)

    def talk(self):
        with self.socket:
            self.say(message(HELLO, 1))
            for kind, xid, body in self.messages():
                if kind == FEATURES_REQUEST:
                    rest = struct.pack("!IBBxxII", 0, 254, 0, 0, 0)
                    self.say(message(FEATURES_REPLY, xid, struct.pack("!Q", self.datapath) + rest))
                elif kind == MULTIPART_REQUEST:
                    self.answer(xid, body)
                else:
                    self.noise()

    def answer(self, xid, request):
        (kind,) = struct.unpack_from("!H", request)
        entry = {1: FLOW, 7: GROUP}.get(kind, b"")
        body = entry * int(self.pick.integers(1, 40))
        flags = int(self.pick.integers(0, 2))
        self.say(message(MULTIPART_REPLY, xid, struct.pack("!HH4x", kind, flags) + body))

    def noise(self):
        kind = int(self.pick.choice(TYPES))
        xid = int(self.pick.choice([0, 11 << 24, 11 << 24 | 1, 0xA0000000, 0xFFFFFF01, 0xFFFFFF02]))
        self.say(message(kind, xid, self.pick.bytes(int(self.pick.integers(0, 100)))))

    def say(self, data):
        """Send it, in two of three cases with some bits turned, cut off or doubled."""
        data = bytearray(data)
        match int(self.pick.integers(0, 9)):
            case 0 | 1 | 2:
                for _ in range(int(self.pick.integers(1, 4))):
                    data[int(self.pick.integers(0, len(data)))] ^= 1 << int(self.pick.integers(8))
            case 3:
                del data[int(self.pick.integers(1, len(data))) :]
            case 4:
                data += data[int(self.pick.integers(0, len(data))) :]
            case 5:
                data[2:4] = self.pick.bytes(2)
        self.socket.sendall(data)

    def messages(self):
        while data := self.socket.recv(65536):
            self.heard += data
            while len(self.heard) >= 8:
                _, kind, length, xid = struct.unpack_from("!BBHI", self.heard)
                if len(self.heard) < length:
                    break
                yield kind, xid, self.heard[8:length]
                self.heard = self.heard[length:]


class LatePeer(Peer):
    """Gets nothing wrong before its tables are asked for, and waits to be disconnected then."""

    patience = 20.0

    def say(self, data):
        self.socket.sendall(data)

    def noise(self):
        pass

    def answer(self, xid, _):
        self.say(struct.pack("!BBHI", 4, MULTIPART_REPLY, 3, xid))


def broken(port, seed):
    pick = np.random.default_rng(seed)
    with suppress(OSError):
        Peer(port, pick, int(pick.integers(1, SWITCHES + 3))).talk()


@OTHERS_TRY_RYU
def test_broken_peers_cost_only_their_own_connection(switches, controller):
    connect(switches, controller.port, *BRIDGES)
    controller.wait_for(SWITCHES, "complete")
    until(lambda: len(connections(controller.port)) == len(BRIDGES), "the stranger, too")
    before = connections(controller.port)
    with ThreadPoolExecutor(PEERS_AT_ONCE) as pool:
        list(pool.map(lambda seed: broken(controller.port, seed), range(PEERS)))
    controller.wait_for(SWITCHES, "complete")
    assert connections(controller.port) >= before, "no switch had to come back"
    leave(switches, "s2")
    controller.wait_for(SWITCHES - 1)
    with suppress(BrokenPipeError, ConnectionResetError):  # it may be answering the next request
        LatePeer(controller.port, None, BRIDGES["s2"]).talk()
    controller.says("is disconnected for malformed data: a message of 3 bytes")
    connect(switches, controller.port, "s2")
    controller.wait_for(SWITCHES, "complete")
    log = controller.log.read_text()
    assert "Traceback" not in log
    assert "internal error" not in log


def connections(port):
    """The far ports of the connections that the controller has."""
    rows = [line.split() for line in Path("/proc/thread-self/net/tcp").read_text().splitlines()[1:]]
    return {row[2] for row in rows if row[3] == "01" and row[1].endswith(f":{port:04X}")}
