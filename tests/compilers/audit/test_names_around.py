"""Names go around: out of rendered text, into what devices print, and understood by the plan.

The forms are those of public test data: ntc-templates, Cisco's NX-API, Juniper's XML API, lldpd.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from compilers.audit.neighbour_file import read_facts
from compilers.audit.route_report import RouteReport
from compilers.audit.wiring_report import WiringReport
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.targets.target_lookup import target
from tests.compilers.audit.device_tables import PRINTERS, rendered, write
from tests.compilers.readers.emitted import fabric
from tests.compilers.readers.test_edits import FABRIC, INVENTORY

Ports = dict[str, str]
"""The description of each port by its name."""
Far = dict[str, tuple[str, str, str]]
"""By port: host name, port and description at the other end."""


def cli(file: str) -> Callable[[Path], tuple[str, Ports]]:
    def read(folder: Path) -> tuple[str, Ports]:
        text = (folder / file).read_text()
        ports = re.findall(r"^interface (\S+)\n +description (.*)", text, re.M)
        return re.search(r"^hostname (\S+)", text, re.M)[1], dict(ports)

    return read


def junos(folder: Path) -> tuple[str, Ports]:
    text = (folder / "junos.set").read_text()
    ports = re.findall(r'set interfaces (\S+) description "(.*)"', text)
    return re.search(r"host-name (\S+)", text)[1], dict(ports)


def srlinux(folder: Path) -> tuple[str, Ports]:
    tree = json.loads((folder / "srlinux.json").read_text())
    name = tree["srl_nokia-system:system"]["srl_nokia-system-name:name"]["host-name"]
    ports = tree["srl_nokia-interfaces:interface"]
    return name, {p["name"]: p["description"] for p in ports if "description" in p}


def sonic(folder: Path) -> tuple[str, Ports]:
    tree = json.loads((folder / "config_db.json").read_text())
    ports = {name: port["description"] for name, port in tree["PORT"].items()}
    return tree["DEVICE_METADATA"]["localhost"]["hostname"], ports


def nvue(folder: Path) -> tuple[str, Ports]:
    (tree,) = (part["set"] for part in yaml.safe_load((folder / "startup.yaml").read_text()))
    ports = tree["interface"].items()
    return tree["system"]["hostname"], {n: p["description"] for n, p in ports if "description" in p}


def linux(folder: Path) -> tuple[str, Ports]:
    text = (folder / "links.batch").read_text()
    ports = re.findall(r"link set (\S+) alias (\S+):(\S+)", text)
    return folder.name, {name: f"{far} {port}" for name, far, port in ports}


def eos_json(far: Far) -> str:
    rows = [
        {"port": near, "neighborDevice": f"{host}.dc1.example", "neighborPort": port, "ttl": 120}
        for near, (host, port, _) in far.items()
    ]
    return f"! sw\nsw-1#show lldp neighbors | json\n{json.dumps({'lldpNeighbors': rows})}\nsw-1#\n"


def nxos_text(far: Far) -> str:
    text = (
        "Capability codes:\n  (R) Router, (B) Bridge, (T) Telephone, (C) DOCSIS Cable Device\n"
        "  (W) WLAN Access Point, (P) Repeater, (S) Station, (O) Other\n"
        "Device ID            Local Intf      Hold-time  Capability  Port ID  \n"
    )
    for n, (near, (host, port, _)) in enumerate(far.items()):
        name = f"{host}.example.org" if n % 2 else host
        head = f"{name} \n{'':20}" if n % 2 else f"{name:20}"
        able = "BR" * (n % 3 > 0)
        text += f"{head} {near.replace('Ethernet', 'Eth'):15} 120        {able:11} {port}   \n"
    return f"{text}Total entries displayed: {len(far)}\n"


def nxos_json(far: Far) -> str:
    rows = [
        {
            "chassis_type": "7",
            "chassis_id": host,
            "l_port_id": near.replace("Ethernet", "Eth"),
            "hold_time": "120",
            "port_type": "5",
            "port_id": port,
            "mgmt_addr": "not advertised",
        }
        for near, (host, port, _) in far.items()
    ]
    return json.dumps({"neigh_hdr": "neigh_hdr", "TABLE_nbor": {"ROW_nbor": rows}})


def nxos_detail(far: Far) -> str:
    rows = [
        {
            "chassis_id": "00de.fb00.0001",
            "port_id": port,
            "l_port_id": near.replace("Ethernet", "Eth"),
            "port_desc": text,
            "sys_name": host,
            "sys_desc": "Cisco Nexus Operating System (NX-OS) Software",
        }
        for near, (host, port, text) in far.items()
    ]
    return json.dumps(
        {"TABLE_nbor_detail": {"ROW_nbor_detail": rows[0] if len(rows) < 2 else rows}}
    )


def junos_text(far: Far) -> str:
    text = "Local Interface    Parent Interface    Chassis Id          "
    text += "Port info          System Name\n"
    for near, (host, _, description) in far.items():
        text += f"{near:18} {'-':19} 2c:6b:f5:a1:c2:c0   {description:18} {host}\n"
    return text


def junos_json(far: Far) -> str:
    def values(**known: str) -> dict[str, list[dict[str, str]]]:
        return {f"lldp-{k.replace('_', '-')}": [{"data": text}] for k, text in known.items()}

    rows = [
        values(
            local_port_id=near,
            local_parent_interface_name="-",
            remote_chassis_id="2c:6b:f5:a1:c2:c0",
            remote_port_description=text if n % 2 else port,
            remote_system_name=host,
        )
        for n, (near, (host, port, text)) in enumerate(far.items())
    ]
    whole = {"lldp-neighbors-information": [{"lldp-neighbor-information": rows}]}
    command = "user@sw> show lldp neighbors | display json"
    return f"{command}\n{json.dumps(whole)}\n\n{{master:0}}\nuser@sw>\n"


def srlinux_text(far: Far) -> str:
    text = "| Name | Neighbor | Neighbor System Name | Neighbor Chassis ID | Neighbor Port |\n"
    for near, (host, port, _) in far.items():
        text += f"| {near} | 1A:7F:00:FF:00:00 | {host} | 1A:7F:00:FF:00:00 | {port} |\n"
    return text


def sonic_table(far: Far) -> str:
    """lldpmgrd sends the alias as the port's name, and the description."""
    rows = [("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr")]
    rows += [
        (near, host, f"etp{re.sub('[^0-9]', '', port)}a", "BR", text)
        for near, (host, port, text) in far.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "Capability codes: (R) Router, (B) Bridge, (O) Other\n" + "\n".join(lines) + "\n"


def lldpctl(end: Callable[[str, str], tuple[str, str, str]]) -> Callable[[Far], str]:
    """end: of a port's name and description, the type and text of its identifier, and a text."""

    def form(far: Far) -> str:
        rows = []
        for near, (host, port, text) in far.items():
            kind, value, description = end(port, text)
            chassis = {host: {"id": {"type": "mac", "value": "02:00:00:00:00:01"}}}
            there = {"id": {"type": kind, "value": value}, "descr": description}
            rows.append({near: {"via": "LLDP", "chassis": chassis, "port": there}})
        return json.dumps({"lldp": {"interface": rows}})

    return form


MAC = "02:00:00:00:00:01"
FORMS = {
    "eos": (cli("eos.cfg"), eos_json),
    "nxos": (cli("nxos.cfg"), nxos_text),
    "nxos json": (cli("nxos.cfg"), nxos_json),
    "nxos detail": (cli("nxos.cfg"), nxos_detail),
    "junos": (junos, junos_text),
    "junos json": (junos, junos_json),
    "srlinux": (srlinux, srlinux_text),
    "sonic": (sonic, sonic_table),
    "sonic lldpctl": (sonic, lldpctl(lambda _, text: ("local", "etp1a", text))),
    "nvue": (nvue, lldpctl(lambda port, text: ("ifname", port, text))),
    "frr": (cli("frr.conf"), lldpctl(lambda port, _: ("mac", MAC, port))),
    "linux": (linux, lldpctl(lambda _, text: ("mac", MAC, text.replace(" ", ":")))),
}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Build]:
    """A fabric without an inventory, and one whose cages and lanes have names in each system."""
    folder = tmp_path_factory.mktemp("names")
    nodes = [f"  - {{name: leaf_{v}, type: box}}\n" for v in range(7)]
    (folder / "inventory.yaml").write_text(INVENTORY + "".join(nodes))
    (folder / "fabric.yaml").write_text(re.sub("base: .*", "", FABRIC))
    return {
        "no inventory": replace(fabric("minimal"), inputs={}),
        "cages": compile_fabric(load_fabric(folder / "fabric.yaml")),
    }


