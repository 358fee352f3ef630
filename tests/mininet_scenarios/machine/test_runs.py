"""Run records: what crashed runs have left goes, and nothing else; and what a size needs."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from inventory.problems import InputError
from mininet_scenarios.machine import preflight, runs
from mininet_scenarios.scenario.engine import HostSample
from tests.waiting import until

POLARFAB = Path(sys.executable).with_name("polarfab")


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "polarfab" / "runs"


def sleeper():
    return subprocess.Popen(["sleep", "600"])


def entries(record):
    return [json.loads(line) for line in record.read_text().splitlines()]


def crashed(record):
    """The record as it would be, had its run been another process that is gone."""
    lines = [
        {**entry, "started": 1} if entry.get("what") == "run" else entry
        for entry in entries(record)
    ]
    left = record.with_name("crashed.jsonl")
    left.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"folder": "/cut-o')
    return left


def test_a_run_that_ends_leaves_no_record(state):
    with runs.recorded() as record:
        assert record.parent == state
        assert [cleaned.alive for cleaned in runs.clean()] == [True]
        assert record.exists()
    assert not list(state.iterdir())


@pytest.mark.usefixtures("state")
def test_what_a_crashed_run_recorded_goes_and_no_more(tmp_path):
    mine, other = sleeper(), sleeper()
    folder, kept = tmp_path / "work", tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    try:
        with runs.recorded() as record:
            runs.add_process(record, mine.pid, "inner")
            runs.add_process(record, other.pid, "inner")
            runs.add_folder(record, folder)
            left = crashed(record)
        # The second process is another one by now: its id was used again.
        text = left.read_text().splitlines()
        entry = json.loads(text[2])
        text[2] = json.dumps({**entry, "started": entry["started"] - 1})
        left.write_text("\n".join(text) + "\n")
        (cleaned,) = runs.clean()
        assert cleaned == runs.Cleaned(left, False, (mine.pid,), (str(folder),))
        assert mine.wait(10) == -signal.SIGKILL
        assert other.poll() is None
        assert not folder.exists()
        assert kept.exists()
        assert not left.exists()
        assert runs.clean() == []
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()


@pytest.mark.usefixtures("state")
def test_after_a_reboot_no_process_is_the_recorded_one():
    process = sleeper()
    try:
        with runs.recorded() as record:
            runs.add_process(record, process.pid, "inner")
            lines = [json.dumps({**entry, "boot": "another"}) for entry in entries(record)]
            left = crashed(record)
        left.write_text("\n".join(lines) + "\n")
        assert [cleaned.processes for cleaned in runs.clean()] == [()]
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def entries_of(state):
    return [
        json.loads(line)
        for record in state.glob("*.jsonl")
        for line in record.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]


@pytest.mark.live
def test_a_killed_run_that_hangs_is_cleaned(state, tmp_path):
    """SIGKILL in the middle, with an inner process that hangs and so cannot leave by itself."""
    work = tmp_path / "tmp"
    work.mkdir()
    # no process that makes machine code: it would be the first child
    env = {**os.environ, "TMPDIR": str(work), "POLARFAB_LOOPS": "python"}
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text("name: seven\ntopology: {family: polarfly, q: 2}\n")
    command = [POLARFAB, "emulate", str(fabric), "--engine", "mininet"]
    run = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: any(entry.get("what", "").startswith("mininet") for entry in entries_of(state)))
    inner = next(e["process"] for e in entries_of(state) if e.get("what", "run") != "run")
    until(lambda: Path(f"/proc/{inner}/task/{inner}/children").read_text().split())
    child = int(Path(f"/proc/{inner}/task/{inner}/children").read_text().split()[0])
    (folder,) = [entry["folder"] for entry in entries_of(state) if "folder" in entry]
    os.kill(child, signal.SIGSTOP)
    run.kill()
    run.wait()
    assert runs.started(inner) is not None
    done = subprocess.run(
        [POLARFAB, "emulate", "--clean", "--json"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (cleaned,) = json.loads(done.stdout)
    assert cleaned["state"] == "cleaned"
    assert cleaned["processes"] == [inner]
    assert cleaned["folders"] == [folder]
    until(lambda: runs.started(child) is None)
    assert not list(work.iterdir())
    assert not list(state.iterdir())
    again = subprocess.run(
        [POLARFAB, "emulate", "--clean"], env=env, capture_output=True, text=True
    )
    assert (again.returncode, again.stderr) == (0, "no run has left anything\n")


def test_what_is_short_is_told_at_once(compiled):
    build = compiled(5)
    hosts = HostSample.of(build)
    wanted = preflight.needed(build, hosts)
    preflight.require_resources(build, hosts, here=wanted)
    none = preflight.Amounts(10, 10, 10, 10)
    with pytest.raises(InputError) as error:
        preflight.require_resources(build, hosts, here=none)
    told = {problem.required: problem.todo for problem in error.value.problems}
    assert len(told) == 4
    assert f"{wanted.files:,} open files per process" in told
    table = "62 entries in the neighbour tables of all namespaces (gc_thresh3)"
    assert told[table] == "as root: sysctl -w net.ipv4.neigh.default.gc_thresh3=62"
    with pytest.raises(InputError, match=f"{wanted.memory:,} MB of memory, given 1; a smaller"):
        preflight.require_resources(build, hosts, here=replace(wanted, memory=1))


def test_needs_grow_with_the_fabric(compiled):
    small, large = (preflight.needed(b, HostSample.of(b)) for b in (compiled(3), compiled(5)))
    for name in ("memory", "files", "processes", "neighbours"):
        assert getattr(small, name) < getattr(large, name)
    # Measured on q=3 and q=5, everything that runs added up: 159 and 185 MB, 150 and 372 files.
    assert small.memory > 159
    assert large.memory > 185
    assert small.files > 150
    assert large.files > 372
