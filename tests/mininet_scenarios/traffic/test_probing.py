"""A probe that ends by itself."""

from __future__ import annotations

import subprocess
from multiprocessing import Pipe

import pytest

from mininet_scenarios.scenario.engine import EngineError
from mininet_scenarios.traffic.probing import ProbeProcess


def test_a_probe_that_was_killed_is_one_message() -> None:
    probe = ProbeProcess.__new__(ProbeProcess)
    probe.end, theirs = Pipe()
    probe.process = subprocess.Popen(["cat"], stdin=theirs.fileno())
    probe.process.kill()
    probe.process.wait()
    theirs.close()
    with pytest.raises(EngineError, match="the probe has ended"):
        probe.stop()
    assert probe.end.closed
