"""The verbs plan and diff, as users call them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
import yaml

from polarfab.fabric import Fabric

FULL = "routing: {balance: compact-valiant, protect: link}\n"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function that compiles a PolarFly with some lines more; each once."""
    folder = tmp_path_factory.mktemp("builds")

    @cache
    def compile(more="", q=3):
        place = Path(mkdtemp(dir=folder))
        spec = place / "fabric.yaml"
        spec.write_text(f"name: lab\ntopology: {{family: polarfly, q: {q}}}\n{more}")
        Fabric.from_spec(spec).save(place / "build")
        return place / "build"

    return compile


def test_one_more_number(compiled, polarfab):
    """It said `and 1 more numbers change`."""
    old, new = (compiled(f"addressing: {{ipv4: 10.{i}.0.0/24}}\n", q=2) for i in (4, 5))
    code, out, _ = polarfab("plan", new, "--from", old)
    assert (code, out.count("block of a switch changes")) == (1, 6)
    assert "  and 1 more number changes\n" in out


def test_plan_in_numbers(compiled, polarfab):
    old, new = compiled(), compiled(FULL)
    code, out, _ = polarfab("plan", new, "--from", old, "--json")
    plan = json.loads(out)
    assert (code, plan["lossless"], plan["rounds"], plan["in_place"]) == (0, True, 4, False)
    assert len(plan["switches"]) == 13
    assert plan["switches"][0]["routes"] == {"added": 0, "changed": 12, "removed": 0}
    numbers = {"states": 7, "pairs": 156, "max_hops": 2, "bound": 4}
    assert plan["proof"] == {**numbers, "legs": False, "faults": []}


def test_a_plan_over_intermediates_counts_legs(compiled, polarfab):
    old, new = compiled(), compiled("routing: {balance: valiant}\n")
    code, out, _ = polarfab("plan", new, "--from", old)
    assert (code, "; the longest leg, to an intermediate or from one, has 2 links" in out) == (
        0,
        True,
    )


def test_a_plan_that_loses_ends_with_1(compiled, polarfab):
    old, new = compiled(), compiled("hosts_per_node: 3\n")
    code, out, _ = polarfab("plan", new, "--from", old, "--json")
    loss = json.loads(out)["loss"]
    assert (code, loss["pairs"], len(loss["hosts"])) == (1, 156, 13)
    _, _, err = polarfab("plan", new, "--from", old)
    assert "\n13 hosts, such as h0, are cut off, moved or renumbered: " in err
    assert err.endswith("apply refuses such a move; apply --accept-loss makes it all the same\n")


def test_diff_of_a_build_with_itself(compiled, polarfab):
    build = compiled()
    assert polarfab("diff", build, "--from", build)[0] == 0
    code, out, _ = polarfab("diff", build, "--from", build, "--json")
    assert (code, json.loads(out)["differ"]) == (0, False)


def test_diff_tells_policy_and_classes(compiled, polarfab):
    code, out, _ = polarfab("diff", compiled(FULL), "--from", compiled(), "--json")
    found = json.loads(out)
    assert code == 1
    assert found["facts"]["protect"] == ["none", "link"]
    assert not found["cables_added"]
    assert found["switches"][0] == {
        "node": "0",
        "rows_added": 0,
        "rows_changed": 0,
        "rows_removed": 0,
        "classes_added": 4,
        "classes_changed": 4,
        "classes_removed": 0,
    }


def test_diff_of_two_sizes(compiled, polarfab):
    small, large = compiled(), compiled(q=4)
    code, out, _ = polarfab("diff", large, "--from", small, "--json")
    found = json.loads(out)
    assert (code, len(found["nodes_added"]), found["nodes_removed"]) == (1, 8, [])
    assert polarfab("diff", large, "--from", small)[0] == 1


def test_diff_of_configurations(compiled, polarfab):
    old, new = compiled(), compiled("addressing: {ipv4: 10.9.0.0/16}\n")
    code, out, _ = polarfab("diff", new, "--from", old, "--target", "nxos", "--json")
    files = {file["file"]: file for file in json.loads(out)["files"]}
    assert code == 1
    assert len(files) == 13
    file = files["0/nxos.cfg"]
    gone, come = (
        [line[1:] for line in file["difference"].splitlines() if line[0] == s] for s in "-+"
    )
    routes = [line for line in come if line.startswith("ip route 10.9.")]
    assert routes
    typed = file["remediation"].splitlines()
    assert set(routes) <= set(typed)
    assert any(line.startswith("no ip route 10.0.") for line in typed)
    assert any(line.startswith("ip route 10.0.") for line in gone)
    assert polarfab("diff", new, "--from", old, "--target", "ovs")[1].startswith(
        "--- a/0/flows.txt\n"
    )


