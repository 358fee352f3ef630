"""Edits by hand of rendered files: each is a difference, at its file and line."""

from dataclasses import replace

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.readers.emitted import change, check, fabric, write
from tests.compilers.routed import agreed, routed

FABRIC = """
name: lab
topology: {family: polarfly, q: 2}
inventory: inventory.yaml
hosts_per_node: 2
base: {management: {length: 24, gateway: 192.0.2.254}, ntp: [192.0.2.250], syslog: [192.0.2.251]}
"""
INVENTORY = """
node_types:
  box:
    ports:
      - {name: "a{}", count: 2, breakout: 2, speed: 200, lanes: 4, mtu: 9000, fec: rs}
      - {name: "b{}", count: 4, speed: 400, lanes: 8, mtu: 9000, fec: rs}
    names:
      eos: "Ethernet{cage}/{lane}"
      junos: "et-0/0/{cage}:{lane}"
      linux: "swp{cage}s{lane}"
      nxos: "Ethernet1/{cage}/{lane}"
      sonic: "Ethernet{serdes}"
      srlinux: "ethernet-1/{cage}/{lane}"
nodes:
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A fabric with hosts, management and all that is known of ports, and its rendered files."""
    folder, done = tmp_path_factory.mktemp("lab"), {}
    nodes = [f"  - {{name: n{v}, type: box, management: 192.0.2.{v + 1}}}\n" for v in range(7)]
    (folder / "inventory.yaml").write_text(INVENTORY + "".join(nodes))
    (folder / "fabric.yaml").write_text(FABRIC)
    build = compile_fabric(load_fabric(folder / "fabric.yaml"))
    build = replace(build, identity="0" * 16)

    def rendered(name):
        if name not in done:
            done[name] = build, folder / name
            target(name).render(build, folder / name)
            report = target(name).check_emitted(build, folder / name)
            assert (report.differences, report.examples) == (0, ())
        return done[name]

    return rendered


