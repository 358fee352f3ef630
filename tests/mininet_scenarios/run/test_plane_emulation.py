"""Fabrics of several planes on the model: each plane by itself, and what hosts have of all."""

import json

import pytest

from compilers.planes import compile_planes
from compilers.proof.proof_options import WITHOUT_FAILURES
from compilers.proof.verification import judge
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import plane_folders, save_planes
from inventory.problems import InputError
from mininet_scenarios.run.emulation import Emulation
from mininet_scenarios.scenario.scenario_file import load_scenario
from polarfab import emulate

HEAD = (
    "name: x\nfabric: {name: lab, topology: {family: polarfly, q: 3}, planes: 2}\nrepair: false\n"
)
HEAD += "timeline:\n"


def emulated(tmp_path, *moments, head=HEAD):
    file = tmp_path / "scenario.yaml"
    file.write_text(head + "".join(f"  - {moment}\n" for moment in moments))
    return emulate(str(file), engine="model")


def counts(found, words="all planes, "):
    return {
        check.name.removeprefix(words): (check.required, check.seen)
        for check in found.result.checks
        if check.name.startswith(words)
    }


def test_hosts_go_on_over_the_other_plane(tmp_path):
    moments = "link_down: p1-0-p1-1", "plane_down: 2", "link_up: p1-0-p1-1", "plane_up: 2"
    found = emulated(tmp_path, *moments)
    assert found.passed
    assert counts(found) == {
        "at first": (156, 156),
        "link p1-0-p1-1 down": (156, 156),
        "plane 2 down": (146, 146),  # plane 1 has lost a link, and is all that there is
        "link p1-0-p1-1 up": (156, 156),
        "plane 2 up": (156, 156),
    }
    one, two = found.facts["planes"]
    assert [event["what"] for event in one["timeline"]] == [
        "link p1-0-p1-1 down",
        "link p1-0-p1-1 up",
    ]
    assert [event["reached"] for event in two["timeline"]] == [0, 156]
    assert (found.result.pairs, found.facts["switches"]) == (312, 26)
    assert {check.name.split(":")[0] for check in found.result.checks[:-5]} == {"lab-p1", "lab-p2"}
    json.dumps(found.as_dict())


def test_what_no_plane_names_is_of_every_plane(tmp_path):
    found = emulated(tmp_path, "node_down: 4", "node_up: 4", "expand: quadric")
    assert found.passed
    assert counts(found) == {
        "at first": (156, 156),
        "node 4 down": (124, 124),  # 132 without its host, 8 of them over it
        "node 4 up": (156, 156),
    }
    for plane in found.facts["planes"]:
        assert [event["what"] for event in plane["timeline"]][2] == "expand: quadric"


def test_a_moment_that_nobody_was_asked_about_is_left_out(tmp_path):
    moments = "{plane_down: 2, at: 1}", "{plane_up: 2, at: 2}", "link_down: p2-0-p2-1"
    found = emulated(tmp_path, *moments)
    assert list(counts(found)) == ["at first", "plane 2 up", "link p2-0-p2-1 down"]


@pytest.mark.parametrize(
    ("moment", "message"),
    [
        ("plane_down: 3", r"yaml:5: timeline\[0\].plane_down: required a plane that .*given 3"),
        ("link_down: p3-0-p3-1", r"yaml:5: timeline\[0\].link_down: required a node, or a link"),
    ],
)
def test_what_no_plane_has(tmp_path, moment, message):
    with pytest.raises(InputError, match=message):
        emulated(tmp_path, moment)


def test_one_plane_has_no_second(tmp_path):
    head = HEAD.replace(", planes: 2", "")
    with pytest.raises(InputError, match="required a plane that the fabric has, given 2"):
        emulated(tmp_path, "plane_down: 2", head=head)
    assert emulated(tmp_path, "plane_down: 1", head=head).result.events[0].pairs == 0


def test_folders_of_planes_have_to_be_verified(tmp_path):
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}, "planes": 2}
    folder = tmp_path / "build"
    builds = save_planes(compile_planes(load_fabric(spec)), folder)
    with pytest.raises(InputError, match="plane-1"):
        emulate(str(folder), engine="model")
    judge(builds, plane_folders(folder), WITHOUT_FAILURES)
    found = emulate(str(folder), engine="model", keep=tmp_path / "keep")
    assert (found.passed, found.facts["scenario"]) == (True, "lab")
    with pytest.raises(InputError, match="cli: required a fabric of one plane, given 2 planes"):
        Emulation(load_scenario(str(folder)), terminal="/dev/tty").run()


@pytest.mark.live
def test_a_plane_of_two_fails_on_real_switches(tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "name: x\nfabric: {name: lab, topology: {family: polarfly, q: 2}, planes: 2}\n"
        "engine: ovs-fabric\nprove_checker: false\nexpect: {rules: none}\n"
        "timeline: [plane_down: 2]\n"
    )
    found = emulate(str(file))
    assert found.passed
    assert counts(found) == {"at first": (42, 42), "plane 2 down": (42, 42)}
    assert found.result.delivered == 84
    assert [event.reached for event in found.result.events] == [0, 42, 42]
