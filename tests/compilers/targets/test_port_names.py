"""Ports with a name in every system: patterns, parts of cages, speed, FEC, MTU, SONiC's lanes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.spec.target_names import SHIPPED_SYSTEMS
from compilers.targets.eos.port_names import EOS
from compilers.targets.junos.port_names import JUNOS
from compilers.targets.nxos.port_names import NXOS
from compilers.targets.routed.linux_ports import LINUX
from compilers.targets.sonic.port_names import SONIC
from compilers.targets.srlinux.port_names import SRLINUX
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from polarfab.fabric import Fabric

EXAMPLES = Path(__file__).parents[3] / "examples"
SYSTEMS = ("eos", "frr", "junos", "linux", "nvue", "nxos", "ovs", "sonic", "srlinux")
LABS = ("frr", "srlinux", "sonic", "eos")
SAMPLE = 3
"""Switches of the examples that are rendered."""

INVENTORY = """
node_types:
  box:
    ports:
      - {{name: "a{{}}", count: 2, breakout: 2, speed: {gb}, lanes: 4, mtu: 9000, fec: rs{block}}}
      - {{name: "b{{}}", count: 4, speed: 400, lanes: 8}}
    names:
      eos: "Ethernet{{cage}}/{{lane}}"
      junos: "et-0/0/{{cage}}:{{lane}}"
      linux: "swp{{cage}}s{{lane}}"
      nxos: "Ethernet1/{{cage}}/{{lane}}"
      sonic: "Ethernet{{serdes}}"
      srlinux: "ethernet-1/{{cage}}/{{lane}}"
{type}
generate: {{type: box, name: "leaf{{}}"}}
"""


def loaded(folder, block="", extra="", speed=200):
    text = INVENTORY.format(block=block, type=extra, gb=speed)
    (folder / "inventory.yaml").write_text(text, encoding="utf-8")
    (folder / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\n"
        "hosts_per_node: 2\n"
    )
    return load_fabric(folder / "fabric.yaml")


def compiled(folder, **more):
    return replace(compile_fabric(loaded(folder, **more)), identity="0" * 16)


@pytest.fixture(scope="module")
def examples():
    """The build of each example, and the switches of it that are looked at."""
    found = {}
    for name in ("q7", "q7-copackaged", "q31"):
        spec = yaml.safe_load((EXAMPLES / name / "fabric.yaml").read_text())
        spec |= {"inventory": None, "routing": {}}  # what every system can do
        example = Fabric.from_spec(spec, EXAMPLES / name / "inventory.yaml")
        build = replace(compile_fabric(example.loaded), identity="7" * 16)
        order = build.topology.graph.order
        found[name] = build, set(range(0, order, order // SAMPLE))
    return found


@pytest.mark.parametrize(
    ("name", "example"),
    [
        *((name, "q7-copackaged") for name in SYSTEMS),
        *(("sonic", example) for example in ("q7", "q31")),
    ],
)
def test_every_example_renders_for_every_system_and_reads_back(name, example, examples, tmp_path):
    build, only = examples[example]
    target(name).render(build, tmp_path, only=only)
    report = target(name).check_emitted(build, tmp_path, only=only)
    assert (report.differences, report.examples) == (0, ())
    assert report.switches == len(only)
    assert report.delivered == report.pairs


@pytest.mark.parametrize("system", LABS)
def test_an_example_is_a_lab_of_every_system(system, examples, tmp_path):
    build, _ = examples["q7-copackaged"]
    written = target("containerlab").render(build, tmp_path, options={"system": system})
    assert written.files == 2


NAMES = {
    EOS: ["Ethernet1/1", "Ethernet1/5", "Ethernet2/1", "Ethernet2/5", "Ethernet3/1"],
    NXOS: ["Ethernet1/1/1", "Ethernet1/1/2", "Ethernet1/2/1", "Ethernet1/2/2", "Ethernet1/3"],
    JUNOS: ["et-0/0/0:0", "et-0/0/0:1", "et-0/0/1:0", "et-0/0/1:1", "et-0/0/2"],
    SRLINUX: [
        "ethernet-1/1/1",
        "ethernet-1/1/2",
        "ethernet-1/2/1",
        "ethernet-1/2/2",
        "ethernet-1/3",
    ],
    LINUX: ["swp1s0", "swp1s1", "swp2s0", "swp2s1", "swp3"],
    SONIC: ["Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12", "Ethernet16", "Ethernet24"],
}


@pytest.mark.parametrize("system", NAMES, ids=lambda system: system.system)
def test_names_follow_the_systems_way_of_counting(system, tmp_path):
    (names,) = system.named(compiled(tmp_path)).wiring.port_names
    assert list(names[: len(NAMES[system])]) == NAMES[system]
    assert all(map(system.pattern.fullmatch, names))


def test_a_block_and_a_target_have_names_of_their_own(tmp_path):
    build = compiled(tmp_path, block=', names: {eos: "Ethernet4{cage}", frr: "p{port}"}')
    assert EOS.named(build).wiring.port_names[0][0] == "Ethernet41"
    assert LINUX.named(build, "frr").wiring.port_names[0][:5] == ("p1", "p2", "p3", "p4", "swp3")
    assert LINUX.named(build, "linux").wiring.port_names[0][0] == "swp1s0"


def test_names_that_are_not_the_systems_or_twice_are_one_message_a_type(tmp_path):
    """Node type, system, and what to write."""
    build = compiled(tmp_path, block=', names: {nxos: "eth{port}", eos: "Ethernet{cage}"}')
    told = {}
    for name in ("nxos", "eos"):
        with pytest.raises(InputError) as error:
            target(name).render(build, tmp_path / "out")
        told[name] = str(error.value)
    assert told["nxos"] == (
        "node_types.box.names: required interface names of NX-OS, given eth1 and 3 more; say what "
        'the switch calls them, such as `names: {nxos: "Ethernet1/{cage}/{lane}"}`, or choose '
        "another target"
    )
    assert "names: required names that differ, given Ethernet1 and 1 more; " in told["eos"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            '{eos: "Ethernet{}"}',
            "with {cage}, {lane}, {port}, {serdes} or {module}, given Ethernet{}; write it like",
        ),
        ('{eoss: "Ethernet{cage}"}', "did you mean eos?"),
    ],
)
def test_wrong_patterns_are_refused_with_their_line(words, message, tmp_path):
    with pytest.raises(InputError) as error:
        loaded(tmp_path, block=f", names: {words}")
    assert "inventory.yaml:5: node_types.box.ports[0].names.eos" in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("block", "place", "message"),
    [
        (
            ', names: {sonic: "Ethernet{port*8}"}',
            "5: node_types.box.ports[0].names.sonic",
            "required numbers that follow the lanes, 4 a port, given Ethernet{port*8}; write "
            "Ethernet{serdes}, or name the switch's `platform` file",
        ),
        (
            "}\n      - {count: 2",
            "6: node_types.box.ports[1]",
            "required the key lanes, for {serdes} in names, given nothing; say how many lanes",
        ),
    ],
)
def test_sonics_numbers_follow_the_lanes(block, place, message, tmp_path):
    with pytest.raises(InputError) as error:
        loaded(tmp_path, block=block)
    assert f"inventory.yaml:{place}: {message}" in str(error.value)


def test_compile_says_where_a_type_lacks_names_of_a_target(tmp_path):
    loaded(tmp_path, block=', names: {frr: "verylonginterface{port}"}')
    text = (tmp_path / "fabric.yaml").read_text()
    (tmp_path / "fabric.yaml").write_text(text + "system: frr\n")
    with pytest.raises(InputError) as error:
        compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    (problem,) = error.value.problems
    assert (Path(problem.file).name, problem.line, problem.key) == (
        "inventory.yaml",
        7,
        "node_types.box.names",
    )
    assert problem.todo.startswith(
        'say what the switch calls them, such as `names: {linux: "swp{cage}s{lane}"}`'
    )


@pytest.mark.parametrize(
    ("system", "block", "names"),
    [
        ("eos", "speed: 25, lanes: 1", '`names: {eos: "Ethernet{cage}"}`'),
        ("eos", "speed: 25", '`names: {eos: "Ethernet{cage}"}`'),
        ("eos", "speed: 100, lanes: 4", '`names: {eos: "Ethernet{cage}/{lane}"}`'),
        ("nxos", "speed: 100, lanes: 4", '`names: {nxos: "Ethernet1/{cage}"}`'),
        ("junos", "speed: 100", '`names: {junos: "et-0/0/{cage}"}`'),
        ("junos", "speed: 100, breakout: 2", '`names: {junos: "et-0/0/{cage}:{lane}"}`'),
    ],
)
def test_the_names_that_are_proposed_have_a_lane_where_the_system_has_one(
    system, block, names, tmp_path
):
    """Ethernet50/1 was proposed for ports of one lane, which EOS calls Ethernet50."""
    (tmp_path / "inventory.yaml").write_text(
        f"node_types: {{box: {{ports: [{{name: 'x{{}}', count: 8, {block}}}]}}}}\n"
        "generate: {type: box}\n"
    )
    (tmp_path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\n"
        f"system: {system}\n"
    )
    with pytest.raises(InputError) as error:
        compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    assert f"such as {names}, or choose" in str(error.value)


def test_names_are_proposed_for_the_block_of_the_port(tmp_path):
    (tmp_path / "inventory.yaml").write_text(
        "node_types: {box: {ports: [{name: 'x{}', count: 4, speed: 25, lanes: 1},"
        " {name: 'q{}', count: 4, speed: 25, lanes: 4}]}}\ngenerate: {type: box}\n"
    )
    (tmp_path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\nsystem: eos\n"
    )
    with pytest.raises(InputError, match=r'names: \{eos: "Ethernet\{cage\}"\}` at their block, or'):
        compile_fabric(load_fabric(tmp_path / "fabric.yaml"))


def test_both_ends_of_a_link_have_one_mtu(tmp_path):
    text = INVENTORY.format(block="", type="", gb=200).replace("lanes: 8", "lanes: 4, mtu: 1500")
    text = text.replace("count: 2, breakout: 2", "count: 2").replace("count: 4", "count: 2")
    (tmp_path / "inventory.yaml").write_text(text.replace("speed: 400", "speed: 200"))
    (tmp_path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\n"
    )
    with pytest.raises(InputError, match="required ports of one MTU at both ends of a link"):
        compile_fabric(load_fabric(tmp_path / "fabric.yaml"))


def rendered(name, build, out):
    """The text of a switch's first file, once it has been read back without a difference."""
    target(name).render(build, out / name)
    report = target(name).check_emitted(build, out / name)
    assert (report.differences, report.examples) == (0, ())
    return (out / name / "leaf0" / next(iter(target(name).files))).read_text()