def cabled(said: dict[str, tuple[str, Ports]]) -> Iterator[tuple[tuple[str, str], ...]]:
    """Each cable as two ends, host name and port, by the descriptions."""
    hosts = {host for host, _ in said.values()}
    for host, ports in said.values():
        for port, text in ports.items():
            far, _, far_port = text.partition(" ")
            if far in hosts and (host, port) < (far, far_port):
                yield (host, port), (far, far_port)


def told(form, said, cables, folder: Path) -> None:
    """The tables of all devices in a folder."""
    names = {host: node for node, (host, _) in said.items()}
    far: dict[str, Far] = {node: {} for node in said}
    for pair in cables:
        for (host, port), (other, there) in (pair, pair[::-1]):
            node = names[other]
            far[names[host]][port] = other, there, said[node][1][there]
    folder.mkdir()
    for node, rows in far.items():
        (folder / f"{node}.out").write_text(form(rows))


@pytest.mark.parametrize("which", ["no inventory", "cages"])
@pytest.mark.parametrize("name", FORMS)
def test_a_cabled_fabric_is_all_right_and_a_swapped_cable_is_named(name, which, builds, tmp_path):
    read, form = FORMS[name]
    build, system = builds[which], name.split()[0]
    target(system).render(build, tmp_path / "out")
    said = {folder.name: read(folder) for folder in (tmp_path / "out").iterdir()}
    cables = sorted(cabled(said))
    assert len(cables) == 9
    told(form, said, cables, tmp_path / "right")
    report = WiringReport.of([build], [tmp_path / "right"])
    assert (len(report.audit.right), report.audit.planned) == (9, 9)
    assert report.good
    assert not report.audit.wired.strangers
    other = next(c for c in cables[1:] if not {c[0][0], c[1][0]} & {h for h, _ in cables[0]})
    (one, two), (three, four) = cables[0], other
    kept = [cable for cable in cables if cable not in (cables[0], other)]
    told(form, said, [*kept, (one, four), (three, two)], tmp_path / "swapped")
    found = WiringReport.of([build], [tmp_path / "swapped"])
    assert (len(found.audit.right), len(found.audit.misplaced)) == (7, 2)
    nodes = {host: node for node, (host, _) in said.items()}
    ends = {found.sockets.node(end) for pair in found.audit.misplaced for end in pair}
    assert ends == {nodes[host] for host, _ in (one, two, three, four)}
    (move,) = found.as_dict()["moves"]
    assert move["kind"] == "swap"


