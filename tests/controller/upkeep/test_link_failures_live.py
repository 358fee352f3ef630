"""Failures on real Open vSwitch: the 13 switches of ER_3 with all their cables, no hosts.

What switches hold is compared with the repaired tables as the ovs target writes them, loaded into a
bridge beside.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compilers.routing.link_repair import Intact, repaired
from compilers.tables.folders.build_folder import load
from compilers.targets.target_lookup import target
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.ovs.ovsfabric import OvsFabric
from mininet_scenarios.scenario.engine import HostSample, Miswire, Outage
from tests.compilers.targets.live_ovs import BRIDGE, dump
from tests.compilers.wiring.makers import missing
from tests.controller import makers
from tests.controller.makers import SWITCHES, compile_into, own_network, polarfab
from tests.outages import outage
from tests.waiting import until

pytestmark = pytest.mark.live
SPEC = """name: kept
topology: {family: polarfly, q: 3}
routing: {balance: compact-valiant, protect: link}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    (folder / "fabric.yaml").write_text(SPEC)
    return compile_into(folder / "build", folder / "fabric.yaml")


@pytest.fixture(scope="module")
def switches(tmp_path_factory):
    with own_network(), PrivateOvs(tmp_path_factory.mktemp("ovs")) as ovs:
        ovs.vsctl("add-br", "twin", "--", "set", "bridge", "twin", *BRIDGE)
        yield ovs


@pytest.fixture(scope="module")
def fabric(switches, folder):
    build = load(folder)
    fabric = OvsFabric(build, switches, HostSample.of(build, 0))
    fabric.start()
    return fabric


@pytest.fixture
def kept(fabric, folder, run, monkeypatch):
    """Run the controller with these options over the whole fabric."""
    monkeypatch.setattr(makers, "BRIDGES", {f"s{v}": v for v in range(SWITCHES)})

    def start(*options):
        fabric.suffer(Outage())
        running = run(polarfab(folder, "os-ken", *options))
        running.wait_for(SWITCHES, "complete")
        return running

    return start


class Expected:
    """The tables of a build repaired for an outage, as dumps of switches."""

    def __init__(self, ovs, folder, out):
        self.ovs, self.build, self.out = ovs, load(folder), out
        self.intact = Intact.of(self.build)

    def of(self, links=(), drained=()):
        damage = missing(self.build.wiring, [], links).links
        aside = np.isin(np.arange(SWITCHES), list(drained))
        return repaired(self.intact, damage, aside)

    def dumps(self, repair, only=()):
        """What switches hold with these tables: those that differ from the build, and another."""
        out = self.out / f"{len(list(self.out.iterdir()))}"
        target("ovs").render(replace(self.build, tables=repair.tables), out)
        found = {}
        for v in {*repair.switches.tolist(), *map(int, only), 12}:
            self.ovs.ofctl("del-flows", "twin")
            self.ovs.ofctl("del-groups", "twin")
            self.ovs.ofctl("add-groups", "twin", str(out / str(v) / "groups.txt"))
            self.ovs.ofctl("--bundle", "add-flows", "twin", str(out / str(v) / "flows.txt"))
            found[v] = dump(self.ovs, "twin")
        return found

    def hold(self, dumps):
        """Whether switches hold just that, the row for discovery aside."""
        return all(self.dump(v) == expected for v, expected in dumps.items())

    def dump(self, v):
        found = dump(self.ovs, f"s{v}")
        flows = [row for row in found["flows"] if "cookie=0x504600000000000d" not in row]
        return found | {"flows": flows}

    def come(self, dumps):
        until(lambda: self.hold(dumps), f"tables of {list(dumps)}")


@pytest.fixture
def expected(switches, folder, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    return Expected(switches, folder, out)


def links_of(build):
    far = build.wiring.far
    return [(u, k, int(far[u, k])) for u, k in np.argwhere(far >= 0).tolist() if far[u, k] > u]


def reaches(running, text, count=1):
    until(lambda: running.log.read_text().count(text) >= count, f"{text!r} x{count}: {running.log}")


def test_a_link_that_goes_is_repaired_and_what_comes_back_is_as_compiled(kept, fabric, expected):
    running = kept()
    quadrics = set(np.flatnonzero(expected.build.topology.graph.degrees == 3).tolist())
    links = links_of(expected.build)
    plain = next(link for link in links if not {link[0], link[2]} & quadrics)
    quadric = next(link for link in links if {link[0], link[2]} & quadrics)
    for number, (u, k, v) in enumerate((plain, quadric), 1):
        repair = expected.of([(u, k)])
        hurt, whole = expected.dumps(repair), expected.dumps(expected.of(), repair.switches)
        fabric.suffer(outage(fabric.build, [(u, v)]))
        reaches(running, "tables for 1 dead link:", number)
        assert running.status()["links"]["down"]
        assert expected.hold(hurt)
        assert not expected.hold(whole)
        fabric.suffer(Outage())
        reaches(running, "tables for 0 dead links:", number)
        assert expected.hold(whole)
    assert running.status()["errors"] == {}
    running.stop()


def test_swapped_cables_are_told_with_the_move_that_repairs_them(kept, fabric, expected):
    links = links_of(expected.build)
    (u, k, v), (x, j, y) = next(
        (a, b) for a in links for b in links if len({a[0], a[2], b[0], b[2]}) == 4
    )
    hurt = expected.dumps(expected.of([(u, k), (x, j)]))
    running = kept("--discover")
    # Pulled first: Open vSwitch may not find the peer of a patch port that is replaced with it.
    pulled = outage(fabric.build, [(u, v), (x, y)])
    fabric.suffer(pulled)
    one, other = ((str(a), str(b)) for a, b in ((u, v), (x, y)))
    fabric.suffer(Outage(miswires=(Miswire(one, other),)))
    running.says("miswired, 2 cables misplaced: swap the plugs in")
    until(lambda: len(running.status()["links"]["down"]) == 2, "both links are told")
    assert len(running.status()["links"]["miswired"]) == 1
    assert running.log.read_text().count("miswired, ") == 1
    expected.come(hurt)
    fabric.suffer(pulled)
    fabric.suffer(Outage())
    running.says("all cables that are seen are as planned")
    running.stop()
