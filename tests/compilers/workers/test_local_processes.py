"""Rendering on all cores: the same files as on one, errors as they are, Ctrl-C leaves nothing."""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

from compilers.targets.target_lookup import target
from compilers.workers import local_processes
from inventory.problems import InputError, Problem
from tests.compilers.routed import routed

TEMPLATE = "{{ switch.node }} {% if switch.node == '70' %}{{ switch.nothing }}{% endif %}\n"


def two(monkeypatch, *, count=2, least=1):
    mine = {0: set(range(count))}
    monkeypatch.setattr(local_processes.os, "sched_getaffinity", mine.__getitem__)
    monkeypatch.setattr(local_processes, "LEAST_SWITCHES", least)


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", ["frr", "linux", "eos"])
def test_the_same_files_on_one_core_and_on_two(name, tmp_path, monkeypatch):
    build, told = routed(q=3), []
    written = []
    for count in (1, 2):
        two(monkeypatch, count=count)
        out = tmp_path / str(count)
        written.append(target(name).render(build, out, progress=lambda *n: told.append(n)))
    assert written[0] == written[1]
    assert written[0].bytes == sum(map(len, files(tmp_path / "1").values()))
    assert files(tmp_path / "1") == files(tmp_path / "2")
    assert told == [(n, 13) for n in range(1, 14)] * 2


def test_an_error_in_a_process_is_the_error(tmp_path, monkeypatch):
    two(monkeypatch)
    (tmp_path / "own" / "frr").mkdir(parents=True)
    (tmp_path / "own" / "frr" / "frr.conf.j2").write_text(TEMPLATE)
    with pytest.raises(InputError, match="has no attribute 'nothing'"):
        target("frr").render(routed(q=9), tmp_path / "out", templates=tmp_path / "own")
    assert not list((tmp_path / "out").rglob(".*"))


def test_errors_of_inputs_travel():
    error = InputError([Problem(key="a", required="b", given="c")])
    assert pickle.loads(pickle.dumps(error)).problems == error.problems  # noqa: S301


def test_work_is_done_elsewhere(monkeypatch):
    two(monkeypatch)
    assert os.getpid() not in set(local_processes.on_all_cores(lambda _: os.getpid(), range(20)))


def test_work_may_take_longer_than_a_look(tmp_path, monkeypatch):
    two(monkeypatch)
    monkeypatch.setattr(local_processes, "LOOK", 0.01)
    living, looks = local_processes._children, []

    def children():
        looks.append(living())
        if len(looks) > 2:  # one before the processes, one behind, then once a look
            (tmp_path / "looked").touch()
        return looks[-1]

    def work(_):
        end = time.monotonic() + 30
        while not (tmp_path / "looked").exists():
            assert time.monotonic() < end
        return 1

    monkeypatch.setattr(local_processes, "_children", children)
    assert list(local_processes.LocalProcesses().over(lambda _: work, None, range(2))) == [1, 1]


def test_a_process_that_is_killed_is_told(monkeypatch):
    two(monkeypatch)
    monkeypatch.setattr(local_processes, "LOOK", 0.1)
    with pytest.raises(MemoryError, match="a process was killed"):
        list(local_processes.on_all_cores(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(2)))


def test_what_took_the_place_of_a_killed_process_is_killed_with_the_rest(tmp_path, monkeypatch):
    killed = tmp_path / "killed"

    def ready():
        if killed.exists():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # as if it came too early
            time.sleep(60)  # as if others had the lock of the queue

    def work(_):
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    two(monkeypatch)
    for name, value in (("LOOK", 1.0), ("GRACE", 0.1), ("_ready", ready)):
        monkeypatch.setattr(local_processes, name, value)
    with pytest.raises(MemoryError, match="a process was killed"):
        list(local_processes.on_all_cores(work, range(2)))
    assert not multiprocessing.active_children()


SLOW = """
import signal, sys, time
from pathlib import Path
from compilers.workers import local_processes as cores
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
cores.LEAST_SWITCHES = 1
cores.os.sched_getaffinity = lambda _: {0, 1}
def work(piece):
    part = Path(sys.argv[1], f"{piece}.part")
    try:
        part.touch()
        time.sleep(60)
    finally:
        part.unlink()
try:
    list(cores.on_all_cores(work, range(20)))
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupt_ends_the_processes_and_what_they_had_begun(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, tmp_path], stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 30
    while len(list(tmp_path.iterdir())) < 2:
        assert time.monotonic() < end
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "")
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_hears_nothing_is_killed(tmp_path, monkeypatch):
    two(monkeypatch)
    monkeypatch.setattr(local_processes, "GRACE", 0.1)
    busy = tmp_path / "busy"

    def work(piece: int) -> None:
        if piece == 1:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # as in a long call in C
            busy.touch()
            time.sleep(60)
        end = time.monotonic() + 30
        while not busy.exists():
            assert time.monotonic() < end
        raise ValueError(piece)

    start = time.monotonic()
    with pytest.raises(ValueError, match="0"):
        list(local_processes.LocalProcesses().over(lambda _: work, None, range(2)))
    assert time.monotonic() - start < 30


def test_a_process_that_ends_in_the_midst_of_a_result_holds_nothing_up(tmp_path, monkeypatch):
    two(monkeypatch)
    monkeypatch.setattr(local_processes, "GRACE", 0.1)
    taken, begun = tmp_path / "taken", tmp_path / "begun"
    end = time.monotonic() + 30

    def wait_for(file):
        while not file.exists():
            assert time.monotonic() < end

    def begin(connection, part):
        os.write(connection.fileno(), part)  # the length of the result, and nothing of the result
        begun.touch()
        sys.exit()  # as a signal to the whole group of processes has it

    def work(piece):
        if piece == 1:
            wait_for(taken)
            multiprocessing.connection.Connection._send = begin
        return bytes(40_000)

    results = local_processes.LocalProcesses().over(lambda _: work, None, range(2))
    next(results)
    taken.touch()
    wait_for(begun)
    results.close()
    assert time.monotonic() < end
