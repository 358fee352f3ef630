"""The engines whose switches run in an inner process, from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from compilers.targets.target_lookup import target
from mininet_scenarios.machine.preflight import namespaces, require_routers
from mininet_scenarios.scenario.engine import (
    Counts,
    Diversion,
    Engine,
    EngineError,
    Event,
    Exercise,
    Flows,
    HostPair,
    HostSample,
    Probed,
    Progress,
    Setup,
    Step,
    Throughput,
)
from mininet_scenarios.traffic.probing import decode

CHILD_PATIENCE = 20
"""Seconds that the inner process may take to leave before it is killed."""


class InnerProcess:
    """One of our modules as PID 1 of fresh namespaces; it answers by `inner_child.serve`.

    job: what it needs, for JSON: among it a folder for `logs`, and `scratch`, a folder that is to
    go even when the outer process is killed, "" for none.
    """

    def __init__(self, module: str, job: dict[str, Any]) -> None:
        self.module, self.job = module, job
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it; `call` waits for it."""
        command = [sys.executable, "-P", "-m", self.module, json.dumps(self.job)]
        with self._log().open("w") as log:
            self.process = subprocess.Popen(
                [*namespaces(), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
                start_new_session=True,
            )

    def call(self, name: str, *arguments: Any, progress: Progress | None = None) -> Any:
        """A request and its answer.

        Raises:
            EngineError: it failed inside, or the inner process has ended.
        """
        process = self.process
        if process is None or process.stdin is None or process.stdout is None:
            raise EngineError("the network is not up")
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"call": name, "arguments": arguments}) + "\n")
            process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if "error" in answer:
                raise EngineError(answer["error"])
            if "result" in answer:
                return answer["result"]
            if progress:
                progress(*answer["progress"])
        last_words = self._log().read_text(errors="replace").strip()[-600:]
        raise EngineError(f"the inner process has ended: {last_words}")

    @property
    def running(self) -> bool:
        """Whether it has been started, and not stopped."""
        return self.process is not None

    def stop(self) -> None:
        """Let it leave, and everything with it."""
        process, self.process = self.process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        try:
            process.wait(CHILD_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _log(self) -> Path:
        return Path(self.job["logs"]) / "inside.log"


class InnerEngine(Engine):
    """An engine that asks the process of a module inside to do what it is asked itself."""

    child: str
    starts = "start {:,} switches with {:,} links, and their hosts"

    def __init__(self, setup: Setup) -> None:
        self.build, self.setup = setup.build, setup
        self.hosts = HostSample.of(setup.build, setup.hosts)
        self.versions: tuple[int, ...] = (4, 6) if setup.build.addressing.ipv6 else (4,)
        work = str(setup.work.resolve())
        job = {
            "build": str(setup.folder.resolve()),
            "logs": work,
            "hosts": setup.hosts,
            "framework": setup.framework,
            "unverified": setup.unverified,
            "scratch": work if setup.temporary else "",
            "rate": setup.rate,
            "folders": [str(folder.resolve()) for folder in setup.folders],
        }
        self.inner = InnerProcess(f"{__package__}.{self.child}", job)

    def now(self) -> float:
        """Seconds on the clock that all processes of a machine share."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep, unless that time has passed."""
        time.sleep(max(0.0, seconds))

    def divert(self, diversion: Diversion) -> None:
        """Change a group of a switch."""
        self.inner.call("divert", *astuple(diversion))

    def restore(self) -> None:
        """Put the group back."""
        self.inner.call("restore")

    def start(self, step: Step) -> None:
        """Start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        with step("start", self.starts.format(switches, links)) as progress:
            self.inner.start()
            self.inner.call("start", progress=progress)
        what = f"program {switches} switches through {self.setup.framework}"
        with step("program", what) as progress:
            self.inner.call("program", self.setup.patience, progress=progress)

    def exchange(self, counts: Counts, progress: Progress, version: int) -> tuple[Counts, ...]:
        """Send inside; a file takes the arrays there and back."""
        file = Path(self.inner.job["logs"]) / "round.npz"
        with file.open("wb") as out:
            np.save(out, counts)
        self.inner.call("send", str(file), version, progress=progress)
        with np.load(file) as seen:
            found = tuple(seen[name] for name in seen.files)
        file.unlink()
        return found

    def apply(self, event: Event) -> None:
        """Let it happen inside."""
        self.inner.call("apply", type(event).__name__, astuple(event))

    def settle(self, patience: float) -> str:
        """Wait for the controller, where one runs, and for the switches."""
        return str(self.inner.call("settle", patience))

    def probe_start(self, pairs: Sequence[HostPair], interval: float) -> None:
        """Send inside."""
        self.inner.call("probe_start", self.ends(pairs).tolist(), interval)

    def probe_stop(self) -> Probed:
        """What was heard inside."""
        return decode(self.inner.call("probe_stop"))

    def carry(
        self,
        hosts: Sequence[str],
        flows: Flows,
        seconds: float,
        progress: Progress,  # noqa: ARG002
    ) -> Throughput:
        """TCP by iperf3, UDP by a probe with large packets."""
        number = self.numbers(hosts)
        parts = number[flows.source], number[flows.destination], flows.rate
        ends = zip(*(part.tolist() for part in parts), strict=True)
        asked = list(ends), flows.protocol, flows.parallel, seconds
        rates, loads = map(np.array, self.inner.call("carry", *asked))
        return Throughput(rates, dict(zip(self.build.wiring.names, loads, strict=True)))

    def paths(self, pairs: Sequence[HostPair]) -> tuple[tuple[str, ...], ...]:
        """As Open vSwitch traces them."""
        return tuple(map(tuple, self.inner.call("paths", self.ends(pairs).tolist())))

    def exercise(self, repairs: bool, tolerance: float | None, progress: Progress) -> Exercise:
        """Send packets inside to every rule."""
        return Exercise.read(self.inner.call("exercise", repairs, tolerance, progress=progress))

    def stop(self, step: Step) -> None:
        """Let the inner process exit; everything ends with it."""
        if self.inner.running:
            with step("stop", "take everything down"):
                self.inner.stop()


class MininetEngine(InnerEngine):
    """Open vSwitch, Mininet and the controller, in namespaces of their own."""

    name, child = "mininet", "mininet_child"

    def prompt(self, terminal: str) -> None:
        """Let whoever sits at a terminal look around; Ctrl-C ends a command, not the network."""
        assert self.inner.process is not None  # noqa: S101
        outer = self.inner.process.pid
        inside = int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])
        before = signal.signal(signal.SIGINT, lambda *_: os.kill(inside, signal.SIGINT))
        try:
            self.inner.call("prompt", terminal)
        finally:
            signal.signal(signal.SIGINT, before)


class FabricEngine(InnerEngine):
    """One Open vSwitch with a bridge per switch, and the controller, in namespaces of their own."""

    name, child = "ovs-fabric", "fabric_child"
    starts = "start {:,} bridges with {:,} cables"


class RoutedEngine(InnerEngine):
    """Every switch is a network namespace whose kernel forwards; hosts as in Mininet's engine."""

    child = "routed_child"

    def __init__(self, setup: Setup, name: str) -> None:
        """`name` is that of the engine and of the target.

        Raises:
            InputError: this machine lacks something that it needs; all of it at once.
        """
        require_routers(name)
        super().__init__(setup)
        self.name = name

    def start(self, step: Step) -> None:
        """Render, start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        rendered = Path(self.inner.job["logs"]) / self.name
        with step("render", f"render {switches} configurations for {self.name}") as told:
            target(self.name).render(self.build, rendered, progress=told)
        with step("start", f"start {switches} routers with {links} links, and their hosts") as told:
            self.inner.start()
            self.inner.call("start", self.name, str(rendered), progress=told)