def test_diff_with_options_of_a_target(compiled, polarfab):
    old, new = compiled(), compiled(FULL)
    words = "diff", new, "--from", old, "--target", "frr"
    assert " weight " not in polarfab(*words)[1]
    code, out, _ = polarfab(*words, "--set", "version=10.7")
    assert (code, "+ip route 10.0.0.8/30 fe80::5 eth2" in out) == (1, True)
    code, _, err = polarfab(*words, "--set", "version=9")
    assert (code, "--set version: required 8.4 or 10.7" in err) == (2, True)


def test_a_plan_is_one_line_then_names(compiled, polarfab, tmp_path):
    """And what it counts is what `expand` counts."""
    build = compiled(FULL)
    larger = tmp_path / "larger"
    _, out, _ = polarfab("expand", build, "--clusters", "fan:1", "-o", larger, "--json")
    grown = json.loads(out)
    _, out, _ = polarfab("plan", larger, "--from", build)
    head, *lines = out.splitlines()
    new = len(grown["nodes_added"])
    rounds = json.loads(polarfab("plan", larger, "--from", build, "--json")[1])["rounds"]
    assert head == f"{new} switches added, 13 change, 0 removed; {rounds} rounds; no packet lost"
    assert lines[0] == f"  added: {', '.join(grown['nodes_added'])}"
    assert lines[-1].startswith("proved: 156 pairs walked in each of ")
    assert len(lines) < 8
    planned = json.loads(polarfab("plan", larger, "--from", build, "--json")[1])["switches"]
    tables = {s["node"]: s["tables"] for s in planned if s["state"] == "stays"}
    counted = {s.pop("node"): s for s in grown["switches"]}
    assert {n: {"ports_left": counted[n]["ports_left"]} | t for n, t in tables.items()} == counted
    _code, out, _ = polarfab("plan", larger, "--from", build, "--verbose")
    assert "OpenFlow rows of each switch" in out
    assert "0, 1, 2, 3" in out


def test_a_plan_of_nothing_says_so(compiled, polarfab):
    build = compiled()
    assert polarfab("plan", build, "--from", build)[1] == "nothing changes\n"
    code, out, _ = polarfab("plan", build, "--from", build, "--json")
    assert (code, json.loads(out)["rounds"]) == (0, 0)


NODES = [{"name": f"n{v}", "type": "box", "system": "eos"} for v in range(13)]
BOX = {
    "ports": [{"name": "Ethernet{}", "count": 6, "first": 1}],
    "names": {"sonic": "Ethernet{port*4}"},
}


def installed(folder, nodes, **more):
    """A fabric.yaml with an inventory of these nodes."""
    folder.mkdir(exist_ok=True)
    inventory = {"node_types": {"box": BOX}, "nodes": nodes}
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "inventory": "i.yaml"}
    (folder / "i.yaml").write_text(yaml.safe_dump(inventory))
    (folder / "f.yaml").write_text(yaml.safe_dump(spec | more))
    return folder / "f.yaml"


