"""Rendering on all cores: the same files as on one, errors as they are, Ctrl-C leaves nothing."""

import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

from compilers.targets import parallel
from compilers.targets.target_lookup import target
from inventory.problems import InputError, Problem
from tests.compilers.routed import routed

TEMPLATE = "{{ switch.node }} {% if switch.node == '70' %}{{ switch.nothing }}{% endif %}\n"


def two(monkeypatch, *, count=2, least=1):
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda _: set(range(count)))
    monkeypatch.setattr(parallel, "LEAST_SWITCHES", least)


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
    assert os.getpid() not in set(parallel.on_all_cores(lambda _: os.getpid(), range(20)))


SLOW = """
import signal, sys, time
from pathlib import Path
from compilers.targets import parallel as cores
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
