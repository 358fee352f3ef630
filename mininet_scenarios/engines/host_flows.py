"""Flows between the hosts of a running Mininet network: UDP by a probe, TCP by iperf3.

iperf3 has a server and a client a flow, all at once. Its UDP mode is of no use here: the first
packet of a test is sent once only, and a full link loses it.
"""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import numpy as np
from mininet.node import Node
from numpy.typing import NDArray

from mininet_scenarios.engines.network import FabricNetwork
from mininet_scenarios.machine.netns import entered, no_offloads, until
from mininet_scenarios.scenario.engine import EngineError, Flows
from mininet_scenarios.traffic.probing import PROBE_PORT, ProbeProcess, UdpProber

FIRST_PORT = 5201
IPERF_PATIENCE = 30
"""Seconds that servers may take to listen, and clients to end after their time."""
WAITS = ("sh", "-c", 'read -r go; exec "$@"', "sh")
LARGEST_PAYLOAD = 1242
"""Bytes of a frame of the fastest UDP flow; it fits everywhere."""


def carry_udp(network: FabricNetwork, flows: Flows, seconds: float) -> NDArray[np.float64]:
    """Mb/s that arrived in the second half of the time, when queues are as full as they get.

    All send as often; the fastest with the largest packets.
    """
    most = float(flows.rate.max())
    frames = np.maximum(1, np.round(LARGEST_PAYLOAD * flows.rate / most))
    interval = LARGEST_PAYLOAD * 8 / 1e6 / most
    pairs = np.stack((flows.source, flows.destination), axis=1).tolist()
    sizes = frames.astype(int).tolist()
    probe = ProbeProcess(interval, UdpProber, network.ends(), pairs, PROBE_PORT, sizes)
    sleep(seconds)
    probed = probe.stop()
    half = float(probed.sent.mean())
    later = (probed.received >= half) & (probed.received < probed.sent[-1])
    came = np.bincount(probed.pair[later], minlength=len(pairs))
    return np.asarray(came * frames * 8 / 1e6 / (probed.sent[-1] - half))


def carry_tcp(
    network: FabricNetwork, flows: Flows, seconds: float, logs: Path
) -> NDArray[np.float64]:
    """Mb/s that arrived. `logs` is a folder for what iperf3 prints.

    Raises:
        EngineError: a server or a client failed.
    """
    senders, receivers = (
        [network.hosts[host] for host in hosts.tolist()]
        for hosts in (flows.source, flows.destination)
    )
    for host in {*senders, *receivers}:
        with entered(host.pid):
            no_offloads("eth0")
    servers: list[subprocess.Popen[str]] = []
    clients: list[subprocess.Popen[str]] = []
    folder = logs / "iperf3"
    folder.mkdir(exist_ok=True)
    try:
        for port, host in enumerate(receivers, FIRST_PORT):
            command = ["iperf3", "-s", "-1", "-p", str(port), "-J"]
            servers.append(_start(host, command, folder / f"server-{port}.json"))
        for end in enumerate(receivers, FIRST_PORT):
            until(partial(_listening, *end), "iperf3's server listens", IPERF_PATIENCE)
        # Starting a process in a host takes a while; so all are started, and then let go at once.
        for number, host in enumerate(senders):
            port, to = FIRST_PORT + number, int(flows.destination[number])
            rate = 1e6 * flows.rate[number] / flows.parallel
            command = [*WAITS, "iperf3", "-c", network.address(to, 4), "-p", str(port), "-J"]
            command += ["-b", f"{rate:.0f}", "-t", f"{seconds:g}", "-P", str(flows.parallel)]
            clients.append(_start(host, command, folder / f"client-{port}.json"))
        for client in clients:
            _let_go(client)
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
    ports = range(FIRST_PORT, FIRST_PORT + len(clients))
    return np.array([_arrived(folder / f"client-{port}.json") for port in ports])


def _start(host: Node, command: list[str], out: Path) -> subprocess.Popen[str]:
    with out.open("w") as printed:
        process: subprocess.Popen[str] = host.popen(
            command, stdin=subprocess.PIPE, stdout=printed, stderr=subprocess.STDOUT, text=True
        )
    return process


def _listening(port: int, host: Node) -> bool:
    """Whether a port is listened at, as the kernel says in a host's namespace."""
    tables = (Path(f"/proc/{host.pid}/net/{table}") for table in ("tcp", "tcp6"))
    return any(f":{port:04X} " in table.read_text() for table in tables)


def _let_go(client: subprocess.Popen[str]) -> None:
    """Tell a client, which waits for a line, to begin."""
    if client.stdin is None:
        raise ValueError("a client without standard input")
    client.stdin.write("go\n")
    client.stdin.close()


def _arrived(file: Path) -> float:
    """Mb/s that the receiver had, from what a client printed."""
    try:
        printed = json.loads(file.read_text())
    except ValueError:
        printed = {"error": f"{file.name} is no JSON"}
    if "error" in printed:
        raise EngineError(f"iperf3: {printed['error']}")
    return float(printed["end"]["sum_received"]["bits_per_second"]) / 1e6