@pytest.mark.parametrize(("speed", "code"), [(100, "rs-528"), (200, "rs-544")])
def test_srlinux_names_the_code_of_a_speed(speed, code, tmp_path):
    """Four lanes: of 25 Gb/s they have RS-528 (IEEE 802.3 clause 91), faster ones RS-544."""
    tree = json.loads(rendered("srlinux", compiled(tmp_path, speed=speed), tmp_path))
    ports = {port["name"]: port for port in tree["srl_nokia-interfaces:interface"]}
    assert ports["ethernet-1/1/2"]["transceiver"] == {"forward-error-correction": code}


def test_speed_fec_mtu_and_breakout_are_printed_where_they_are_said(tmp_path):
    build = compiled(tmp_path)
    eos = rendered("eos", build, tmp_path)
    assert (
        "interface Ethernet1/5\n   description leaf1 Ethernet2/1\n   mtu 9000\n   speed 200g-4\n"
        "   error-correction encoding reed-solomon\n   no shutdown\n"
    ) in eos
    assert "interface Ethernet3/1\n   description host h0-1\n   no shutdown\n" in eos
    nxos = rendered("nxos", build, tmp_path)
    assert "interface breakout module 1 port 1 map 200g-2x\n" in nxos
    assert (
        "interface Ethernet1/1/2\n  description leaf1 Ethernet1/2/1\n  fec rs-fec\n"
        "  no switchport\n  mtu 9000\n  ip address" in nxos
    )
    junos = rendered("junos", build, tmp_path)
    assert (
        "set interfaces et-0/0/0 speed 200g\nset interfaces et-0/0/0 number-of-sub-ports 2\n"
        in junos
    )
    assert "set interfaces et-0/0/0:1 mtu 9014\n" in junos
    assert "set interfaces et-0/0/0:1 gigether-options fec fec91\n" in junos
    tree = json.loads(rendered("srlinux", build, tmp_path))
    ports = {port["name"]: port for port in tree["srl_nokia-interfaces:interface"]}
    parts = {"num-breakout-ports": "2", "breakout-port-speed": "200G"}
    assert ports["ethernet-1/1"]["breakout-mode"] == parts
    assert ports["ethernet-1/1/2"]["mtu"] == 9014
    assert ports["ethernet-1/1/2"]["subinterface"][0]["ip-mtu"] == 9000
    sonic = json.loads(rendered("sonic", build, tmp_path))
    assert sonic["PORT"]["Ethernet4"] == {
        "admin_status": "up",
        "description": "leaf1 Ethernet8",
        "fec": "rs",
        "mtu": "9000",
        "speed": "200000",
    }
    rendered("frr", build, tmp_path), rendered("linux", build, tmp_path)
    for name in ("frr", "linux"):
        assert (
            "link set swp1s1 mtu 9000\n" in (tmp_path / name / "leaf0" / "links.batch").read_text()
        )


