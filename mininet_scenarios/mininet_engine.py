"""The Mininet engine, seen from outside: starts the inner process and talks to it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mininet_scenarios.engine import (
    SILENT,
    Counts,
    Diversion,
    EngineError,
    Observation,
    Progress,
    RealTime,
    Setup,
    Step,
)
from mininet_scenarios.preflight import namespaces

INNER = (sys.executable, "-P", "-m", "mininet_scenarios.inside")
PATIENCE = 20
"""Seconds that the inner process may take to leave before it is killed."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the inner process is told: absolute folders of the build and for logs, and the rest.

    hosts is how many of each switch's hosts take part, None for all. scratch is a folder that is to
    go even when the outer process is killed, "" for none.
    """

    build: str
    logs: str
    hosts: int | None
    framework: str
    unverified: bool
    scratch: str

    @classmethod
    def of(cls, setup: Setup) -> Job:
        """The same in what JSON can hold."""
        work = str(setup.work.resolve())
        return cls(
            build=str(setup.folder.resolve()),
            logs=work,
            hosts=setup.hosts,
            framework=setup.framework,
            unverified=setup.unverified,
            scratch=work if setup.temporary else "",
        )


class MininetEngine(RealTime):
    """Open vSwitch, Mininet and the controller, in namespaces of their own."""

    name = "mininet"

    def __init__(self, setup: Setup) -> None:
        self.build, self.job, self.patience = setup.build, Job.of(setup), setup.patience
        self.versions: tuple[int, ...] = (4, 6) if setup.build.addressing.ipv6 else (4,)
        self.inner: subprocess.Popen[str] | None = None

    def start(self, step: Step) -> None:
        """Start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        with step(
            "start", f"start {switches} switches with {links} links, and their hosts"
        ) as told:
            self._start_inner()
            self._call("start", progress=told)
        with step("program", f"program {switches} switches through {self.job.framework}") as told:
            self._call("program", self.patience, progress=told)

    def _start_inner(self) -> None:
        with (Path(self.job.logs) / "inside.log").open("w") as log:
            self.inner = subprocess.Popen(
                [*namespaces(), *INNER, json.dumps(asdict(self.job))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
                start_new_session=True,
            )

    def send(self, counts: Counts, progress: Progress, version: int = 4) -> Observation:
        """Ping inside, and put the answers into arrays."""
        requests = [[*pair, int(counts[pair])] for pair in map(tuple, np.argwhere(counts).tolist())]
        result = self._call("send", requests, version, progress=progress)
        replies = np.zeros_like(counts)
        shortest, longest = np.full_like(counts, SILENT), np.full_like(counts, SILENT)
        for here, there, count, least, most in result["answers"]:
            replies[here, there] = count
            shortest[there, here], longest[there, here] = least, most
        loads = np.zeros(
            (len(self.build.wiring.names), self.build.wiring.cables().shape[1]), np.int64
        )
        for switch, port, count in result["loads"]:
            loads[switch, port] = count
        return Observation(replies, shortest, longest, loads)

    def divert(self, diversion: Diversion) -> None:
        """Change a group of a switch."""
        self._call("divert", *astuple(diversion))

    def restore(self) -> None:
        """Put the group back."""
        self._call("restore")

    def stop(self, step: Step) -> None:
        """Let the inner process leave; everything goes with it."""
        inner, self.inner = self.inner, None
        if inner is not None:
            with step("stop", "take everything down"):
                self._stop(inner)

    def _stop(self, inner: subprocess.Popen[str]) -> None:
        assert inner.stdin is not None and inner.stdout is not None  # noqa: S101, PT018
        with suppress(BrokenPipeError):
            inner.stdin.close()
        inner.stdout.close()
        try:
            inner.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            inner.kill()
            inner.wait()

    def _call(self, name: str, *arguments: Any, progress: Progress | None = None) -> Any:
        """A request and its answer.

        Raises:
            EngineError: it failed inside, or the inner process has ended.
        """
        if self.inner is None or self.inner.stdin is None or self.inner.stdout is None:
            raise EngineError("the network is not up")
        with suppress(BrokenPipeError):
            self.inner.stdin.write(json.dumps({"call": name, "arguments": arguments}) + "\n")
            self.inner.stdin.flush()
        for line in self.inner.stdout:
            answer = json.loads(line)
            if "error" in answer:
                raise EngineError(answer["error"])
            if "result" in answer:
                return answer["result"]
            if progress:
                progress(*answer["progress"])
        raise EngineError(f"the inner process has ended: {self._last_words()}")

    def _last_words(self) -> str:
        return (Path(self.job.logs) / "inside.log").read_text(errors="replace").strip()[-600:]
