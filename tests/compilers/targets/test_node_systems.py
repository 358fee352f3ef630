"""Fabrics whose nodes have several systems: each node's files, and what both ends agree on."""

import json
import re
from dataclasses import replace
from ipaddress import ip_interface

import pytest
import yaml

import polarfab
from compilers.audit.route_report import RouteReport
from compilers.audit.wiring_report import WiringReport
from compilers.tables.build_codec import to_json
from compilers.tables.folders.build_folder import load, save
from compilers.targets.system_port_names import named_by_systems
from inventory.problems import InputError
from tests.compilers.audit.device_tables import PRINTERS, rendered, write
from tests.compilers.audit.test_device_forms import cable_ends, eos_json, lldpctl

NAMES = {
    "eos": "Ethernet{port}",
    "sonic": "Ethernet{port*4}",
    "junos": "et-0/0/{port}",
    "nvue": "swp{port}",
}
EBGP = {"control_plane": {"routes": "ebgp"}}
ALTERNATES = {"routing": {"balance": "compact-valiant"}}


def mixed(*systems, q=2, **more):
    """PolarFly whose nodes have these systems in turn."""
    by_node = [systems[v % len(systems)] for v in range(q * q + q + 1)]
    nodes = [{"name": f"n{v}", "type": "box", "system": one} for v, one in enumerate(by_node)]
    box = {"ports": [{"name": "eth{}", "count": 8}], "names": NAMES}
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": q},
        "addressing": {"ipv6": "fd00::/48"},
        "inventory": {"node_types": {"box": box}, "nodes": nodes},
    }
    return polarfab.Fabric.from_spec({**spec, **more}).compile()


@pytest.fixture(scope="module", params=["static", "ebgp"])
def lab(request, tmp_path_factory):
    """A fabric of EOS, SONiC and FRR with alternates, and the folder of its files."""
    control = {"control_plane": {"routes": request.param}}
    fabric = mixed("eos", "sonic", "frr", **ALTERNATES, **control)
    folder = tmp_path_factory.mktemp("lab")
    (rendering,) = fabric.render("", folder)
    assert rendering.checked
    return fabric, folder


def test_every_node_has_the_files_of_its_system(lab):
    fabric, folder = lab
    files = {"eos": "eos.cfg", "sonic": "config_db.json", "frr": "links.batch"}
    for name, system in zip(fabric.build.wiring.names, fabric.build.systems, strict=True):
        present = {path.name for path in (folder / name).iterdir()}
        assert {s for s, file in files.items() if file in present} == {system}


def addresses(folder, name, system):
    """The addresses of each port, and the port at its other end, by one switch's own files."""
    ports = {}
    if system == "sonic":
        tables = json.loads((folder / name / "config_db.json").read_text())
        for port, entry in tables["PORT"].items():
            ports[port] = [entry["description"]]
        for key in tables["INTERFACE"]:
            port, _, address = key.partition("|")
            if address and port in ports:
                ports[port].append(address)
        return ports
    text = (folder / name / f"{system}.{'cfg' if system == 'eos' else 'conf'}").read_text()
    for block in re.split(r"^interface ", text, flags=re.M)[1:]:
        port, *lines = block.splitlines()
        of_port = [re.search(r"(?:description|ip address|ipv6 address) (.+)", t) for t in lines]
        ports[port] = [match[1] for match in of_port if match]
    return ports


def test_both_ends_of_a_link_have_one_network_and_name_each_other(lab):
    fabric, folder = lab
    build, w = fabric.build, named_by_systems(fabric.build).wiring
    ports = [addresses(folder, *at) for at in zip(w.names, build.systems, strict=True)]
    for u, port, v, far_port in w.each_cable():
        near, far = (ports[u][w.port_name(u, port)], ports[v][w.port_name(v, far_port)])
        assert near[0] == f"{w.names[v]} {w.port_name(v, far_port)}"
        assert far[0] == f"{w.names[u]} {w.port_name(u, port)}"
        for one, other in zip(map(ip_interface, near[1:]), map(ip_interface, far[1:]), strict=True):
            assert one.network == other.network
            assert one.ip != other.ip


def test_a_wrong_line_in_the_files_of_one_system_is_named(lab, tmp_path):
    fabric, folder = lab
    for path in folder.rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    file = tmp_path / "n2" / "frr.conf"
    text = file.read_text()
    address = re.search(r"ip address (100\.64\S+)/31", text)[1]
    file.write_text(text.replace(f"{address}/31", "100.64.9.9/31"))
    (report,) = fabric.check_emitted(tmp_path)
    assert not report.passed
    assert any("100.64.9" in str(example) or address in str(example) for example in report.examples)


def test_what_was_selected_is_checked_and_nothing_else(lab, tmp_path):
    fabric, _ = lab
    (rendering,) = fabric.render("", tmp_path, systems=["sonic"], nodes=["n1", "n4", "n0"])
    assert (rendering.nodes, rendering.checked) == (2, True)
    (report,) = fabric.check_emitted(tmp_path)
    assert (report.passed, report.switches) == (True, 2)
    file = tmp_path / "n4" / "frr.conf"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("ip route 10.")))
    (report,) = fabric.check_emitted(tmp_path)
    assert not report.passed
    assert {example.file for example in report.examples} <= {str(file), str(file.parent)}


