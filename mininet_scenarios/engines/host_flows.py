"""Flows between the hosts of a running Mininet network: UDP by a probe, TCP by iperf3.

iperf3 has a server and a client a flow, all at once. Its UDP mode is of no use here: the first
packet of a test is sent once only, and a full link loses it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import numpy as np

from mininet_scenarios.engines.network import FabricNetwork
from mininet_scenarios.machine.netns import entered, no_offloads
from mininet_scenarios.scenario.engine import EngineError
from mininet_scenarios.traffic.probing import ProbeProcess, decode

FIRST_PORT = 5201
IPERF_PATIENCE = 30
"""Seconds that servers may take to listen, and clients to end after their time."""
IPERF_POLL = 0.05
WAITS = ("sh", "-c", 'read -r go; exec "$@"', "sh")
Spawn = Callable[..., "subprocess.Popen[str]"]


@dataclass(frozen=True, slots=True)
class Stream:
    """One flow: how to start a command in its two hosts, where to, and Mb/s.

    listener is the id of a process in the receiver's network namespace.
    """

    sender: Spawn
    receiver: Spawn
    listener: int
    address: str
    rate: float


def run(streams: Sequence[Stream], parallel: int, seconds: float, logs: Path) -> list[float]:
    """Mb/s that arrived of each stream.

    Args:
        streams: all run at once.
        parallel: connections that each divides itself into.
        seconds: how long they send.
        logs: a folder for what iperf3 prints.

    Raises:
        EngineError: a server or a client failed.
    """
    servers: list[subprocess.Popen[str]] = []
    clients: list[subprocess.Popen[str]] = []
    folder = logs / "iperf3"
    folder.mkdir(exist_ok=True)
    try:
        for number, stream in enumerate(streams):
            with (folder / f"server-{number}.json").open("w") as out:
                command = ["iperf3", "-s", "-1", "-p", str(FIRST_PORT + number), "-J"]
                servers.append(_start(stream.receiver, command, out))
        _listening(streams)
        # Starting a process in a host takes a while; so all are started, and then let go at once.
        for number, stream in enumerate(streams):
            rate = 1e6 * stream.rate / parallel
            command = ["iperf3", "-c", stream.address, "-p", str(FIRST_PORT + number)]
            command += ["-b", f"{rate:.0f}", "-t", f"{seconds:g}", "-P", str(parallel), "-J"]
            with (folder / f"client-{number}.json").open("w") as out:
                clients.append(_start(stream.sender, [*WAITS, *command], out))
        for client in clients:
            assert client.stdin is not None  # noqa: S101
            client.stdin.write("go\n")
            client.stdin.close()
        deadline = monotonic() + seconds + IPERF_PATIENCE
        for client in clients:
            client.wait(max(0.1, deadline - monotonic()))
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"iperf3 does not end: {folder} has what it printed") from error
    finally:
        for process in (*clients, *servers):
            if process.poll() is None:
                process.kill()
            process.wait()
    return [_arrived(folder / f"client-{number}.json") for number in range(len(streams))]


def _start(spawn: Spawn, command: list[str], out: object) -> subprocess.Popen[str]:
    return spawn(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, text=True)


def _listening(streams: Sequence[Stream]) -> None:
    """Wait until every server has its port, as the kernel says in its namespace."""
    deadline = monotonic() + IPERF_PATIENCE
    for number, stream in enumerate(streams):
        wanted = f":{FIRST_PORT + number:04X} "
        listening = [Path(f"/proc/{stream.listener}/net/{table}") for table in ("tcp", "tcp6")]
        while not any(wanted in table.read_text() for table in listening):
            if monotonic() > deadline:
                raise EngineError("iperf3's servers do not listen")
            sleep(IPERF_POLL)


def _arrived(file: Path) -> float:
    """Mb/s that the receiver had, from what a client printed."""
    try:
        found = json.loads(file.read_text())
    except ValueError:
        found = {"error": f"{file.name} is no JSON"}
    if "error" in found:
        raise EngineError(f"iperf3: {found['error']}")
    return float(found["end"]["sum_received"]["bits_per_second"]) / 1e6


LARGEST_PAYLOAD = 1242
"""Bytes of a frame of the fastest UDP flow; it fits everywhere."""
Flow = tuple[int, int, float]
"""From host, to host, Mb/s."""


def carry_udp(network: FabricNetwork, flows: Sequence[Flow], seconds: float) -> list[float]:
    """Mb/s that arrived in the second half of the time, when queues are as full as they get.

    All send as often; the fastest with the largest packets.
    """
    rates = np.array([rate for *_, rate in flows])
    frames = np.maximum(1, np.round(LARGEST_PAYLOAD * rates / rates.max()))
    interval = LARGEST_PAYLOAD * 8 / 1e6 / float(rates.max())
    pairs = [(s, d) for s, d, _ in flows]
    probe = ProbeProcess(network.ends(), pairs, interval, frames.astype(int).tolist())
    sleep(seconds)
    probed = decode(probe.stop())
    half = float(probed.sent.mean())
    later = (probed.received >= half) & (probed.received < probed.sent[-1])
    came = np.bincount(probed.pair[later], minlength=len(flows))
    arrived: list[float] = (came * frames * 8 / 1e6 / (probed.sent[-1] - half)).tolist()
    return arrived


def carry_tcp(
    network: FabricNetwork, flows: Sequence[Flow], parallel: int, seconds: float, logs: Path
) -> list[float]:
    """Mb/s that arrived.

    Raises:
        EngineError: iperf3 failed.
    """
    hosts = network.hosts
    for host in {end for s, d, _ in flows for end in (s, d)}:
        with entered(hosts[host].pid):
            no_offloads("eth0")
    streams = [
        Stream(hosts[s].popen, hosts[d].popen, hosts[d].pid, network.address(d, 4), rate)
        for s, d, rate in flows
    ]
    return run(streams, parallel, seconds, logs)
