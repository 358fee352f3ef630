"""The inner process of the Mininet engine: PID 1 of fresh process and network namespaces.

It holds the switches, the network and the controller, takes requests as JSON lines on stdin and
answers on stdout. When stdin ends, because the outer process is done or dead, it leaves, and the
kernel with it removes every process, interface and namespace.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np

from compilers.build import load
from mininet_scenarios.engine import EngineError, Hosts, hops_of
from mininet_scenarios.network import CONTROLLER, QUIET, FabricNetwork
from mininet_scenarios.openvswitch import OpenVSwitchError, PrivateOvs
from mininet_scenarios.ovsfabric import bridge_name, port_interface
from mininet_scenarios.pinging import ping_all

RUN = Path("/run")
"""A file system of our own is mounted here: sockets and databases go with the namespaces."""
POLL = 0.05
"""Seconds between two looks at the controller's status."""
OPEN_FILES = 16384
"""Open vSwitch needs a few a port; mnexec closes each that there could be, so not more."""
Reply = Callable[[dict[str, Any]], None]


class Inside:
    """The requests: every public method is one, with the arguments that the outer process sends."""

    def __init__(self, job: dict[str, Any], reply: Reply) -> None:
        self.job, self.reply = job, reply
        self.logs = Path(job["logs"])
        self.build = load(Path(job["build"]))
        self.hosts = Hosts.of(self.build, job["hosts"])
        self.ovs = PrivateOvs(RUN / "ovs", logs=self.logs)
        self.network = FabricNetwork(self.build, self.hosts, self.ovs)
        self.status = self.logs / "controller.json"
        self.controller: subprocess.Popen[bytes] | None = None
        self.right: tuple[str, str] | None = None

    def start(self) -> None:
        """Start the controller, Open vSwitch and the network."""
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", RUN], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        Path(QUIET).write_text("1")
        self._start_controller()
        self.ovs.start()
        os.environ.update(self.ovs.env)
        self.network.start(self._progress)

    def program(self, patience: float) -> None:
        """Wait until the controller says that every switch has its program."""
        deadline = time.monotonic() + patience
        while not (status := self._status()).get("complete"):
            if self.controller is None or self.controller.poll() is not None:
                raise EngineError(f"the controller has ended: {self._last_words()}")
            if errors := status.get("errors"):
                node, message = next(iter(errors.items()))
                raise EngineError(f"switch {node} refused its program: {message}")
            done, expected = _programmed(status), int(self.build.topology.present.sum())
            if time.monotonic() > deadline:
                raise EngineError(
                    f"{done} of {expected} switches have their program after {patience:g} s; "
                    f"the controller's last words: {self._last_words()}"
                )
            self._progress(done, expected)
            time.sleep(POLL)

    def send(self, requests: list[list[int]], version: int) -> dict[str, Any]:
        """Ping: a list of (from, to, count) by host number, and the version of the protocol.

        Returns answers as (at, from, count, shortest, longest), hops of the way to `at`, and the
        packets that left the fabric's ports meanwhile as (switch, port, count).
        """
        wanted: dict[int, dict[str, int]] = {}
        number = {self.network.address(i, version): i for i in range(len(self.hosts))}
        address = list(number)
        for here, there, count in requests:
            wanted.setdefault(here, {})[address[there]] = count
        before = self._loads()
        rounds = [(self.network.hosts[i].popen, addresses) for i, addresses in wanted.items()]
        seen = ping_all(rounds, self._progress)
        loads = self._loads() - before
        answers = [
            [here, number[source], a.count, hops_of(a.highest), hops_of(a.lowest)]
            for here, heard in zip(wanted, seen, strict=True)
            for source, a in heard.items()
        ]
        switch, link = np.nonzero(loads)
        ports = self.build.wiring.port[switch, link]
        packets = np.stack((switch, ports, loads[switch, link]), axis=1)
        return {"answers": answers, "loads": packets.tolist()}

    def divert(self, switch: int, egress: int, port: int) -> None:
        """Make one class of a switch leave by another port, in the switch itself."""
        bridge, group = bridge_name(switch), f"group_id={egress + 1},"
        groups = self.ovs.ofctl("dump-groups", bridge).splitlines()
        right = next((line.strip() for line in groups if group in line), "")
        wrong = re.sub(r"output:\"?[^,\"]+\"?", f"output:{port}", right)
        if right == wrong:
            raise EngineError(f"switch {switch} has no group of egress class {egress} to change")
        self.right = bridge, right
        self._change_group(bridge, wrong)

    def restore(self) -> None:
        """Undo the last `divert`."""
        if self.right:
            self._change_group(*self.right)
            self.right = None

    def _change_group(self, bridge: str, group: str) -> None:
        """Returns when packets follow the change: flows cached under the old group are gone."""
        self.ovs.ofctl("mod-group", bridge, group)
        self.ovs.appctl("revalidator/wait")

    def _start_controller(self) -> None:
        command = [sys.executable, "-P", "-m", "polarfab", "controller", self.job["build"]]
        command += ["--framework", self.job["framework"], "--listen", CONTROLLER]
        command += ["--status-file", str(self.status)]
        command += ["--unverified"] * self.job["unverified"]
        with (self.logs / "controller.log").open("wb") as log:
            self.controller = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def _status(self) -> dict[str, Any]:
        try:
            status: dict[str, Any] = json.loads(self.status.read_text())
        except (OSError, ValueError):
            return {}
        return status

    def _last_words(self) -> str:
        return (self.logs / "controller.log").read_text(errors="replace").strip()[-600:]

    def _loads(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """int64[S, K]: packets that have left each switch by its k-th link (kernel counters)."""
        sent = {}
        for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
            name, _, counters = line.partition(":")
            sent[name.strip()] = int(counters.split()[9])
        port = self.build.wiring.port
        loads = np.zeros(port.shape, np.int64)
        for switch, link in zip(*np.nonzero(port), strict=True):
            loads[switch, link] = sent[port_interface(switch, int(port[switch, link]))]
        return loads

    def _progress(self, done: int, total: int) -> None:
        self.reply({"progress": [done, total]})


def _programmed(status: dict[str, Any]) -> int:
    programmed = status.get("programmed", 0)
    return programmed if isinstance(programmed, int) else len(programmed)


def _read_requests(requests: SimpleQueue[dict[str, Any]], scratch: str) -> None:
    """Pass requests on; at their end leave at once, and take everything down by that."""
    for line in sys.stdin:
        requests.put(json.loads(line))
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    os._exit(0)


def main() -> None:
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def reply(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")

    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    job = json.loads(sys.argv[1])
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
    Thread(target=_read_requests, args=(requests, job["scratch"]), daemon=True).start()
    inside = Inside(job, reply)
    while True:
        request = requests.get()
        try:
            reply({"result": getattr(inside, request["call"])(*request["arguments"])})
        except (EngineError, OpenVSwitchError, OSError, subprocess.SubprocessError) as error:
            reply({"error": str(error)})


if __name__ == "__main__":
    main()
