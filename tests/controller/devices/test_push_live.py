"""`polarfab push` to real FRR daemons and kernels that have an old build and other routes."""

import json
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.target_lookup import target
from tests.compilers.routed import agreed
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
SPEC = "name: lab\ntopology: {{{}}}\naddressing: {{ipv6: 'fd00::/48'}}\nrouting: {{{}}}\n"
FOUR, SEVEN = "family: hyperx, sides: 2x2", "family: polarfly, q: 2"
"""Topologies of four switches in a ring, and of seven."""


def compiled(folder, name, routing, topology, control):
    (folder / f"{name}.yaml").write_text(SPEC.format(topology, routing))
    save(agreed(compile_fabric(load_fabric(folder / f"{name}.yaml")), control), folder / name)
    return load(folder / name)


@pytest.fixture(scope="module", params=["frr", pytest.param("linux", marks=pytest.mark.long)])
def seen(request, tmp_path_factory):
    """What live_push.py saw."""
    folder = tmp_path_factory.mktemp(request.param)
    before, after = "balance: compact-valiant, protect: link", "protect: link"
    return pushed(folder, request.param, before, after, topology=FOUR)


def pushed(folder, name, before, after, script="live_push", topology=SEVEN, **control):
    """What a script sees of a push from one policy to another."""
    old = compiled(folder, "old", before, topology, control)
    compiled(folder, "new", after, topology, control)
    target(name).render(old, folder / "out")
    places = [str(folder / one) for one in ("old", "out", "new")]
    script = Path(__file__).with_name(f"{script}.py")
    return json.loads(printed_apart(script, *places, name, timeout=500))


def states(found):
    return [one["state"] for one in found]


def test_a_dry_run_says_what_is_to_do_and_does_nothing(seen):
    assert seen["before"] == seen["after dry"] != []
    assert set(states(seen["dry"])) == {"to do"}
    assert all(one["remove"] for one in seen["dry"])


def test_a_batch_stops_where_a_switch_fails(seen):
    assert states(seen["staged"]) == ["pushed"] * 2 + ["failed", "to do"]
    assert "no route to host" in seen["staged"][2]["error"]


def test_all_that_is_missing_is_added_and_all_that_is_stale_goes(seen):
    assert set(states(seen["pushed"])) == {"pushed", "as built"}
    assert seen["after"] == []
    assert set(states(seen["again"])) == {"as built"}


def test_what_is_not_the_fabrics_stays(seen):
    assert "192.0.2.0/24" in seen["management"]


def test_a_reboot_leads_to_the_same(seen):
    assert seen["rebooted"] == 0
    assert seen["after reboot"] == []


def test_a_port_that_flapped(seen):
    assert "1" in {one["switch"] for one in seen["flap"]}
    assert seen["after flap"] == []
    assert set(states(seen["pushed after flap"])) <= {"pushed", "as built"}


def test_alternates_with_ebgp(tmp_path):
    """A second push types nothing; what is shut or drained stays so, and changes others' routes."""
    policy, script = "balance: compact-valiant", "live_bgp_push"
    seen = pushed(tmp_path, "frr", policy, policy, script, routing="bgp", bfd="on")
    typed = {
        (one["state"], *map(tuple, (one["add"], one["remove"], one["save"])))
        for one in seen["loaded"]
    }
    assert typed == {("pushed", (), (), ("vtysh -c 'write memory'",))}, "FRR's own file was empty"
    assert states(seen["pushed"]).count("pushed") == 1
    assert "detect-multiplier 7" not in seen["running"]
    assert set(states(seen["again"])) == {"as built"}, seen["again"]
    assert set(states(seen["drained"])) == {"as built"}, seen["drained"]
    assert "route-map announced-ipv4 permit 5" in seen["drained"][1]["kept"]
    assert set(states(seen["shut"])) == {"as built"}, seen["shut"]
    kept = [" ".join(one["kept"]) for one in seen["shut"]]
    assert kept[2].startswith("port eth1 is shut")
    assert sum("go around what is shut" in one for one in kept) > 2


@pytest.mark.long
def test_weights_of_a_demand_are_those_that_kernels_hold(tmp_path):
    """Pushed over minimal routes, read back from the switches' own tables, also after a reboot."""
    (tmp_path / "demand.csv").write_text("source,destination,rate\n0,5,3\n0,2,3\n1,5,2\n4,5,5\n")
    after = "balance: compact-valiant, demand: demand.csv"
    seen = pushed(tmp_path, "linux", "protect: link", after)
    weights = load(tmp_path / "new").tables.classes.weight
    assert len(set(weights[weights > 0].tolist())) > 2
    assert seen["before"] != seen["after"] == seen["after reboot"] == []
    assert set(states(seen["again"])) == {"as built"}


@pytest.mark.long
def test_marks_are_sent_once_neighbours_have_their_devices(tmp_path):
    """The watchers of the old build meet files about devices that are not there, and live on."""
    after = "balance: spread, protect: link"
    seen = pushed(tmp_path, "linux", "protect: link", after, "live_watch", "family: polarfly, q: 3")
    assert set(states(seen["pushed"])) == {"pushed"}
    assert set(seen["without"]) == {0}
    assert seen["down"] != seen["after"] == seen["up"] == []
