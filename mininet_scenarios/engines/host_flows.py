"""Flows between the hosts of a running Mininet network: UDP by a probe, TCP by iperf3.

Each flow has an iperf3 server and client of its own. All run at once. iperf3 in UDP mode is of no
use here: it sends the first packet of a test only once, and a full link loses that packet.
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
from mininet_scenarios.scenario.engine import EngineError
from mininet_scenarios.scenario.observations import Flows
from mininet_scenarios.traffic.probing import PROBE_PORT, ProbeProcess, UdpProber

FIRST_PORT = 5201
"""The TCP port of the first server; each further server has the next one."""
IPERF_PATIENCE = 30
"""Seconds that servers may take to listen, and clients to end after their time."""
AFTER_A_LINE = ("sh", "-c", 'read -r go; exec "$@"', "sh")
"""The words before a command that is to begin when its standard input has a line."""
LARGEST_FRAME = 1242
"""Bytes of a frame of the fastest UDP flow; it fits every link."""


def carry_udp(network: FabricNetwork, flows: Flows, seconds: float) -> NDArray[np.float64]:
    """Run UDP flows for some seconds: how many Mb/s of each arrived, float64[n].

    Only the second half of the time counts, when queues are as full as they get. All flows send
    packets equally often; the packets of faster flows are larger.
    """
    fastest = float(flows.rate.max())
    frame_bytes = np.maximum(1, np.round(LARGEST_FRAME * flows.rate / fastest))
    interval = LARGEST_FRAME * 8 / 1e6 / fastest
    pairs = np.stack((flows.source, flows.destination), axis=1).tolist()
    sizes = frame_bytes.astype(int).tolist()
    probe = ProbeProcess(interval, UdpProber, network.ends(), pairs, PROBE_PORT, sizes)
    sleep(seconds)
    probed = probe.stop()
    middle, end = float(probed.sent.mean()), probed.sent[-1]
    in_second_half = (probed.received >= middle) & (probed.received < end)
    arrived = np.bincount(probed.pair[in_second_half], minlength=len(pairs))
    return np.asarray(arrived * frame_bytes * 8 / 1e6 / (end - middle))


def carry_tcp(
    network: FabricNetwork, flows: Flows, seconds: float, logs: Path
) -> NDArray[np.float64]:
    """Run TCP flows for some seconds: how many Mb/s of each arrived, float64[n].

    Args:
        network: has the hosts.
        flows: n flows between these hosts.
        seconds: how long they send.
        logs: a folder for what iperf3 prints.

    Raises:
        EngineError: a server or a client failed.
    """
    senders = [network.hosts[host] for host in flows.source.tolist()]
    receivers = [network.hosts[host] for host in flows.destination.tolist()]
    for host in {*senders, *receivers}:
        with entered(host.pid):
            no_offloads("eth0")
    folder = logs / "iperf3"
    folder.mkdir(exist_ok=True)
    servers: list[subprocess.Popen[str]] = []
    clients: list[subprocess.Popen[str]] = []
    try:
        for port, host in enumerate(receivers, FIRST_PORT):
            command = ["iperf3", "-s", "-1", "-p", str(port), "-J"]
            servers.append(_start(host, command, folder / f"server-{port}.json"))
        for port, host in enumerate(receivers, FIRST_PORT):
            until(partial(_is_listening, port, host), "iperf3's server listens", IPERF_PATIENCE)
        # Starting a process in a host takes a while. So all are started, and then begin at once.
        for flow, (port, host) in enumerate(enumerate(senders, FIRST_PORT)):
            command = _client_command(network, flows, flow, seconds)
            clients.append(_start(host, command, folder / f"client-{port}.json"))
        for client in clients:
            _begin(client)
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
    return np.array([_rate_arrived(folder / f"client-{port}.json") for port in ports])


def _client_command(network: FabricNetwork, flows: Flows, flow: int, seconds: float) -> list[str]:
    """The command of the client that sends a flow, once its standard input has a line."""
    server = network.address(int(flows.destination[flow]), 4)
    rate = 1e6 * flows.rate[flow] / flows.parallel
    command = [*AFTER_A_LINE, "iperf3", "-c", server, "-p", str(FIRST_PORT + flow), "-J"]
    return [*command, "-b", f"{rate:.0f}", "-t", f"{seconds:g}", "-P", str(flows.parallel)]


def _start(host: Node, command: list[str], log: Path) -> subprocess.Popen[str]:
    """Start a command in a host; what it prints goes to a file."""
    with log.open("w") as output:
        process: subprocess.Popen[str] = host.popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, text=True
        )
    return process


def _is_listening(port: int, host: Node) -> bool:
    """Whether some process in a host's namespace listens at a TCP port."""
    tables = (Path(f"/proc/{host.pid}/net/{table}") for table in ("tcp", "tcp6"))
    return any(f":{port:04X} " in table.read_text() for table in tables)


def _begin(client: subprocess.Popen[str]) -> None:
    """Give a client the line that it waits for (`AFTER_A_LINE`)."""
    if client.stdin is None:
        raise ValueError("a client without standard input")
    client.stdin.write("go\n")
    client.stdin.close()


def _rate_arrived(file: Path) -> float:
    """The rate at which the receiver got data, in Mb/s, from a client's report.

    Raises:
        EngineError: the report says that iperf3 failed, or is no JSON.
    """
    try:
        report = json.loads(file.read_text())
    except ValueError:
        report = {"error": f"{file.name} is no JSON"}
    if "error" in report:
        raise EngineError(f"iperf3: {report['error']}")
    return float(report["end"]["sum_received"]["bits_per_second"]) / 1e6
