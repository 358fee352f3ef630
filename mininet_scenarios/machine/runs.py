"""Run records: processes and folders of a run, so that a crash can be cleaned up.

Interfaces, bridges, hosts and daemons live in namespaces that end with their first process. What
is left to remember is that process, and the run's folder. A record is a file of JSON lines, one
for each thing, written before or as it is made; it is removed with the run. A process is known by
its id and the time it was started, so an id that another process has by now is never touched.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STARTED = 19
"""The index of the start time in /proc/PID/stat, counted after the command's name (proc(5))."""
PROCESS_PATIENCE = 20.0
"""Seconds that a killed process may take to go."""
RUN_POLL = 0.05


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was done about one record: "alive" (its run goes on), or what was removed."""

    record: Path
    alive: bool
    processes: tuple[int, ...] = ()
    folders: tuple[str, ...] = ()


def records() -> Path:
    """The folder of the records: $XDG_STATE_HOME/polarfab/runs, or ~/.local/state/…"""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "polarfab" / "runs"


@contextmanager
def recorded() -> Iterator[Path]:
    """A new record, with this process as the run's own; it is removed with the context."""
    folder = records()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = tempfile.NamedTemporaryFile(dir=folder, suffix=".jsonl", delete=False)  # noqa: SIM115
    except OSError:
        file = tempfile.NamedTemporaryFile(prefix="polarfab-run-", delete=False)  # noqa: SIM115
    file.close()
    record = Path(file.name)
    try:
        add_process(record, os.getpid(), "run")
        yield record
    finally:
        record.unlink(missing_ok=True)


def add_process(record: Path, pid: int, what: str) -> None:
    """Remember a process that this run has started."""
    _add(record, {"process": pid, "started": started(pid), "boot": _boot(), "what": what})


def add_folder(record: Path, folder: Path) -> None:
    """Remember a folder that this run has made, to be removed with it."""
    _add(record, {"folder": str(folder.resolve())})


def clean() -> list[Cleaned]:
    """Remove what runs have left that are no more; nothing else."""
    return [_clean(record) for record in sorted(records().glob("*.jsonl"))]


def started(pid: int) -> int | None:
    """When a process was started, in ticks since the machine was; None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[STARTED])


def _clean(record: Path) -> Cleaned:
    made = _read(record)
    processes = [entry for entry in made if "process" in entry]
    if any(entry["what"] == "run" and _same(entry) for entry in processes):
        return Cleaned(record, alive=True)
    left = [entry for entry in processes if _same(entry)]
    for entry in left:
        with suppress(ProcessLookupError):
            os.kill(entry["process"], signal.SIGKILL)
    deadline = time.monotonic() + PROCESS_PATIENCE
    while any(_same(entry) for entry in left) and time.monotonic() < deadline:
        time.sleep(RUN_POLL)
    folders = [entry["folder"] for entry in made if "folder" in entry]
    there = tuple(folder for folder in folders if Path(folder).is_dir())
    for folder in there:
        shutil.rmtree(folder, ignore_errors=True)
    record.unlink(missing_ok=True)
    return Cleaned(record, False, tuple(entry["process"] for entry in left), there)


def _read(record: Path) -> list[dict[str, Any]]:
    """The entries; a last line that was cut off is left out."""
    found = []
    for line in record.read_text().splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def _add(record: Path, entry: dict[str, Any]) -> None:
    with record.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def _same(entry: dict[str, Any]) -> bool:
    """Whether the process is the one that was recorded."""
    now = started(int(entry["process"]))
    return now is not None and entry["boot"] == _boot() and bool(entry["started"] == now)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
