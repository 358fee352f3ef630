"""The files of eos, nxos, junos, srlinux, sonic: golden ones, AVD's own words, refusals."""

import json
import re
import string
from dataclasses import replace

import pytest
from hier_config import Platform, get_hconfig
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compilers.pipeline import compile_fabric
from compilers.planes import compile_planes
from compilers.spec.fabric_file import load_fabric
from compilers.targets.routed.link_addresses import link_pairs
from compilers.targets.system_names import hostname
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.routed import agreed, routed
from tests.compilers.targets.makers import every, fabric
from tests.vtysh import NEEDS_VTYSH, judged

HOSTS = {"one": fabric(q=3), "three": fabric(q=2, hosts=3), "none": fabric(q=2, hosts=0, ipv6="")}


BUILDS = {
    "q=3": HOSTS["one"],
    "no hosts, IPv4": HOSTS["none"],
    "three hosts": HOSTS["three"],
    "some without hosts": fabric("oft", q=2, hosts=2),
    "aggregates": fabric("polarstar", q=2, supernode="complete", degree=2),
}


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *((name, "three hosts") for name in ("eos", "junos", "nvue", "nxos", "sonic", "srlinux")),
        ("eos", "some without hosts"),
        ("srlinux", "some without hosts"),
        ("junos", "aggregates"),
        ("sonic", "aggregates"),
        ("nxos", "no hosts, IPv4"),
    ],
)
def test_what_was_written_says_what_the_tables_say(name, case, tmp_path):
    target(name).render(BUILDS[case], tmp_path)
    report = target(name).check_emitted(BUILDS[case], tmp_path)
    assert (report.examples, report.passed) == ((), True)


