"""Drains on real Open vSwitch while hosts send: nothing is lost, nor goes over what is drained."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import yaml

from compilers.tables.folders.build_folder import load
from compilers.wiring.shared_risk import resolve_name, risk_groups
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.controller import makers
from tests.controller.makers import (
    SWITCHES,
    Running,
    called,
    compile_into,
    own_network,
    polarfab,
)
from tests.controller.upkeep.probe import Probe
from tests.outages import outage
from tests.waiting import until

pytestmark = pytest.mark.live
OPTICS = {"name": "m{module}/{}", "modules": 2, "count": 4, "role": "fabric"}
FABRIC = {
    "name": "lab",
    "topology": {"family": "polarfly", "q": 3},
    "routing": {"protect": "module"},
    "inventory": "inventory.yaml",
}
INVENTORY = {
    "node_types": {
        "leaf": {"ports": [OPTICS, {"name": "h{}", "count": 1, "role": "host"}], "units": 1}
    },
    "generate": {"type": "leaf", "racks": {"units": 4}},
}


class Site:
    """The controller, `polarfab drain`, and packets between all hosts."""

    def __init__(self, running, probe, api):
        self.running, self.probe, self.api = running, probe, api
        self.pairs = probe.pairs

    def drain(self, *words):
        """Drain, or end that; returns when the tables are in place."""
        before = self._repairs()
        done = called("drain", *words, *self.api)
        assert done.returncode == 0, done.stderr
        until(lambda: self._repairs() > before, f"tables: {self.running.log}")

    def _repairs(self):
        return self.running.log.read_text().count(" in place after ")

    def sent(self, ends, without=()):
        """What these ports, of switches, send of packets between all hosts but those of some."""
        chosen = ~np.isin(self.pairs, list(without)).any(axis=1)
        before = self._counted(ends)
        self.probe.pairs = self.pairs[chosen]
        lost, self.probe.pairs = self.probe.lost(), self.pairs
        assert lost == set()
        return self._counted(ends) - before

    def _counted(self, ends):
        dumps = {v: self.probe.fabric.ovs.ofctl("dump-ports", f"s{v}") for v, _ in ends}
        port = r"port +{}: rx [^\n]*\n +tx pkts=(\d+)"
        return np.array([int(re.search(port.format(n), dumps[v])[1]) for v, n in ends])


@pytest.fixture
def site(tmp_path):
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(FABRIC))
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(INVENTORY))
    folder = compile_into(tmp_path / "build", tmp_path / "fabric.yaml", quick=True)
    (tokens := tmp_path / "tokens").write_text("olga operate 0123456789abcdef\n")
    tokens.chmod(0o600)
    url = f"127.0.0.1:{next(makers.PORTS)}"
    options = ("--http", url, "--token-file", tokens, "--no-discover")  # LLDP counts, too
    with own_network(), PrivateOvs(tmp_path / "ovs") as ovs:
        probe = Probe(ovs, load(folder))
        running = Running(ovs, tmp_path, polarfab(folder, "os-ken", *options), bridges=())
        try:
            makers.connect(ovs, running.port, *(f"s{v}" for v in range(SWITCHES)))
            running.wait_for(SWITCHES, "complete")
            yield Site(running, probe, ("--to", f"http://{url}", "--token-file", tokens))
            running.stop()
        finally:
            running.process.kill()
            running.process.wait()


def ports(wiring, links):
    """Both ends of links: a switch, and its port."""
    both = (*links, *(link[::-1] for link in links))
    return [
        (s, int(wiring.port[s, k])) for s, t in both for k in np.flatnonzero(wiring.far[s] == t)
    ]


def test_a_drained_switch_whose_link_dies_loses_no_packets_of_its_hosts(site):
    """Those over the dead link were lost until the drain ended, and no pair was cut off."""
    build = site.probe.fabric.build
    end = int(build.wiring.far[2, 0])
    site.drain(build.wiring.names[end])
    site.probe.fabric.apply_outage(outage(build, [(2, end)]))
    until(lambda: site.probe.lost() == set(), "packets go around the dead link", 20)
    assert site.running.status()["links"]["cut_off_pairs"] == 0
    site.probe.fabric.apply_outage(outage(build))
    site.drain(build.wiring.names[end], "--end")


def test_a_module_and_a_rack_are_drained_under_traffic(site):
    build = site.probe.fabric.build
    module = resolve_name(build.wiring, build.hardware, "module:n3/m1")
    rack = risk_groups(build.wiring, build.hardware, "rack")[1]
    at_module, inside = ports(build.wiring, module.links), list(rack.switches)
    far = build.wiring.far
    in_rack = [
        (s, int(build.wiring.port[s, k])) for s in inside for k in np.flatnonzero(far[s] >= 0)
    ]
    assert (site.sent(at_module) > 0).all()
    assert site.sent(in_rack, inside).any(), "others' packets go through the rack"

    def drains():
        site.drain(module.name)
        site.drain(module.name, "--end")
        site.drain(rack.name)

    with ThreadPoolExecutor() as pool:
        drained = pool.submit(drains)
        while not drained.done():
            assert site.probe.lost() == set()
        drained.result()
    assert not site.sent(in_rack, inside).any()
    site.drain(rack.name, "--end")
    assert (site.sent(at_module) > 0).all()
    site.drain(module.name)
    assert not site.sent(at_module).any()