def test_a_system_is_selected_for_another_target_too(lab, tmp_path):
    fabric, _ = lab
    (rendering,) = fabric.render("eos", tmp_path, systems=["sonic"])
    assert (rendering.target, rendering.nodes) == ("eos", 2)


def test_a_selection_of_no_switch_is_refused(lab, tmp_path):
    fabric, _ = lab
    with pytest.raises(InputError, match=r"node: required a switch with system eos, given n1"):
        fabric.render("", tmp_path, systems=["eos"], nodes=["n1"])
    with pytest.raises(InputError, match=r"node: required the name of a switch.*given nx"):
        fabric.render("", tmp_path, systems=["eos"], nodes=["nx"])


def test_a_part_of_a_fabric_with_ebgp_is_checked_beside_what_others_would_have(tmp_path):
    fabric = mixed("frr", **EBGP)
    (rendering,) = fabric.render("frr", tmp_path, nodes=["n3"])
    assert (rendering.nodes, rendering.checked) == (1, True)
    file = tmp_path / "n3" / "frr.conf"
    file.write_text(file.read_text().replace("remote-as ", "remote-as 1", 1))
    (report,) = fabric.check_emitted(tmp_path)
    assert not report.passed


def test_a_target_has_all_nodes_render_for_one_system(lab, tmp_path):
    fabric, _ = lab
    (rendering,) = fabric.render("eos", tmp_path)
    assert (rendering.target, rendering.nodes, rendering.checked) == ("eos", 7, True)


@pytest.mark.parametrize(
    ("key", "pool", "required"),
    [
        ("links", "10.0.0.0/16", "addresses other than those of hosts"),
        ("links", "100.64.0.0/30", "at least [0-9]+"),
        ("next_hops", "10.0.0.0/16", "addresses other than those of hosts"),
        ("next_hops", "100.127.0.0/30", "at least 8 addresses"),
        ("next_hops", "100.64.0.0/24", "addresses other than those of links"),
    ],
)
def test_compile_refuses_pools_that_render_would_refuse(key, pool, required):
    with pytest.raises(InputError, match=rf"addressing\.{key}: required .*{required}"):
        mixed("eos", "sonic", addressing={key: pool}, **ALTERNATES, **EBGP)


def test_weights_of_static_routes_are_refused_by_their_key():
    control = {"routes": "static", "wcmp": True}
    with pytest.raises(InputError, match=r"control_plane\.wcmp: required false"):
        mixed("frr", control_plane=control)


def test_options_cannot_change_what_neighbours_rely_on(tmp_path):
    fabric = mixed("eos", "sonic", **EBGP)
    with pytest.raises(InputError, match=r"set: required an option .*control_plane\.routes"):
        fabric.render("", tmp_path, options={"routing": "static"})
    with pytest.raises(InputError, match=r"set: required an option .*addressing\.links"):
        fabric.render("eos", tmp_path, options={"links": "100.66.0.0/16"})


def test_tools_handle_every_node_as_its_system(lab, tmp_path):
    fabric, _ = lab
    names = zip(fabric.build.wiring.names, fabric.build.systems, strict=True)
    for tool in ("ansible", "containerlab"):
        (rendering,) = fabric.render(tool, tmp_path / tool)
        assert rendering.checked
    inventory = yaml.safe_load((tmp_path / "ansible" / "inventory.yaml").read_text())
    groups = inventory["fabric"]["children"].values()
    systems = {
        name: group["vars"]["polarfab_system"] for group in groups for name in group["hosts"]
    }
    assert systems == dict(names)
    plays = yaml.safe_load((tmp_path / "ansible" / "push.yaml").read_text())
    assert [play["hosts"] for play in plays] == ["fabric_eos", "fabric_frr", "fabric_sonic"]
    topology = yaml.safe_load((tmp_path / "containerlab" / "topology.clab.yml").read_text())
    kinds = [topology["topology"]["nodes"][name]["kind"] for name in ("n0", "n1", "n2")]
    assert kinds == ["arista_ceos", "sonic-vs", "linux"]


def test_tables_of_each_system_are_compared_with_those_of_its_switch(tmp_path):
    fabric = mixed("eos", "sonic", "frr", **ALTERNATES)
    fabric.render("", tmp_path / "out")
    for name, system in zip(fabric.build.wiring.names, fabric.build.systems, strict=True):
        routes = rendered(system, tmp_path / "out" / name)
        if name == "n3":
            del routes["main", next(prefix for table, prefix in routes if table == "main")]
        write(tmp_path / "tables" / f"{name}.json", PRINTERS[system](routes))
    report = RouteReport.of(fabric.build, [tmp_path / "tables"])
    assert (report.target, report.switches) == ("eos and frr and sonic", 7)
    assert [(one.switch, one.kind) for one in report.differences] == [("n3", "missing")]