END = "the end"
CLI = "ip access-group drop in", "shutdown", "service-policy input limit", "storm-control level 1"
EDITS = [
    *(("eos", "eos.cfg", "   no shutdown\n", f"   no shutdown\n   {text}\n") for text in CLI),
    ("eos", "eos.cfg", "ip routing\n", "ip routing\nno ip routing\n"),
    ("eos", "eos.cfg", END, "ip access-list drop\n   10 deny ip any any\n"),
    ("eos", "eos.cfg", END, "policy-map limit\n"),
    ("eos", "eos.cfg", "hostname n2", "hostname n3"),
    ("eos", "eos.cfg", "description n", "description x"),
    ("eos", "eos.cfg", "mtu 9000", "mtu 1500"),
    ("eos", "eos.cfg", "speed 200g-4", "speed 200g-2"),
    ("eos", "eos.cfg", "   speed 200g-4\n", ""),
    ("eos", "eos.cfg", "encoding reed-solomon", "encoding fire-code"),
    ("eos", "eos.cfg", "ip address 192.0.2.3/24", "ip address 192.0.2.4/24"),
    ("eos", "eos.cfg", "vrf instance MGMT\n", ""),
    ("eos", "eos.cfg", "   no shutdown\n", ""),
    ("eos", "eos.cfg", "   vrf MGMT\n", "   vrf MGMT\n   shutdown\n"),
    ("eos", "eos.cfg", "0.0.0.0/0 192.0.2.254", "0.0.0.0/0 192.0.2.253"),
    ("eos", "eos.cfg", "ntp server vrf MGMT 192.0.2.250", "ntp server vrf MGMT 192.0.2.249"),
    ("eos", "eos.cfg", "logging vrf MGMT", "logging vrf default"),
    ("eos", "avd.json", '"hostname": "n2"', '"hostname": "n3"'),
    ("eos", "avd.json", '"speed": "200g-4"', '"speed": "100g-2"'),
    (
        "eos",
        "avd.json",
        '"shutdown": false,',
        '"shutdown": false,\n      "access_group_in": "drop",',
    ),
    ("eos", "avd.json", '"ip_routing": true,', '"ip_routing": true,\n  "router_ospf": {},'),
    ("eos", "avd.json", '"name": "192.0.2.250"', '"name": "192.0.2.249"'),
    *(("nxos", "nxos.cfg", "  no shutdown\n", f"  no shutdown\n  {text}\n") for text in CLI),
    ("nxos", "nxos.cfg", END, "no ip routing\n"),
    ("nxos", "nxos.cfg", END, "control-plane\n  service-policy input drop\n"),
    ("nxos", "nxos.cfg", "hostname n2", "hostname n3"),
    ("nxos", "nxos.cfg", "description n", "description x"),
    ("nxos", "nxos.cfg", "mtu 9000", "mtu 1500"),
    ("nxos", "nxos.cfg", "fec rs-fec", "fec off"),
    ("nxos", "nxos.cfg", "map 200g-2x", "map 100g-4x"),
    ("nxos", "nxos.cfg", "ip address 192.0.2.3/24", "ip address 192.0.2.4/24"),
    ("nxos", "nxos.cfg", "ntp server 192.0.2.250", "ntp server 192.0.2.249"),
    ("junos", "junos.set", END, "set system processes routing disable\n"),
    ("junos", "junos.set", END, "set firewall family inet filter f term t then discard\n"),
    ("junos", "junos.set", END, "set interfaces et-0/0/1:0 unit 0 family inet filter input f\n"),
    ("junos", "junos.set", END, "set interfaces et-0/0/1:0 disable\n"),
    ("junos", "junos.set", END, "deactivate system host-name\n"),
    ("junos", "junos.set", END, "set vlans other vlan-id 3\n"),
    ("junos", "junos.set", END, "set interfaces irb unit 3 description hosts\n"),
    ("junos", "junos.set", "host-name n2", "host-name n3"),
    ("junos", "junos.set", 'description "n', 'description "x'),
    ("junos", "junos.set", "mtu 9014", "mtu 1514"),
    ("junos", "junos.set", "fec fec91", "fec none"),
    ("junos", "junos.set", "speed 200g", "speed 100g"),
    ("junos", "junos.set", "sub-ports 2", "sub-ports 4"),
    ("junos", "junos.set", "address 192.0.2.3/24", "address 192.0.2.4/24"),
    ("junos", "junos.set", "ntp server 192.0.2.250", "ntp server 192.0.2.249"),
    ("junos", "junos.set", "any notice", "any none"),
    *(
        ("sonic", "config_db.json", '  "PORT": {', f'  "{table}": {{"a": {{}}}},\n  "PORT": {{')
        for table in (
            "ACL_TABLE",
            "ACL_RULE",
            "PBH_RULE",
            "DSCP_TO_TC_MAP",
            "PORT_QOS_MAP",
            "QUEUE",
        )
    ),
    ("sonic", "config_db.json", '"eth0|192.0.2.3/24"', '"eth0|192.0.2.4/24"'),
    ("sonic", "config_db.json", '"gwaddr": "192.0.2.254"', '"gwaddr": "192.0.2.253"'),
    ("sonic", "config_db.json", '"hostname": "n2"', '"hostname": "n3"'),
    ("sonic", "config_db.json", '"type": "LeafRouter"', '"type": "ToRRouter"'),
    ("sonic", "config_db.json", '"speed": "200000"', '"speed": "100000"'),
    ("sonic", "config_db.json", '"fec": "rs"', '"fec": "none"'),
    ("sonic", "config_db.json", '"mtu": "9000"', '"mtu": "1500"'),
    ("sonic", "config_db.json", '"description": "n', '"description": "x'),
    ("sonic", "config_db.json", '"admin_status": "up"', '"admin_status": "up", "lanes": "1,2"'),
    ("sonic", "config_db.json", '"192.0.2.250"', '"192.0.2.249"'),
    ("sonic", "frr.conf", "hostname n2", "hostname n3"),
    ("sonic", "frr.conf", "end\n", "router bgp 65000\nend\n"),
    ("srlinux", "srlinux.json", '"host-name": "n2"', '"host-name": "n3"'),
    ("srlinux", "srlinux.json", '"admin-state": "enable"', '"admin-state": "disable"'),
    ("srlinux", "srlinux.json", '"rs-544"', '"rs-528"'),
    ("srlinux", "srlinux.json", '"mtu": 9014', '"mtu": 1514'),
    ("srlinux", "srlinux.json", '"ip-mtu": 9000', '"ip-mtu": 1500'),
    ("srlinux", "srlinux.json", '"200G"', '"100G"'),
    ("srlinux", "srlinux.json", '"description": "n', '"description": "x'),
    ("srlinux", "srlinux.json", '"192.0.2.3/24"', '"192.0.2.4/24"'),
    ("srlinux", "srlinux.json", '"ip-address": "192.0.2.254"', '"ip-address": "192.0.2.253"'),
    (
        "srlinux",
        "srlinux.json",
        '"srl_nokia-ntp:ntp": {\n      "admin-state": "enable",',
        '"srl_nokia-ntp:ntp": {',
    ),
    ("srlinux", "srlinux.json", '"address": "192.0.2.250"', '"address": "192.0.2.249"'),
    (
        "srlinux",
        "srlinux.json",
        '"srl_nokia-ntp:ntp": {',
        '"srl_nokia-aaa:aaa": {},\n    "srl_nokia-ntp:ntp": {',
    ),
    ("nvue", "startup.yaml", "hostname: n2", "hostname: n3"),
    ("nvue", "startup.yaml", "    system:\n", "    acl: {}\n    system:\n"),
    ("nvue", "startup.yaml", "mtu: 9000", "mtu: 1500"),
    ("nvue", "startup.yaml", "fec: rs", "fec: baser"),
    ("nvue", "startup.yaml", "speed: 200G", "speed: 100G"),
    ("nvue", "startup.yaml", "2x: {}", "4x: {}"),
    ("nvue", "startup.yaml", 'description: "n', 'description: "x'),
    ("nvue", "startup.yaml", '"192.0.2.3/24"', '"192.0.2.4/24"'),
    ("nvue", "startup.yaml", '"192.0.2.250"', '"192.0.2.249"'),
    ("nvue", "startup.yaml", "        link:\n", "        link:\n          state: down\n"),
    ("linux", "load.sh", "set -eu\n", "set -eu\nip link set eth1 down\n"),
    ("linux", "load.sh", "ip -batch", "ip -force -batch"),
    ("linux", "load.sh", END, "tc qdisc add dev eth1 root netem loss 50%\n"),
    ("linux", "polarfab.service", "ExecStart=/bin/sh /etc/polarfab/load.sh watch\n", ""),
    ("linux", "polarfab.service", "load.sh watch", "load.sh"),
    ("linux", "polarfab.service", "[Service]\n", "[Service]\nExecStartPre=/bin/false\n"),
    ("linux", "addresses.batch", "fe80::3/64", "fe80::3/65"),
    ("linux", "addresses.batch", "/32 dev lo", "/5 dev lo"),
    ("linux", "links.batch", "mtu 9000", "mtu 1500"),
    ("linux", "sysctl.conf", "send_redirects = 0", "send_redirects = 1"),
    ("frr", "load.sh", "set -eu\n", "set -eu\niptables -P FORWARD DROP\n"),
    ("frr", "polarfab.service", "RemainAfterExit=yes\n", ""),
    ("frr", "frr.conf", "hostname n2", "hostname n3"),
    ("frr", "frr.conf", "frr defaults datacenter", "frr defaults traditional"),
    ("frr", "frr.conf", "end\n", "ip forwarding\nend\n"),
]


