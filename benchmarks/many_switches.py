"""`polarfab controller` with thousands of stand-in switches: program, read, fail over, cut off.

As root: all is in a network namespace of its own. Prints a line of JSON a step; processor seconds
and megabytes are the controller's.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
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
        found = HIGHEST.search(Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0


def steps(folder: Path, q: int, balance: str) -> Iterator[dict[str, Any]]:
    """What each step took."""
    build = compiled(folder / "fabric", q, f"{{balance: {balance}}}")
    with own_network():
        network, controller = StandIns(load(build), ADDRESS), Controller(folder, build)
        count = len(network.switches)

        def step(what: str, until: Callable[[], object]) -> dict[str, Any]:
            before = controller.spent()
            with EchoProbe(ADDRESS, AT_MOST) as probe:
                seconds = network.serve(until, AT_MOST)
            return {
                "step": what,
                "seconds": round(seconds, 2),
                "processor": round(controller.spent() - before, 2),
                "megabytes": round(controller.megabytes()),
                "echo": round(probe.slowest, 2),
            }

        try:
            complete = lambda: controller.status().get("complete")  # noqa: E731
            yield step("program", complete) | {"switches": count, "rows": network.held}
            yield step("nothing to do for 20 s", _later(IDLE))
            api = Client.to(f"http://{URL}", "URL", controller.tokens)
            read = controller.status()["differences"]["none"] + count
            api.post("reconcile", {})
            found = step("read all", lambda: controller.status()["differences"]["none"] >= read)
            yield found | {"differences": controller.status()["differences"]}
            links = np.argwhere(network.build.wiring.far >= 0).tolist()
            for up in (False, True):
                each = []
                for vertex, link in links[:: len(links) // LINKS][:LINKS]:
                    network.cable(vertex, link, up)
                    many = len(repairs(controller)) + 1
                    each.append(step("", lambda n=many: len(repairs(controller)) == n))
                yield _middle("link up" if up else "link down", each, repairs(controller)[-LINKS:])
            for many in (1, count // 12):
                before, chosen = len(repairs(controller)), range(0, count, -(-count // many))
                network.cut_off(chosen)
                found = step(
                    f"cut off: {len(chosen)}",
                    lambda n=chosen: _around(controller) == len(n) and not _repairing(controller),
                )
                yield found | _all_of(repairs(controller)[before:])
                before = len(repairs(controller))
                network.call_back()
                found = step(f"back: {len(chosen)}", lambda: _calm(controller))
                yield found | _all_of(repairs(controller)[before:])
            controller.kill()
            controller = Controller(folder, build)
            yield step("another controller", complete)
        finally:
            controller.kill()
            network.close()


def _later(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def _middle(
    what: str, steps: list[dict[str, Any]], repairs: list[dict[str, Any]]
) -> dict[str, Any]:
    """The median of each figure of steps that are alike, and the worst time."""
    found: dict[str, Any] = {"step": what, "times": len(steps)}
    alike = [step | repair for step, repair in zip(steps, repairs, strict=True)]
    found |= {name: median(one[name] for one in alike) for name in alike[0] if name != "step"}
    return found | {"worst": max(one["seconds"] for one in alike)}


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


def _all_of(repairs: list[dict[str, Any]]) -> dict[str, Any]:
    """How many repairs, and the largest of each figure."""
    most = {name: max(one[name] for one in repairs) for name in (repairs[0] if repairs else ())}
    return {"repairs": len(repairs), **most}


def repairs(controller: Controller) -> list[dict[str, Any]]:
    """The repairs so far."""
    found = re.findall(r'^.*"event": "repaired".*$', controller.text(), re.MULTILINE)
    keep = "rows", "switches", "computed", "seconds"
    return [{f"repair {name}": json.loads(line)[name] for name in keep} for line in found]
