"""A router's network namespace, and commands in it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mininet_scenarios.scenario.engine import EngineError

ROUTES_PATIENCE = 60.0
ROUTES_POLL = 0.05


def run(*command: str, text: str | None = None, check: bool = True) -> str:
    """What a command prints.

    Raises:
        EngineError: it failed, unless that is not to be checked.
    """
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise EngineError(f"{' '.join(command)}: {done.stderr[-1500:]}{done.stdout[-500:]}")
    return done.stdout


def until(true: Callable[[], bool], what: str, patience: float = ROUTES_PATIENCE) -> None:
    """Wait until something is true.

    Raises:
        EngineError: it is not, after `patience` seconds.
    """
    limit = time.monotonic() + patience
    while not true():
        if time.monotonic() > limit:
            raise EngineError(f"{what}: not so after {patience:g} s")
        time.sleep(ROUTES_POLL)


class Space:
    """A network namespace, and what runs there. It ends with the process that made it."""

    def __init__(self) -> None:
        command = ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None  # noqa: S101
        self.process.stdout.readline()
        self.pid = self.process.pid
        self.inside = ["nsenter", "-t", str(self.pid), "-n"]

    def run(self, *command: str, **options: Any) -> str:
        """What a command prints there."""
        return run(*self.inside, *command, **options)

    def read(self, file: str) -> list[list[str]]:
        """The words of each line of a file of /proc/net there."""
        lines = Path(f"/proc/{self.pid}/net/{file}").read_text(encoding="ascii").splitlines()
        return [line.split() for line in lines]

    def spawn(self, command: list[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a command there."""
        return subprocess.Popen([*self.inside, *command], **options)