@pytest.mark.parametrize(("name", "file", "old", "new"), EDITS)
def test_an_edit_is_a_difference_at_its_line(name, file, old, new, lab):
    build, folder = lab(name)
    path = folder / "n2" / file
    before = path.read_text()
    try:
        line = before.count("\n") + 1
        if old == END:
            path.write_text(before + new)
        else:
            line = change(path, old, new)
        report = target(name).check_emitted(build, folder, only={2})
    finally:
        path.write_text(before)
    at = {(example.file, example.line) for example in report.examples}
    # JSON: the entry that the value is in; a line that is gone: the one before or behind.
    near = 8 if file.endswith((".json", ".yaml")) else 6 if not new else 1
    assert any(f == str(path) and abs(n - line) <= near for f, n in at), (line, report.examples)


def test_what_is_missing_is_named_with_its_port_and_file(lab):
    build, folder = lab("eos")
    path = folder / "n2" / "eos.cfg"
    before = path.read_text()
    head, port, section = before.partition("interface Ethernet2/1\n")
    kept = section.replace("   mtu 9000\n", "", 1)
    try:
        path.write_text((head + port + kept).replace("\nip routing\n", "\n"))
        report = target("eos").check_emitted(build, folder, only={2})
    finally:
        path.write_text(before)
    told = {
        (each.line, each.says, each.tables) for each in report.examples if each.file == str(path)
    }
    assert any(tables == "mtu Ethernet2/1 9000" for _, _, tables in told), told
    assert any(line == 1 and says.endswith("no line ip routing") for line, says, _ in told), told


@pytest.mark.parametrize("name", ["eos", "sonic", "srlinux", "linux"])
def test_a_fabric_without_hosts_has_no_pairs(name, tmp_path):
    build = routed(q=2, hosts=0)
    write(name, build, tmp_path)
    report = check(name, build, tmp_path)
    assert (report.passed, report.pairs, report.examples) == (True, 0, ())


