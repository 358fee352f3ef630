"""`polarfab controller` with thousands of stand-in switches: program, read, fail over, cut off.

As root: all is in a network namespace of its own. Prints a line of JSON a step; processor seconds
and megabytes are the controller's.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from benchmarks.echo_probe import EchoProbe
from benchmarks.moves import compiled
from benchmarks.push_child import HIGHEST, spent
from benchmarks.timing import q_option
from compilers.tables.folders.build_folder import load
from polarfab.controller_client import Client
from tests.controller.cluster.makers import TOKEN, Process
from tests.controller.makers import POLARFAB, own_network
from tests.controller.stand_ins import StandIns

AT_MOST, IDLE = 600.0, 20.0
"""Seconds that a step may take, and for which the fabric is watched while nothing happens."""
LINKS = 10
"""That fail one after the other."""
ADDRESS, URL = ("127.0.0.1", 6653), "127.0.0.1:8080"
"""Where the controller listens for switches, and serves its API."""


@click.command("many-switches")
@q_option(31)
@click.option("--balance", metavar="NAME", default="minimal", help="Of the fabric.")
def command(q: int, balance: str) -> None:
    """Program, read, fail over and cut off thousands of stand-in switches; prints JSON."""
    with TemporaryDirectory() as folder:
        for step in steps(Path(folder), q, balance):
            print(json.dumps(step), flush=True)


class Controller(Process):
    """The controller as users run it; its log has a line of JSON an event."""

    def __init__(self, folder: Path, build: Path) -> None:
        super().__init__(folder / "controller.log")
        self.status_file, self.tokens = folder / "status.json", folder / "tokens"
        self.status_file.unlink(missing_ok=True)
        self.tokens.write_text(TOKEN + "\n")
        self.tokens.chmod(0o600)
        where = "--listen", "{}:{}".format(*ADDRESS), "--status-file", self.status_file
        api = "--http", URL, "--token-file", self.tokens
        self.start(POLARFAB, "controller", build, *where, *api, "--json", "--audit", "300")

    def status(self) -> Any:
        """Its status file; nothing yet when it has just been started."""
        return json.loads(self.status_file.read_text()) if self.status_file.exists() else {}

    def spent(self) -> float:
        """Processor seconds since it was started."""
        return spent(self.process.pid)

    def megabytes(self) -> float:
        """The most memory that it had."""
        match = HIGHEST.search(Path(f"/proc/{self.process.pid}/status").read_text())
        return int(match[1]) / 1024 if match else 0.0

    def is_complete(self) -> bool:
        """Whether all switches hold their programs."""
        return bool(self.status().get("complete"))

    def found_right(self) -> int:
        """How many readings of switches have found nothing to correct."""
        return int(self.status()["differences"]["none"])


Figures = dict[str, Any]
"""What is measured, by name."""


@dataclass(slots=True)
class Trial:
    """A controller with stand-in switches, and the steps that it is put through."""

    network: StandIns
    """The switches."""
    controller: Controller
    """The controller."""

    def step(self, what: str, until: Callable[[], object]) -> Figures:
        """Serve until something is so, and measure that."""
        before = self.controller.spent()
        with EchoProbe(ADDRESS, AT_MOST) as probe:
            seconds = self.network.serve(until, AT_MOST)
        return {
            "step": what,
            "seconds": round(seconds, 2),
            "processor": round(self.controller.spent() - before, 2),
            "megabytes": round(self.controller.megabytes()),
            "echo": round(probe.slowest, 2),
        }

    def program(self) -> Figures:
        """Program all switches."""
        figures = self.step("program", self.controller.is_complete)
        return figures | {"switches": len(self.network.switches), "rows": self.network.held}

    def read_all(self) -> Figures:
        """Read all switches again, which hold their programs."""
        controller = self.controller
        wanted = controller.found_right() + len(self.network.switches)
        Client.to(f"http://{URL}", "URL", controller.tokens).post("reconcile", {})
        figures = self.step("read all", lambda: controller.found_right() >= wanted)
        return figures | {"differences": controller.status()["differences"]}

    def links(self, up: bool) -> Figures:
        """Have links fail one after the other, or come back."""
        links = np.argwhere(self.network.build.wiring.far >= 0).tolist()
        each = []
        for vertex, link in links[:: len(links) // LINKS][:LINKS]:
            self.network.cable(vertex, link, up)
            wanted = len(repairs(self.controller)) + 1
            each.append(self.step("", lambda n=wanted: len(repairs(self.controller)) == n))
        what = "link up" if up else "link down"
        return _middle(what, each, repairs(self.controller)[-LINKS:])

    def cut_off(self, many: int) -> Iterator[Figures]:
        """Cut off about so many switches, and call them back."""
        controller, count = self.controller, len(self.network.switches)
        chosen = range(0, count, -(-count // many))
        before = len(repairs(controller))
        self.network.cut_off(chosen)
        figures = self.step(
            f"cut off: {len(chosen)}",
            lambda: _around(controller) == len(chosen) and not _repairing(controller),
        )
        yield figures | _all_of(repairs(controller)[before:])
        before = len(repairs(controller))
        self.network.call_back()
        figures = self.step(f"back: {len(chosen)}", lambda: _calm(controller))
        yield figures | _all_of(repairs(controller)[before:])


def steps(folder: Path, q: int, balance: str) -> Iterator[Figures]:
    """What each step took."""
    build = compiled(folder / "fabric", q, f"{{balance: {balance}}}")
    with own_network():
        trial = Trial(StandIns(load(build), ADDRESS), Controller(folder, build))
        try:
            yield trial.program()
            yield trial.step("nothing to do for 20 s", _later(IDLE))
            yield trial.read_all()
            yield trial.links(up=False)
            yield trial.links(up=True)
            for many in (1, len(trial.network.switches) // 12):
                yield from trial.cut_off(many)
            trial.controller.kill()
            trial.controller = Controller(folder, build)
            yield trial.step("another controller", trial.controller.is_complete)
        finally:
            trial.controller.kill()
            trial.network.close()


def _later(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds have passed from now on."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def _middle(what: str, steps: list[Figures], repairs: list[Figures]) -> Figures:
    """The median of each figure of steps that are alike, and the worst time."""
    alike = [step | repair for step, repair in zip(steps, repairs, strict=True)]
    names = [name for name in alike[0] if name != "step"]
    middle = {name: median(figures[name] for figures in alike) for name in names}
    worst = max(figures["seconds"] for figures in alike)
    return {"step": what, "times": len(steps), **middle, "worst": worst}


def _calm(controller: Controller) -> bool:
    """Whether all switches are there, and no traffic goes around one."""
    status = controller.status()
    return status["complete"] and not (_around(controller) or _repairing(controller))


def _around(controller: Controller) -> int:
    """How many switches traffic goes around."""
    return len(controller.status()["links"]["drained"])


def _repairing(controller: Controller) -> bool:
    """Whether other tables are being computed or sent."""
    return bool(controller.status()["links"]["repairing"])


def _all_of(repairs: list[Figures]) -> Figures:
    """How many repairs, and the largest of each figure."""
    names = repairs[0] if repairs else {}
    most = {name: max(repair[name] for repair in repairs) for name in names}
    return {"repairs": len(repairs), **most}


def repairs(controller: Controller) -> list[Figures]:
    """The repairs so far."""
    lines = re.findall(r'^.*"event": "repaired".*$', controller.text(), re.MULTILINE)
    names = "rows", "switches", "computed", "seconds"
    return [{f"repair {name}": json.loads(line)[name] for name in names} for line in lines]
