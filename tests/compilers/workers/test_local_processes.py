"""Rendering on all cores: the same files as on one, errors as they are, Ctrl-C leaves nothing."""

import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

from compilers.targets.target_lookup import target
from compilers.workers.local_processes import LocalProcesses
from inventory.problems import InputError, Problem
from tests.compilers.routed import routed

TEMPLATE = "{{ switch.node }} {% if switch.node == '70' %}{{ switch.nothing }}{% endif %}\n"
several_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_same_files_on_one_core_and_on_all(tmp_path):
    build, told, written = routed(q=8), [], []
    cores = os.sched_getaffinity(0)
    for count in (1, len(cores)):
        os.sched_setaffinity(0, sorted(cores)[:count])
        out = tmp_path / str(count)
        written.append(target("frr").render(build, out, progress=lambda *n: told.append(n)))
    assert os.sched_getaffinity(0) == cores
    assert written[0] == written[1]
    one, every = (files(tmp_path / str(count)) for count in (1, len(cores)))
    assert written[0].bytes == sum(map(len, one.values()))
    assert one == every
    assert told == [(n, 73) for n in range(1, 74)] * 2


def test_an_error_in_a_process_is_the_error(tmp_path):
    (tmp_path / "own" / "frr").mkdir(parents=True)
    (tmp_path / "own" / "frr" / "frr.conf.j2").write_text(TEMPLATE)
    with pytest.raises(InputError, match="has no attribute 'nothing'"):
        target("frr").render(routed(q=9), tmp_path / "out", templates=tmp_path / "own")
    assert not list((tmp_path / "out").rglob(".*"))


def test_errors_of_inputs_travel():
    error = InputError([Problem(key="a", required="b", given="c")])
    assert pickle.loads(pickle.dumps(error)).problems == error.problems  # noqa: S301


def over(work, count):
    return list(LocalProcesses().over(lambda _: work, None, range(count)))


@several_cores
def test_work_is_done_elsewhere():
    assert os.getpid() not in over(lambda _: os.getpid(), 20)


@several_cores
def test_a_process_that_is_killed_is_told():
    with pytest.raises(MemoryError, match="a process was killed"):
        over(lambda _: os.kill(os.getpid(), signal.SIGKILL), 2)


SLOW = """
import signal, sys, time
from pathlib import Path
from compilers.workers.local_processes import LocalProcesses
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
def work(piece):
    part = Path(sys.argv[1], f"{piece}.part")
    try:
        part.touch()
        time.sleep(60)
    finally:
        part.unlink()
try:
    list(LocalProcesses().over(lambda _: work, None, range(20)))
except KeyboardInterrupt:
    sys.exit(130)
"""


@several_cores
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


ENDED_AT_ONCE = """
import os, signal, sys
from compilers.workers.local_processes import LocalProcesses
parent, fork, forks = os.getpid(), os.fork, []
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as the command line does
def fork_and_end_second():
    forks.append(fork())
    if forks[1:] == [0]:
        os.kill(os.getpid(), signal.SIGTERM)  # as at the end of a short work
    return forks[-1]
os.fork = fork_and_end_second
try:
    list(LocalProcesses().over(lambda _: abs, None, range(2)))
finally:
    print(os.getpid() == parent)
"""


@several_cores
def test_a_process_that_is_ended_as_it_begins_does_not_do_the_work_of_its_parent():
    """It left `os.fork` by the parent's handler, removed the parent's files and printed, too."""
    done = subprocess.run(
        [sys.executable, "-c", ENDED_AT_ONCE], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@several_cores
def test_a_process_that_hears_nothing_is_killed(tmp_path):
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
        over(work, 2)
    assert time.monotonic() - start < 30