HOSTS = [
    ("load.sh", "set -eu\n", "set -eu\nip -6 route flush table main\n"),
    ("host-sysctl.conf", "hash_policy = 1", "hash_policy = 0"),
    ("host.batch", "protocol 80\n", "protocol 81\n"),
]


def test_an_edit_of_a_hosts_files_is_seen(tmp_path):
    build = fabric("minimal")
    write("srv6", build, tmp_path)
    edits = [(next((tmp_path / "hosts").glob("*")) / file, *texts) for file, *texts in HOSTS]
    edits += [(tmp_path / "2/srv6.conf", "segment-routing\n", "segment-routing\n pcep\n")]
    for path, old, new in edits:
        before = path.read_text()
        change(path, old, new)
        assert check("srv6", build, tmp_path).examples[0].file == str(path), (old, new)
        path.write_text(before)


def test_statements_of_ones_own_are_accepted_by_name_and_counted(tmp_path):
    build = fabric("minimal")
    own = tmp_path / "own" / "eos"
    own.mkdir(parents=True)
    (own / "base.j2").write_text("username admin role x\nsnmp-server location hall\n")
    target("eos").render(build, tmp_path / "out", tmp_path / "own")
    report = target("eos").check_emitted(build, tmp_path / "out")
    assert report.differences == 2 * report.switches
    accept = ("username ", "snmp-server location")
    report = target("eos").check_emitted(build, tmp_path / "out", accept=accept)
    assert (report.passed, report.accepted) == (True, 2 * report.switches)


BGP = {"routing": "bgp"}
SPOKEN = [
    ("eos", "avd.json", '  "hostname": "sw-2",\n', '  "hostname": "sw-2"\n'),
    ("frr", "frr.conf", "ip route 10.0.0.0/27 reject 254\n", ""),
    ("frr", "links.batch", "link set eth1 up\n", ""),
]


@pytest.mark.parametrize(("name", "file", "old", "new"), SPOKEN)
def test_an_edit_of_a_speaker_is_seen(name, file, old, new, tmp_path):
    build = fabric("minimal")
    write(name, agreed(build, BGP), tmp_path)
    path = tmp_path / "2" / file
    change(path, old, new)
    files = [example.file for example in check(name, agreed(build, BGP), tmp_path).examples]
    assert any(seen.startswith(str(tmp_path / "2")) for seen in files), files


def everything(file, text):
    """What may be given to --accept so that this difference is taken, and much more."""
    return (file, "no ", "interface ", "ip ", "set ", text.split()[0], text)


HIDDEN = [
    ("eos", "eos.cfg", "ip routing\n", ""),
    ("eos", "eos.cfg", "ip routing\n", "ip routing\nno ip routing\n"),
    ("eos", "eos.cfg", "   no shutdown\n", ""),
    ("eos", "eos.cfg", "   no shutdown\n", "   no shutdown\n   shutdown\n"),
    ("eos", "avd.json", '"prefix": "10.0.0.0/29"', '"prefix": "10.0.0.128/29"'),
    ("junos", "junos.set", "set system", "set interfaces et-0/0/1:0 disable\nset system"),
    ("sonic", "frr.conf", "ip route 10.0.0.0/29", "ip route 10.0.0.128/29"),
    ("frr", "frr.conf", "\n ipv6 address", "\n shutdown\n ipv6 address"),
    ("frr", "links.batch", " up\n", " down\n"),
    ("linux", "rules.batch", END, "rule add iif n1 blackhole pref 5\n"),
    ("ovs", "flows.txt", END, "table=0,priority=65535,actions=drop\n"),
]


@pytest.mark.parametrize(("name", "file", "old", "new"), HIDDEN)
def test_what_forwards_cannot_be_accepted(name, file, old, new, lab):
    build, folder = lab(name)
    path = folder / "n2" / file
    before = path.read_text()
    assert old == END or old in before
    path.write_text(before + new if old == END else before.replace(old, new, 1))
    try:
        accept = everything(file, new or old)
        report = target(name).check_emitted(build, folder, only={2}, accept=accept)
    finally:
        path.write_text(before)
    assert report.differences > 0


def test_nothing_is_no_statement_to_accept(lab):
    build, folder = lab("eos")
    with pytest.raises(InputError, match="accept: required how a statement"):
        target("eos").check_emitted(build, folder, accept=["ntp", " "])