PLATFORM = {
    "interfaces": {
        f"Ethernet{8 * cage}": {
            "index": ",".join([str(cage + 1)] * 8),
            "lanes": ",".join(str(100 - 8 * cage + lane) for lane in range(8)),
            "breakout_modes": {"1x400G[200G]": [""], "2x200G[100G]": ["", ""], "4x100G": [""] * 4},
        }
        for cage in range(6)
    }
}


def test_sonic_takes_names_and_lanes_from_the_platforms_file(tmp_path):
    (tmp_path / "platform.json").write_text(json.dumps(PLATFORM))
    build = compiled(tmp_path, extra="    platform: platform.json")
    tree = json.loads(rendered("sonic", build, tmp_path))
    assert tree["PORT"]["Ethernet4"]["lanes"] == "104,105,106,107"
    assert tree["BREAKOUT_CFG"] == {
        "Ethernet0": {"brkout_mode": "2x200G[100G]"},
        "Ethernet8": {"brkout_mode": "2x200G[100G]"},
    }
    rows = ["# name lanes alias index speed"]
    rows += [f"Ethernet{4 * port} {port}0,{port}1,{port}2,{port}3 e{port} 1 1" for port in range(4)]
    rows += [f"Ethernet{8 * port} {','.join([str(port)] * 8)} e 1 1" for port in range(2, 6)]
    (tmp_path / "port_config.ini").write_text("\n".join(rows) + "\n")
    build = compiled(tmp_path, extra="    platform: port_config.ini")
    tree = json.loads(rendered("sonic", build, tmp_path))
    assert tree["PORT"]["Ethernet4"]["lanes"] == "10,11,12,13"
    assert "BREAKOUT_CFG" not in tree


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"modes": {"1x400G": [""]}},
            "required a cage with a mode 2x200G, given Ethernet0 with 1x400G",
        ),
        ({"cages": 3}, "required a file with an entry for cage 4, given 3 entries"),
        ({"lanes": "1,2,3,4"}, "required ports of 4 lanes, given Ethernet0, which has 2"),
        ({"text": "{}"}, "required SONiC's platform.json or port_config.ini, with names and lanes"),
    ],
)
def test_a_platform_file_that_does_not_fit_is_refused(change, message, tmp_path):
    entries = {
        n: dict(e) for n, e in list(PLATFORM["interfaces"].items())[: change.get("cages", 9)]
    }
    entries["Ethernet0"]["lanes"] = change.get("lanes", entries["Ethernet0"]["lanes"])
    if "modes" in change:
        entries["Ethernet0"]["breakout_modes"] = change["modes"]
    text = change.get("text", json.dumps({"interfaces": entries}))
    (tmp_path / "platform.json").write_text(text)
    with pytest.raises(InputError) as error:
        loaded(tmp_path, extra="    platform: platform.json")
    assert "inventory.yaml:14: node_types.box.platform: " in str(error.value)
    assert message in str(error.value)


def test_the_library_names_its_ports_for_every_system():
    from inventory.library import library_names, library_type

    known = {t.interfaces.system for t in map(target, SHIPPED_SYSTEMS) if t.interfaces}
    for name in set(library_names()) - {"infiniband-40", "ovs"}:
        assert set(library_type(name).names) >= known