def test_the_public_samples_are_read(tmp_path: Path) -> None:
    """Names with a line of their own, a row without a capability, a name with blanks."""
    rows = (
        "Device ID            Local Intf      Hold-time  Capability  Port ID  \n"
        "dcx3.org.local\n"
        "                     mgmt0           120        B            Gi1/0/37      \n"
        "r2-services          Eth1/1          120        BR           Eth1/1        \n"
        "fw1-clinical-partner \n"
        "                     Eth1/5          120                     ethernet1/9   \n"
        "Total entries displayed: 3\n"
    )
    (tmp_path / "n1.txt").write_text(rows)
    assert [(s.near.ports, *s.far) for s in read_facts([tmp_path]).seen] == [
        (("mgmt0",), ("dcx3.org.local",), ("Gi1/0/37",)),
        (("Eth1/1",), ("r2-services",), ("Eth1/1",)),
        (("Eth1/5",), ("fw1-clinical-partner",), ("ethernet1/9",)),
    ]


ROUTED = ("eos", "nxos", "junos", "srlinux", "sonic", "frr")


@pytest.mark.parametrize(
    ("name", "which"), [*zip(ROUTED, ("no inventory", "cages") * 3, strict=True)]
)
def test_tables_by_host_name_are_all_right_and_another_port_is_named(name, which, builds, tmp_path):
    """A file has the name that its device says, with a domain; ports are the system's."""
    read, build = FORMS[name][0], builds[which]
    target(name).render(build, tmp_path / "out")
    for folder in (tmp_path / "out").iterdir():
        host = f"{read(folder)[0]}.dc1.example"
        write(tmp_path / "tables" / f"{host}.json", PRINTERS[name](rendered(name, folder)))
    assert RouteReport.of(build, [tmp_path / "tables"], target_name=name).good
    node, folder = build.wiring.names[3], tmp_path / "out" / build.wiring.names[3]
    routes = rendered(name, folder)
    there = [choices for choices in routes.values() if choices[0][0][1]]
    one = there[0]
    other = next(c for c in there if c[0][0][1] != one[0][0][1])
    one[0][0] = (one[0][0][0], other[0][0][1], 1)
    host = f"{read(folder)[0]}.dc1.example"
    write(tmp_path / "tables" / f"{host}.json", PRINTERS[name](routes))
    found = RouteReport.of(build, [tmp_path / "tables"], target_name=name)
    assert {difference.switch for difference in found.differences} == {node}