@pytest.mark.parametrize("name", ["eos", "nxos"])
@pytest.mark.parametrize("case", HOSTS)
def test_hier_config_takes_every_line_for_what_it_is(name, case, tmp_path):
    """Its parser knows the sections of both systems, and which lines belong to one."""
    target(name).render(HOSTS[case], tmp_path, only=[3])
    ((file, platform),) = target(name).hier_config.items()
    text = (tmp_path / "3" / file).read_text()
    wanted = [line.rstrip() for line in text.splitlines() if line.strip(" !") and line != "end"]
    tree = get_hconfig(Platform[platform], text)
    found = [(child.depth() - 1, child.text) for child in tree.all_children()]
    indent = min(len(line) - len(line.lstrip()) for line in wanted if line[0] == " ")
    said = [((len(line) - len(line.lstrip())) // indent, line.strip()) for line in wanted]
    assert found == [(depth, line) for depth, line in said if line[0] != "!"]


@every
@pytest.mark.parametrize("case", HOSTS)
def test_golden(name, case, tmp_path, golden):
    build = replace(HOSTS[case], identity="0123456789abcdef")
    target(name).render(build, tmp_path, only=[3])
    for path in sorted((tmp_path / "3").iterdir()):
        golden(path.read_text(), f"{name}_{case}_{path.name}")


@NEEDS_VTYSH
@pytest.mark.parametrize("case", ["one", "three"])
def test_vtysh_accepts_sonics_frr_conf(case, tmp_path):
    target("sonic").render(HOSTS[case], tmp_path, only=[0, 3])
    for path in tmp_path.glob("*/frr.conf"):
        assert judged(path) == (0, "", "")


def test_host_names():
    names = {"0": "sw-0", "a_": "sw-a", "a_b.c": "a-b-c", "7" * 63: "sw-" + "7" * 60, "r1": "r1"}
    assert {node: hostname(node) for node in names} == names


NAME = string.ascii_letters + string.digits


@given(st.tuples(st.sampled_from(NAME), st.text(NAME + "._-", max_size=62)).map("".join))
def test_a_host_name_is_one_for_every_system(node):
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,61}[A-Za-z0-9]", hostname(node))


def renamed(build, names=None, hosts=None):
    w = build.wiring
    names = tuple(names or ()) + w.names[len(names or ()) :]
    hosts = tuple(hosts or ()) + w.host_names[len(hosts or ()) :]
    return replace(build, wiring=replace(w, names=names, host_names=hosts))


NASTY = st.text(
    st.sampled_from(string.ascii_letters + "!;\"'\\\n\r\t #{}$|é\u2028\x00/%"), max_size=20
)


@pytest.mark.parametrize("name", ["eos", "junos"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(node=NASTY, host=NASTY)
def test_no_name_gets_into_a_file_unchecked(name, tmp_path, node, host):
    plain = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
    for build, text in (
        (renamed(fabric(q=2), [node]), node),
        (renamed(fabric(q=2), (), [host]), host),
    ):
        if plain.fullmatch(text):
            continue
        with pytest.raises(InputError, match="required a name of at most 63 letters"):
            target(name).render(build, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nodes_that_become_one_host_name(tmp_path):
    build = renamed(fabric(q=2), ["a.b", "A_b"])
    with pytest.raises(InputError, match=r"differ as host names, given 'a\.b' and 'A_b'"):
        target("eos").render(build, tmp_path / "out")


@pytest.mark.parametrize("name", ["eos", "srlinux"])
def test_what_it_cannot_do_is_refused_by_name(name, tmp_path):
    build = routed(q=3, protect="node", spread=True)
    with pytest.raises(InputError) as error:
        target(name).render(build, tmp_path / "out")
    text = str(error.value)
    told = f"routing.balance: required minimal, as target {name} cannot do separate routes" in text
    assert told == (name == "srlinux")
    assert (
        f"routing.protect: required none, as target {name} cannot do repair in the switch" in text
    )
    assert not (tmp_path / "out").exists()


INVENTORY = """
node_types:
  box:
    ports:
      - {{name: "{ports}", first: {first}, step: {step}, count: 8, speed: 400, lanes: 8}}
generate: {{type: box, name: "leaf{{}}"}}
"""


def compiled(folder, ports, first=1, step=1):
    (folder / "inventory.yaml").write_text(
        INVENTORY.format(ports=ports, first=first, step=step), encoding="utf-8"
    )
    (folder / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 3}\ninventory: inventory.yaml\n"
    )
    return compile_fabric(load_fabric(folder / "fabric.yaml"))


@pytest.mark.parametrize("name", ["eos", "sonic"])
def test_ports_of_a_generated_inventory_have_the_systems_names(name, tmp_path):
    """Also where the build knows hardware, as that of planes does."""
    text = "name: lab\ntopology: {family: polarfly, q: 2}\nplanes: 2\n"
    (tmp_path / "fabric.yaml").write_text(text)
    build = compile_planes(load_fabric(tmp_path / "fabric.yaml"))[1]
    assert build.hardware is not None
    interfaces = target(name).interfaces
    (names,) = interfaces.named(build).wiring.port_names
    assert all(map(interfaces.pattern.fullmatch, names))
    target(name).render(build, tmp_path / "out")


def test_links_keep_their_addresses_when_others_are_gone(tmp_path):
    whole = compiled(tmp_path, "eth{}")
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(inventory.read_text() + "dead_links: [{a: leaf0, b: leaf1}]\n")
    damaged = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))

    def pairs(build):
        w = build.wiring
        return {
            (vertex, far, pair)
            for vertex, row in enumerate(
                zip(w.far.tolist(), link_pairs(build).tolist(), strict=True)
            )
            for far, pair in zip(*row, strict=True)
            if far >= 0
        }

    assert pairs(damaged) < pairs(whole)
    assert len(pairs(whole)) - len(pairs(damaged)) == 2


def test_sonic_ports_have_the_speed_of_the_node_type_and_no_lanes_that_nobody_said(tmp_path):
    build = compiled(tmp_path, "Ethernet{}", first=0, step=8)
    target("sonic").render(build, tmp_path / "out", options={"hwsku": "Box-8"})
    tree = json.loads((tmp_path / "out" / "leaf0" / "config_db.json").read_text())
    assert tree["PORT"]["Ethernet8"] == {
        "admin_status": "up",
        "description": "leaf1 Ethernet8",
        "speed": "400000",
    }
    assert tree["DEVICE_METADATA"]["localhost"]["hwsku"] == "Box-8"


def test_pools_of_links(tmp_path):
    """Pools that hold others' addresses or too few are refused, both at once."""
    build = fabric(q=2)
    management = ("100.64.0.9", *build.wiring.management[1:])
    managed = replace(build, wiring=replace(build.wiring, management=management))
    overlapping = {"links": "10.0.0.0/16", "links6": "fd00::/120"}
    small = {"links": "192.168.0.0/29"}
    told = []
    for given_build, control in ((build, overlapping), (build, small), (managed, {})):
        with pytest.raises(InputError) as error:
            target("eos").render(agreed(given_build, control), tmp_path / "out")
        told += str(error.value).splitlines()
    assert told == [
        "addressing.links: required addresses other than those of hosts for links, "
        "given 10.0.0.0/16, and hosts in 10.0.0.0/8",
        "addressing.links6: required addresses other than those of hosts for links, "
        "given fd00::/120, and hosts in fd00::/48",
        "addressing.links: required a network of at least 46 addresses for links, "
        "given 192.168.0.0/29",
        "addressing.links: required addresses other than those of management for links, "
        "given 100.64.0.0/10, and 100.64.0.9",
    ]
    assert not (tmp_path / "out").exists()


def test_another_pool(tmp_path):
    target("junos").render(agreed(fabric(q=2), {"links": "172.16.0.0/16"}), tmp_path)
    text = (tmp_path / "0" / "junos.set").read_text()
    assert "family inet address 172.16.0.2/31" in text
    assert "100.64" not in text


@pytest.fixture(scope="module")
def far_port(tmp_path_factory):
    """Of n0 the cable to its first neighbour, n1, is plugged into port 12."""
    folder = tmp_path_factory.mktemp("order")
    names = {"eos": "Ethernet{port}", "nxos": "Ethernet1/{port}", "nvue": "swp{port}"}
    names |= {"junos": "et-0/0/{port}", "srlinux": "ethernet-1/{port}", "sonic": "Ethernet{port*4}"}
    inventory = {
        "node_types": {"box": {"ports": [{"name": "eth{}", "count": 12}], "names": names}},
        "nodes": [{"name": f"n{v}", "type": "box"} for v in range(7)],
        "cables": [{"a": "n0", "a_port": "eth12", "b": "n1", "b_port": "eth1"}],
    }
    (folder / "inventory.yaml").write_text(json.dumps(inventory))
    spec = "name: lab\ntopology: {family: polarfly, q: 2}\nhosts_per_node: 0\n"
    spec += "inventory: inventory.yaml\n"
    (folder / "fabric.yaml").write_text(spec)
    return compile_fabric(load_fabric(folder / "fabric.yaml"))


INTERFACE = {
    "eos": r"^interface Ethernet(\d+)$",
    "nxos": r"^interface Ethernet1/(\d+)$",
    "junos": r"^set interfaces et-0/0/(\d+) ",
    "srlinux": r'^ *"name": "ethernet-1/(\d+)",$',
    "nvue": r'^ *"?swp(\d+)"?:$',
    "sonic": r'^ *"Ethernet(\d+)": \{',
}
"""The head of an interface, with its number."""


@every
def test_interfaces_are_in_the_order_in_which_devices_show_them(name, far_port, tmp_path):
    target(name).render(far_port, tmp_path, only=[0])
    text = "\n".join(path.read_text() for path in sorted((tmp_path / "n0").iterdir()))
    numbers = re.findall(INTERFACE[name], text, flags=re.MULTILINE)
    shown = list(dict.fromkeys(map(int, numbers)))
    assert len(shown) >= 3
    assert shown == sorted(shown)
