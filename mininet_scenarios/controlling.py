"""`polarfab controller` as a process of an engine: started, waited for, and its last words."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mininet_scenarios.engine import EngineError

CONTROLLER = "127.0.0.1:6653"
POLL = 0.05
"""Seconds between two looks at the controller's status."""


class ControllerProcess:
    """The controller of a job (`mininet_scenarios.inner.Job`)."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job, self.logs = job, Path(job["logs"])
        self.status_file = self.logs / "controller.json"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; switches that connect get their programs."""
        command = [sys.executable, "-P", "-m", "polarfab", "controller", self.job["build"]]
        command += ["--framework", self.job["framework"], "--listen", CONTROLLER]
        command += ["--status-file", str(self.status_file)]
        # Predictions are about the tables of the build: switches repair, nobody else.
        command += ["--no-repair", "--no-adapt"]
        command += ["--unverified"] * self.job["unverified"]
        with suppress(OSError):  # of an earlier run, or controller
            self.status_file.unlink()
        with (self.logs / "controller.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def wait(self, expected: int, patience: float, progress: Callable[[int, int], None]) -> None:
        """Until it says that every switch has its program.

        Raises:
            EngineError: it has ended, a switch refused, or `patience` seconds were not enough.
        """
        deadline = time.monotonic() + patience
        while not (status := self.status()).get("complete"):
            if self.process is None or self.process.poll() is not None:
                raise EngineError(f"the controller has ended: {self._last_words()}")
            if errors := status.get("errors"):
                node, message = next(iter(errors.items()))
                raise EngineError(f"switch {node} refused its program: {message}")
            done = _programmed(status)
            if time.monotonic() > deadline:
                raise EngineError(
                    f"{done} of {expected} switches have their program after {patience:g} s; "
                    f"the controller's last words: {self._last_words()}"
                )
            progress(done, expected)
            time.sleep(POLL)

    def settle(self, names: set[str], patience: float) -> None:
        """Until just the nodes of these names have their programs; at once where none runs.

        Raises:
            EngineError: `patience` seconds were not enough.
        """
        deadline = time.monotonic() + patience
        while self.process is not None and self.process.poll() is None:
            there = self.status().get("programmed", [])
            if set(there) == names:
                return
            if time.monotonic() > deadline:
                raise EngineError(
                    f"{len(there)} switches have their program after {patience:g} s, where "
                    f"{len(names)} should; the controller's last words: {self._last_words()}"
                )
            time.sleep(POLL)

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def status(self) -> dict[str, Any]:
        """What its status file says; nothing yet when it has just been started."""
        try:
            status: dict[str, Any] = json.loads(self.status_file.read_text())
        except (OSError, ValueError):
            return {}
        return status

    def _last_words(self) -> str:
        return (self.logs / "controller.log").read_text(errors="replace").strip()[-600:]


def _programmed(status: dict[str, Any]) -> int:
    programmed = status.get("programmed", 0)
    return programmed if isinstance(programmed, int) else len(programmed)
