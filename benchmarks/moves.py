"""A fabric in one Open vSwitch, with etcd and two controllers: link events, a move, a takeover.

As root: all is in a network namespace of its own. Link events come while the
rolling audit reads every switch once a minute.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from benchmarks.push_child import HIGHEST, PATIENT
from benchmarks.timing import q_option
from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.ovs.ovsfabric import OvsFabric, bridge_name
from mininet_scenarios.scenario.engine import HostSample
from polarfab.controller_client import Client
from tests.controller.cluster.makers import Etcd, Instance
from tests.controller.makers import POLARFAB, own_network
from tests.outages import outage

SPEC = "name: lab\ntopology: {{family: polarfly, q: {}}}\nrouting: {}\n"
"""A fabric.yaml, by its q and its routing."""
POLICIES = "{balance: minimal}", "{balance: compact-valiant, protect: link}"
"""The routing before the move, and after it."""
OPTIONS = "--json", "--audit", "60", "--damping", "1,2200,1000,3"
"""Options of the controllers."""
PATIENCE, POLL = 300.0, 0.05
"""Seconds that a step may take, and between two looks whether it is done."""
MOST_DOWN = 5
"""The most links that are down at a time."""


@click.command("moves")
@q_option(31)
@click.option("--events", type=click.IntRange(0), default=200, help="Link events.")
def command(q: int, events: int) -> None:
    """Link events, a move and a takeover, with etcd and two controllers; prints JSON."""
    with TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder), q, events)))


def compiled(folder: Path, q: int, routing: str) -> Path:
    """A verified build."""
    folder.mkdir()
    (folder / "fabric.yaml").write_text(SPEC.format(q, routing))
    words = [POLARFAB, "compile", folder / "fabric.yaml", "-o", folder / "build", "--quick"]
    subprocess.run(words, check=True, capture_output=True)
    return folder / "build"


def another_controller(bridge: str, port: int) -> list[dict[str, Any]]:
    """The operations of OVSDB that give a bridge one more controller."""
    target = {"target": f"tcp:127.0.0.1:{port}"}
    addition = [["controller", "insert", ["named-uuid", f"of_{bridge}"]]]
    return [
        {"op": "insert", "table": "Controller", "row": target, "uuid-name": f"of_{bridge}"},
        {
            "op": "mutate",
            "table": "Bridge",
            "where": [["name", "==", bridge]],
            "mutations": addition,
        },
    ]


def seconds_until(condition: Callable[[], Any]) -> float:
    """Seconds from now until something is so."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError(condition)
        time.sleep(POLL)
    return time.monotonic() - began


def link_events(fabric: OvsFabric, leader: Instance, count: int) -> dict[str, float]:
    """Random links go down and come back, at most `MOST_DOWN` at a time; then all are up.

    Returns the seconds until the tables were right again, how many switches the audit found adrift,
    and how many rows and groups a reading of all switches had to put right in the end: none.
    """
    chance, far = random.Random(1), fabric.build.wiring.far  # noqa: S311
    ends = [(vertex, int(far[vertex, link])) for vertex, link in np.argwhere(far >= 0).tolist()]
    links = [(vertex, other) for vertex, other in ends if vertex < other]
    down: set[tuple[int, int]] = set()
    for _ in range(count):
        if down and (len(down) == MOST_DOWN or chance.random() < 0.5):
            down.remove(chance.choice(sorted(down)))
        else:
            down.add(chance.choice([link for link in links if link not in down]))
        fabric.apply_outage(outage(fabric.build, down))
        time.sleep(chance.choice((0, 0.05, 0.3, 1.0)))
    fabric.apply_outage(outage(fabric.build))
    took = seconds_until(lambda: calm(leader))
    before = repaired_rows(leader)
    api = Client.to(f"http://{leader.url}", "URL", leader.tokens)
    read = status_of(leader)["differences"]["none"]
    api.post("reconcile", {})
    seconds_until(lambda: status_of(leader)["differences"]["none"] >= read + len(far))
    return {
        "link events": count,
        "right again": took,
        "drift": leader.text().count('"event": "drift"'),
        "put right in the end": repaired_rows(leader) - before,
        "slowest repair": max(
            map(float, re.findall(r'"repaired".*?"seconds": ([\d.]+)', leader.text()))
        ),
    }


def status_of(instance: Instance) -> Any:
    """Its status file."""
    return json.loads(instance.status_file.read_text())


def repaired_rows(instance: Instance) -> int:
    """Rows and groups that readings of switches have put right."""
    differences = status_of(instance)["differences"]
    return sum(differences[what] for what in ("added", "changed", "removed"))


def calm(instance: Instance) -> bool:
    """Whether no link is down or put aside, and no repair is under way."""
    links = status_of(instance)["links"]
    words = ("down", "suppressed", "drained", "repairing")
    return instance.complete() and not any(links[word] for word in words)


def measured(folder: Path, q: int, events: int) -> dict[str, float]:
    """Seconds of each step, megabytes of each controller, and how many switches left meanwhile."""
    first, second = (
        compiled(folder / f"build-{number}", q, routing) for number, routing in enumerate(POLICIES)
    )
    build, wanted = load(first), load(second).identity
    (folder / "ovs").mkdir()
    with own_network(), PrivateOvs(folder / "ovs") as ovs:
        fabric = OvsFabric(build, ovs, HostSample.of(build, 0))
        etcd = Etcd(folder)
        processes = [etcd]
        try:
            for name in ("a", "b"):
                processes.append(Instance(name, folder, first, etcd, *OPTIONS))
                seconds_until(processes[1].leads)
            leader, follower = processes[1:]
            fabric.start(f"127.0.0.1:{leader.port}")
            bridges = [bridge_name(vertex) for vertex in range(len(build.wiring.names))]
            fabric.database.transact(
                [row for bridge in bridges for row in another_controller(bridge, follower.port)]
            )
            figures = {"programmed": seconds_until(leader.complete)}
            seconds_until(lambda: follower.leading().get("sessions") == len(bridges))
            fabric.database.apply([PATIENT])
            if events:
                figures |= link_events(fabric, leader, events)
            leader.load(second)
            figures["moved"] = seconds_until(lambda: holds(leader, wanted))
            leader.kill()
            figures["taken over"] = seconds_until(lambda: holds(follower, wanted))
            for process in (leader, follower):
                figures[f"{process.name} left"] = process.text().count('"event": "left"')
            memory = Path(f"/proc/{follower.process.pid}/status").read_text()
            highest = HIGHEST.search(memory)
            figures["megabytes"] = int(highest[1]) / 1024 if highest else 0.0
            figures["rounds"] = len(re.findall('"event": "round"', leader.text()))
            return figures
        finally:
            for process in processes:
                process.kill()


def holds(instance: Instance, identity: str) -> bool:
    """Whether all switches hold a build, and the move to it is over."""
    if not instance.complete():
        return False
    status = status_of(instance)
    over = not status["rollout"] or status["rollout"]["state"] == "done"
    return status["build"] == identity and over
