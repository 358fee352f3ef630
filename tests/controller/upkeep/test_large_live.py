"""The 183 switches of ER_13 on real Open vSwitch: until all are in sync, and around a dead link."""

from __future__ import annotations

import os
import re
from time import monotonic

import numpy as np
import pytest

from benchmarks.echo_probe import EchoProbe
from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.controller import makers
from tests.controller.makers import Running, compile_into, own_network, polarfab
from tests.controller.upkeep.probe import Probe
from tests.outages import outage
from tests.waiting import until

pytestmark = [pytest.mark.live, pytest.mark.long]
EVERY = 97
"""Of so many pairs of hosts one sends."""


def test_183_switches_come_in_sync_and_a_dead_link_is_gone_around(tmp_path):
    spec = "name: large\ntopology: {family: polarfly, q: 13}\nrouting: {balance: minimal}\n"
    (tmp_path / "fabric.yaml").write_text(spec)
    folder = compile_into(tmp_path / "build", tmp_path / "fabric.yaml", quick=True)
    build = load(folder)
    switches = len(build.wiring.names)
    with own_network(), PrivateOvs(tmp_path / "ovs") as ovs:
        probe = Probe(ovs, build)
        probe.pairs = probe.pairs[::EVERY]
        running = Running(ovs, tmp_path, polarfab(folder, "os-ken"), bridges=())
        try:
            began = monotonic()
            makers.connect(ovs, running.port, *(f"s{v}" for v in range(switches)))
            running.wait_for(switches, "complete")
            in_sync = monotonic() - began
            until(lambda: not probe.lost(), "all pairs reach each other")
            with EchoProbe(("127.0.0.1", running.port), 30) as echo:
                probe.fabric.apply_outage(outage(build, [(0, int(build.wiring.far[0, 0]))]))
                running.says(" in place after ")
                until(lambda: not probe.lost(), "the link is gone around")
                probe.fabric.apply_outage(outage(build))
                until(lambda: not running.status()["links"]["down"], "the link is up")
                until(lambda: echo.answers > 20, "echo replies")
            assert probe.lost() == set()
            repair = re.search(r"in place after (\d+) ms", running.log.read_text())[1]
            waits = np.sort(echo.waits) * 1000
            print(
                f"{switches} switches in sync after {in_sync:.1f} s; repair {repair} ms; "
                f"echo median {np.median(waits):.0f}, most {waits[-1]:.0f} ms of {len(waits)}; "
                f"load {os.getloadavg()[0]:.1f}"
            )
            assert in_sync < 60
            assert waits[-1] < 1000
            running.stop()
        finally:
            running.process.kill()
            running.process.wait()