def test_what_changes_beside_rows_is_named_by_every_verb(polarfab, tmp_path):
    """A system, variables, a name without a serial, and addresses that a balance needs."""
    build, new = tmp_path / "build", tmp_path / "new"
    nodes = [dict(node) for node in NODES]
    nodes[6]["serial"] = "S6"
    spec = installed(tmp_path, nodes)
    assert polarfab("compile", spec, "-o", build, "--no-verify")[0] == 0
    nodes[3] |= {"system": "sonic", "vars": {"room": 7}}
    nodes[5]["name"] = "other"
    nodes[6] |= {"name": "third", "serial": "S99"}
    spec = installed(tmp_path, nodes, vars={"site": "x"})
    _, _, compiled = polarfab("compile", spec, "-o", new, "--from", build, "--no-verify")
    for words in (
        "switch n3: system eos to sonic",
        'switch n3: vars none to {"room": 7}',
        "switch n5 goes",
        "switch other is new, at vertex",
        'vars.site changes: none to "x"',
    ):
        assert words in compiled
    report = json.loads(polarfab("diff", new, "--from", build, "--json")[1])
    assert (report["renamed"], report["nodes_removed"], report["nodes_added"]) == (
        [],
        ["n5", "n6"],
        ["other", "third"],
    )
    assert ["switch", "n3", "system", "eos", "sonic"] in report["settings"]
    assert len(report["cables_removed"]) == len(report["cables_added"]) > 0
    _, planned, err = polarfab("plan", new, "--from", build, "-v", "--unverified")
    for words in (
        "n3: system eos to sonic",
        "no serial is known: n5 to other",
        "its serial is another: n6 to third",
        "vars.site",
    ):
        assert words in planned, err
    spec = installed(tmp_path, NODES, routing={"balance": "spread"})
    _, _, compiled = polarfab("compile", spec, "-o", build, "--no-verify")
    assert "all links (routing.balance): 2 addresses a link to 4 addresses a link" in compiled


def test_a_larger_model_and_a_larger_pool_change_what_they_change(polarfab, tmp_path):
    """n3 numbers its ports in another way; the pool of links begins where it did."""
    build, new = tmp_path / "build", tmp_path / "new"
    serials = [node | {"serial": f"S{v}"} for v, node in enumerate(NODES)]
    links = {"addressing": {"links": "100.80.0.0/16"}}
    spec = installed(tmp_path, serials, **links)
    assert polarfab("compile", spec, "-o", build, "--no-verify")[0] == 0
    nodes = [dict(node) for node in serials]
    nodes[3] |= {"type": "large", "serial": "S99"}
    links["addressing"]["links"] = "100.80.0.0/15"
    spec = installed(tmp_path, nodes, **links)
    ports = [{"name": "Ethernet{}", "count": 6, "first": 20}, *BOX["ports"]]
    types = {"box": BOX, "large": BOX | {"ports": ports}}
    (tmp_path / "i.yaml").write_text(yaml.safe_dump({"node_types": types, "nodes": nodes}))
    _, _, err = polarfab("compile", spec, "-o", new, "--from", build, "--no-verify")
    assert "addressing.links changes: 100.80.0.0/16 to 100.80.0.0/15" in err
    for word in ("cable", "host ", "addresses of a link"):
        assert word not in err
    report = json.loads(polarfab("diff", new, "--from", build, "--json")[1])
    assert (report["cables_added"], report["cables_removed"]) == ([], [])
    assert (report["hosts_moved"], report["renumbered"]) == ([], [])


def test_routers_lose_packets_when_links_get_other_addresses(polarfab, tmp_path):
    build, new = tmp_path / "build", tmp_path / "new"
    spec = installed(tmp_path, NODES)
    assert polarfab("compile", spec, "-o", build)[0] == 0
    for more in ({"addressing": {"links": "100.80.0.0/16"}}, {"control_plane": {"routes": "ebgp"}}):
        spec = installed(tmp_path, NODES, **more)
        assert polarfab("compile", spec, "-o", new, "--from", build)[0] == 0
        code, out, err = polarfab("plan", new, "--from", build)
        assert (code, "packets may be lost" in out.splitlines()[0]) == (1, True)
        is_control = "control_plane" in more
        assert ("13 change, 0 removed; control plane changes; " in out) == is_control
        assert ("control_plane.routes changes: static to ebgp" in out) == is_control
        assert "routers lose packets" in " ".join(err.split())
        assert "--accept-loss" not in err


def test_ttl_security_that_follows_from_bfd_is_named(polarfab, tmp_path):
    """Beside EOS, SONiC has one of both; a session is down until both ends have the same."""
    nodes, words = [NODES[0] | {"system": "sonic"}, *NODES[1:]], ("-o", tmp_path / "b")
    for bfd in (True, False):
        spec = installed(tmp_path, nodes, control_plane={"routes": "ebgp", "bfd": bfd})
        code, _, err = polarfab("compile", spec, *words, "--no-verify")
        assert code == 0
    assert "control_plane.bfd changes: on to off" in err
    assert "control_plane.gtsm changes: off to on" in err