def test_the_alias_of_sonic_is_a_name_of_its_port(tmp_path: Path) -> None:
    """lldpmgrd sends the alias of port_config.ini; descriptions say nothing here."""
    ini = "# name lanes alias index speed\n" + "".join(
        f"Ethernet{4 * n} {','.join(str(4 * n + k + 1) for k in range(4))} hundredGigE{n + 1} {n}\n"
        for n in range(8)
    )
    (tmp_path / "port_config.ini").write_text(ini)
    nodes = "".join(f"  - {{name: leaf{v}, type: box}}\n" for v in range(7))
    types = "node_types: {box: {platform: port_config.ini, ports: [{name: 'p{}', count: 8}]}}\n"
    (tmp_path / "inventory.yaml").write_text(f"{types}nodes:\n{nodes}")
    spec = "name: lab\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\n"
    (tmp_path / "fabric.yaml").write_text(spec)
    build = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    target("sonic").render(build, tmp_path / "out")
    said = {folder.name: sonic(folder) for folder in (tmp_path / "out").iterdir()}

    def aliased(port: str, _: str) -> tuple[str, str, str]:
        return "local", f"hundredGigE{int(port.removeprefix('Ethernet')) // 4 + 1}", ""

    told(lldpctl(aliased), said, sorted(cabled(said)), tmp_path / "right")
    report = WiringReport.of([build], [tmp_path / "right"])
    assert (len(report.audit.right), report.good) == (9, True)


SHORT: Far = {
    "Ethernet1/1": ("sw-1", "Ethernet1/3", "uplink"),
    "Ethernet1/2": ("leaf-2", "Ethernet1/1", "downlink"),
}


def seen(text: str, folder: Path) -> set[tuple[str, str, str]]:
    """Local port, neighbour, its port: as `check wiring` reads a table."""
    (folder / "n1.txt").write_text(text)
    return {(s.near.ports[0], s.far.nodes[0], s.far.ports[0]) for s in read_facts([folder]).seen}


@pytest.mark.parametrize(("system", "form"), [("cisco_nxos", nxos_text), ("juniper_junos", None)])
def test_ntc_templates_read_the_same_in_our_tables(system, form, tmp_path):
    """Its templates are tried on outputs of devices; of NX-OS only the first row is one line."""
    from ntc_templates.parse import parse_output

    far = dict(list(SHORT.items())[:1]) if form else SHORT
    plain = {near: (host, port, port) for near, (host, port, _) in far.items()}
    text = (form or junos_text)(plain)
    rows = parse_output(platform=system, command="show lldp neighbors", data=text)
    read = {(r["local_interface"], r["neighbor_name"], r["neighbor_interface"]) for r in rows}
    assert len(rows) == len(far)
    assert read == seen(text, tmp_path)


def test_the_driver_of_napalm_reads_the_same_in_our_table(tmp_path: Path) -> None:
    from napalm import get_network_driver

    text = eos_json(SHORT)
    table = json.loads(text[text.index("{") : text.rindex("}") + 1])
    driver = get_network_driver("eos")("192.0.2.1", "", "")
    driver.device = SimpleNamespace(run_commands=lambda *_, **__: [table])
    read = {
        (near, one["hostname"], one["port"])
        for near, rows in driver.get_lldp_neighbors().items()
        for one in rows
    }
    assert read == seen(text, tmp_path)
