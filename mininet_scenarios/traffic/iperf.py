"""TCP flows between hosts with iperf3: a server and a client each, all at once.

Its UDP mode is of no use here: the first packet of a test is sent once only, and a full link loses
it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from mininet_scenarios.scenario.engine import EngineError

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
