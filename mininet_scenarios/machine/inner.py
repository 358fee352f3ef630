"""The inner process of an engine, from outside: start, requests, stop."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mininet_scenarios.machine.preflight import namespaces
from mininet_scenarios.machine.runs import add_process
from mininet_scenarios.scenario.engine import EngineError, Progress, Setup

CHILD_PATIENCE = 20
"""Seconds that the inner process may take to leave before it is killed."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the inner process is told: absolute folders of the build and for logs, and the rest.

    hosts is how many of each switch's hosts take part, None for all. scratch is a folder that is to
    go even when the outer process is killed, "" for none. rate is `Setup.rate`,
    record `Setup.record` and running the folder of the first build of several, "" for none.
    """

    build: str
    logs: str
    hosts: int | None
    framework: str
    unverified: bool
    scratch: str
    rate: float | None = None
    record: str = ""
    running: str = ""

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
            rate=setup.rate,
            record=str(setup.record or ""),
            running=str(setup.folders[0].resolve()) if setup.folders else "",
        )


class InnerProcess:
    """A module of ours as PID 1 of fresh namespaces; it serves by `serving`."""

    def __init__(self, module: str, job: Job) -> None:
        self.module, self.job = module, job
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it; `call` waits for it."""
        command = [sys.executable, "-P", "-m", self.module, json.dumps(asdict(self.job))]
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
        if self.job.record:
            add_process(Path(self.job.record), self.process.pid, self.module)

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
        return Path(self.job.logs) / "inside.log"