def test_neighbours_name_ports_as_their_own_system_does(tmp_path):
    """SONiC's lldpctl and EOS show the other's ports by the other's names."""
    fabric = mixed("eos", "sonic")
    build, named = fabric.build, named_by_systems(fabric.build)
    for vertex, (name, system) in enumerate(zip(build.wiring.names, build.systems, strict=True)):
        rows = cable_ends(named, vertex)
        text = eos_json(*rows) if system == "eos" else lldpctl(rows)
        (tmp_path / f"{name}.json").write_text(text)
    report = WiringReport.of([build], [tmp_path])
    assert report.good
    assert len(report.audit.right) == report.audit.planned == 9


@pytest.mark.parametrize("unnumbered", [True, False])
def test_fabric_yaml_decides_whether_links_of_frr_with_static_routes_have_addresses(
    unnumbered, tmp_path
):
    fabric = mixed("frr", control_plane={"unnumbered": unnumbered})
    fabric.render("", tmp_path)
    texts = [path.read_text() for path in (tmp_path / "n0").iterdir()]
    assert unnumbered == all("100.64.0." not in text for text in texts)


@pytest.mark.parametrize(
    ("systems", "more", "message"),
    [
        (("frr", "linux"), EBGP, r"control_plane\.routes: required static, as system linux has"),
        (("linux",), EBGP, r"control_plane\.routes: required static, as system linux has"),
        (("linux", "eos"), {}, r"system: required another system than linux beside others"),
        (("bird", "nvue"), {}, r"system: .* than bird beside .* `control_plane: {routes: ebgp}`"),
        (
            ("linux", "frr"),
            {"control_plane": {"bfd": True}},
            r"control_plane\.bfd: required false .* given true; remove it",
        ),
        (("ovs", "eos"), {}, r"system: required one system for all nodes, as ovs stands beside"),
        (
            ("sonic", "eos"),
            {"control_plane": {"routes": "ebgp", "unnumbered": True}},
            r"control_plane\.unnumbered: required false",
        ),
        (
            ("nvue", "eos"),
            {"control_plane": {"routes": "ebgp", "gtsm": True}},
            r"control_plane\.gtsm: required false with BFD on eos and nvue, as nvue orders",
        ),
        (
            ("frr", "eos"),
            {"control_plane": {"bfd": True}},
            r"control_plane\.bfd: required false with static routes",
        ),
        (
            ("frr", "linux"),
            {"control_plane": {"gtsm": True}},
            r"control_plane\.gtsm: required false with static routes: .* given true; remove it",
        ),
        (
            ("frr", "sonic"),
            {"q": 3, "routing": {"balance": "spread"}},
            r"routing\.balance: required a balance that marks no packets",
        ),
        (("eos", None), {}, r"nodes\[1\]: required a system for every node"),
        (("eos", "jumos"), {}, r"nodes\[1\]\.system: .*did you mean junos"),
    ],
)
def test_what_does_not_go_together_is_refused_at_compile(systems, more, message):
    with pytest.raises(InputError, match=message) as refused:
        mixed(*systems, **more)
    assert len({problem.required for problem in refused.value.problems}) == 1


def test_no_ebgp_is_proposed_where_one_of_the_systems_has_none():
    with pytest.raises(InputError) as refused:
        mixed("bird", "linux", "eos")
    proposed = [problem.todo for problem in refused.value.problems]
    assert len(proposed) == 2
    assert not [todo for todo in proposed if "ebgp" in todo]


def test_a_build_keeps_systems_and_one_without_is_as_before(lab, tmp_path):
    fabric, _ = lab
    fabric.save(tmp_path / "build")
    kept = polarfab.Fabric.load(tmp_path / "build").build
    assert kept.systems == fabric.build.systems
    assert kept.control == fabric.build.control
    plain = polarfab.Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 2}})
    assert not {"systems", "control"} & json.loads(to_json(plain.build)).keys()


def test_a_default_and_a_type_are_overridden_by_the_node():
    box = {"ports": [{"name": "eth{}", "count": 8}], "names": NAMES}
    nodes = [{"name": f"n{v}", "type": "ab"[v % 2]} for v in range(7)]
    nodes[1]["system"] = "junos"
    types = {"a": box, "b": {**box, "system": "sonic"}}
    fabric = polarfab.Fabric.from_spec(
        {
            "name": "lab",
            "system": "eos",
            "topology": {"family": "polarfly", "q": 2},
            "inventory": {"node_types": types, "nodes": nodes},
        }
    )
    systems = dict(zip(fabric.build.wiring.names, fabric.build.systems, strict=True))
    assert [systems[f"n{v}"] for v in range(4)] == ["eos", "junos", "eos", "sonic"]


def test_copies_have_the_systems_of_their_originals(tmp_path):
    fabric = mixed("eos", "eos", "sonic", q=3)
    build = fabric.expand("quadric:1").build
    of_name = dict(zip(build.wiring.names, build.systems, strict=True))
    copies = build.wiring.names[13:]
    assert {of_name[name] for name in copies} == {"eos", "sonic"}
    assert all(of_name[name] == of_name[name.rpartition("-")[0]] for name in copies)
    save(replace(build, identity=""), tmp_path / "build")
    assert load(tmp_path / "build").systems == build.systems
