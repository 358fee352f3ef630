"""The server loop of an engine's inner process: it takes requests until its stdin ends.

It is PID 1 of fresh process and network namespaces. Requests are JSON lines on stdin, answers on
stdout. When stdin ends, because the outer process is done or dead, it leaves, and the kernel with
it removes every process, interface and namespace.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from mininet_scenarios.ovs.openvswitch import OpenVSwitchError
from mininet_scenarios.scenario.engine import EngineError

RUN = Path("/run")
"""A file system of our own is mounted here: sockets and databases go with the namespaces."""
OPEN_FILES = 16384
"""Open vSwitch needs a few a port; mnexec closes each that there could be, so not more."""
DISABLE_IPV6 = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
"""Keeps the kernel from sending router solicitations and the like over interfaces of its own."""
Reply = Callable[[dict[str, Any]], None]


def prepare() -> None:
    """Make the fresh namespaces a place to work in: RUN, the loopback interface, silence."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", RUN], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    DISABLE_IPV6.write_text("1")


def serve(make: Callable[[dict[str, Any], Reply], Any]) -> None:
    """Answer requests until stdin ends: each is a method of what `make` makes of the job."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def reply(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")

    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    job = json.loads(sys.argv[1])
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
    Thread(target=_read_requests, args=(requests, job["scratch"]), daemon=True).start()
    inside = make(job, reply)
    while True:
        request = requests.get()
        try:
            reply({"result": getattr(inside, request["call"])(*request["arguments"])})
        except (EngineError, OpenVSwitchError, OSError, subprocess.SubprocessError) as error:
            reply({"error": str(error)})


def _read_requests(requests: SimpleQueue[dict[str, Any]], scratch: str) -> None:
    """Pass requests on; at their end leave at once, and take everything down by that."""
    for line in sys.stdin:
        requests.put(json.loads(line))
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    os._exit(0)
