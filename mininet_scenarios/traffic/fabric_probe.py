"""The probe of the engine `ovs-fabric`: packets at a constant rate from collector to collector.

A thread of its own, with management connections of its own: it goes on while cables are cut.
"""

from __future__ import annotations

import base64
import io
import selectors
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.ovs.frames import FrameWriter, HostPackets
from mininet_scenarios.ovs.management_socket import WHOLE_PACKETS, ManagementConnection
from mininet_scenarios.ovs.openvswitch import OpenVSwitchError
from mininet_scenarios.ovs.ovsfabric import COLLECTED
from mininet_scenarios.scenario.engine import SILENT, hops_of

TURN_XID = 0
"""The round that a probe's packets say they are of; those of exchanges begin with 1."""
FABRIC_LATE = 1.0
"""Seconds after which a packet that has not come is lost."""


class FabricProbe(Thread):
    """Sends a packet over each pair of hosts (int64[n, 2]) every `interval` seconds."""

    def __init__(
        self,
        sockets: Sequence[Path],
        writer: FrameWriter,
        pairs: NDArray[np.int64],
        interval: float,
    ) -> None:
        super().__init__(daemon=True)
        self.writer, self.pairs, self.interval = writer, pairs, interval
        self.connections = [ManagementConnection(path) for path in sockets]
        for connection in self.connections:
            connection.outgoing += WHOLE_PACKETS
            connection.flush()
        self.pair_of = {pair: number for number, pair in enumerate(map(tuple, pairs.tolist()))}
        self.sent: list[float] = []
        self.heard: dict[tuple[int, int], tuple[float, int]] = {}
        self.over, self.failure = Event(), ""

    def run(self) -> None:
        """Until `stop`, and then until the last packets are there or late."""
        with selectors.DefaultSelector() as selector:
            for number, connection in enumerate(self.connections):
                selector.register(connection.socket, selectors.EVENT_READ, number)
            begin = time.monotonic()
            try:
                while not self.over.is_set():
                    due = begin + len(self.sent) * self.interval
                    if time.monotonic() >= due:
                        self._send()
                    self._hear(selector, max(0.0, min(due - time.monotonic(), FABRIC_LATE)))
                end = time.monotonic() + FABRIC_LATE
                every = len(self.sent) * len(self.pairs)
                while len(self.heard) < every and (left := end - time.monotonic()) > 0:
                    self._hear(selector, left)
            except OpenVSwitchError as error:
                self.failure = str(error)

    def stop(self) -> str:
        """What it saw, as `probing.decode` takes it.

        Raises:
            OpenVSwitchError: Open vSwitch hung up meanwhile.
        """
        self.over.set()
        self.join()
        for connection in self.connections:
            connection.socket.close()
        if self.failure:
            raise OpenVSwitchError(self.failure)
        rounds, pairs = len(self.sent), len(self.pairs)
        received, hops = (
            np.full((rounds, pairs), np.nan),
            np.full((rounds, pairs), SILENT, np.int16),
        )
        for (sequence, pair), (at, links) in self.heard.items():
            received[sequence, pair], hops[sequence, pair] = at, links
        out = io.BytesIO()
        np.savez(
            out,
            pair=np.tile(np.arange(pairs, dtype=np.int32), rounds),
            sequence=np.repeat(np.arange(rounds, dtype=np.int32), pairs),
            sent=np.repeat(np.array(self.sent, np.float64), pairs),
            received=received.ravel(),
            hops=hops.ravel(),
        )
        return base64.b64encode(out.getvalue()).decode()

    def _send(self) -> None:
        source, destination = self.pairs.T
        numbers = np.full(len(source), len(self.sent), np.int64)
        outs = self.writer.outs(
            HostPackets(source, destination, numbers), source % COLLECTED + 1, TURN_XID
        )
        self.sent.append(time.monotonic())
        for number, connection in enumerate(self.connections):
            connection.outgoing += outs[source // COLLECTED == number].tobytes()
            connection.flush()

    def _hear(self, selector: selectors.BaseSelector, patience: float) -> None:
        for key, _ in selector.select(patience):
            connection = self.connections[key.data]
            rows = self.writer.ins(connection.read())
            connection.flush()
            now = time.monotonic()
            for row in rows[rows["round"] == TURN_XID]:
                destination = int(row["destination"])
                if key.data * COLLECTED + int(row["in_port"]) - 1 == destination:
                    pair = self.pair_of[int(row["source"]), destination]
                    arrived = now, hops_of(int(row["ttl"]))
                    self.heard.setdefault((int(row["number"]), pair), arrived)
