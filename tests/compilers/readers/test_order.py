"""Order, nesting and names: what a device reads from its files, line by line, from the first."""

import json
import re
from dataclasses import replace

import pytest

from tests.compilers.readers.emitted import IDENTITY, check, check_switch, fabric, write
from tests.compilers.routed import agreed
from tests.compilers.routing.makers import HYPERX, compiled

OPENSM = {"guids": "made-up"}
CASES = {
    "sonic": ("spread", "2/frr.conf", {}),
    "nxos": ("spread, two hosts", "2/nxos.cfg", {}),
    "eos": ("spread, two hosts", "2/eos.cfg", {}),
    "linux": ("spread, repaired", "2/routes.batch", {}),
    "frr": ("spread, repaired", "2/frr.conf", {}),
    "avd": ("spread, two hosts", "2/avd.json", {}),
    "junos": ("spread, two hosts", "2/junos.set", {}),
    "srlinux": ("two hosts", "2/srlinux.json", {}),
    "srv6": ("minimal", "2/srv6.conf", {}),
    "opensm": ("two hosts", "opensm.conf", OPENSM),
    "subnet": ("two hosts", "fabric.net", OPENSM),
    "policy": ("two hosts", "qos-policy.conf", OPENSM),
    "links": ("spread, repaired", "2/links.batch", {}),
    "addresses": ("spread, repaired", "2/addresses.batch", {}),
    "rules": ("spread, repaired", "2/rules.batch", {}),
    "bridges": ("spread, repaired", "2/links.batch", {}),
    "config": ("spread, two hosts", "2/config_db.json", {}),
    "nvue": ("two hosts", "2/startup.yaml", {}),
    "segments": ("minimal", "2/srv6.batch", {}),
    "ovs": ("spread, repaired", "2/groups.txt", {}),
}
TARGETS = dict.fromkeys(("subnet", "policy"), "opensm")
TARGETS |= dict.fromkeys(("links", "addresses", "rules"), "linux")
TARGETS |= {"avd": "eos", "bridges": "frr", "config": "sonic", "segments": "srv6"}
"""Of the cases that have another name."""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder, done = tmp_path_factory.mktemp("order"), set()

    def of(name):
        case, file, options = CASES[name]
        target = TARGETS.get(name, name)
        place = folder / f"{target}, {case}"
        if place not in done:
            write(target, fabric(case), place, options)
            done.add(place)
        return target, fabric(case), place, file, options

    return of


def moved(text, some, behind=None):
    """The lines that fit one pattern, put behind the last that fits another; None: the end."""
    lines = text.splitlines(keepends=True)
    taken = [line for line in lines if re.match(some, line)]
    kept = [line for line in lines if not re.match(some, line)]
    assert taken
    at = len(kept)
    if behind is not None:
        at = max(n for n, line in enumerate(kept, 1) if re.match(behind, line))
    return "".join([*kept[:at], *taken, *kept[at:]])


def swapped(text, first, second):
    """The first line that fits one pattern in the place of the first that fits another."""
    lines = text.splitlines(keepends=True)
    one, two = (next(n for n, t in enumerate(lines) if re.match(p, t)) for p in (first, second))
    lines[one], lines[two] = lines[two], lines[one]
    return "".join(lines)


def by_name(tree):
    """SR Linux's routes as a mapping, by their prefixes."""
    routes = tree["srl_nokia-network-instance:network-instance"][0][
        "srl_nokia-static-routes:static-routes"
    ]
    routes["route"] = {route.pop("prefix"): route for route in routes["route"]}
    return tree


def behind(text, some, added):
    """A text with lines behind the first line that fits a pattern."""
    lines = text.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines, 1) if re.match(some, line))
    return "".join([*lines[:at], added, *lines[at:]])


def late(text, word):
    """A text with a word of an interface behind its addresses."""
    changed = re.sub(rf"( +{word}.*\n)((?: +ip(?:v6)? address .*\n)+)", r"\2\1", text)
    assert changed != text
    return changed


CHANGES = {
    # The routes of the VRF are then of the default one, and real FRR has none in it.
    ("sonic", "exit-vrf early"): lambda t: moved(t, "exit-vrf", "vrf Vrf-hosts"),
    ("sonic", "no exit-vrf"): lambda t: moved(t, "ip route 10.0.0.0/30", "vrf Vrf-hosts"),
    ("sonic", "a route and the VRF"): lambda t: swapped(t, "ip route 10.0.0.0/30 ", "vrf Vrf"),
    ("sonic", "two lines"): lambda t: swapped(t, "ip route 10.0.0.0/26", " ip route 10.0.0.4/30"),
    ("sonic", "end early"): lambda t: swapped(t, "end", "vrf Vrf"),
    ("nxos", "routes above their VRF"): lambda t: moved(t, "vrf context", "  ip route 10"),
    ("nxos", "hostname inside"): lambda t: moved(t, "hostname", "  ip route 10.0.0.56/29"),
    ("nxos", "a route in the VRF"): lambda t: swapped(t, "ip route 10.0.0.0/29", "  ipv6 route"),
    ("nxos", "routed late"): lambda t: late(t, "no switchport"),
    ("nxos", "VLAN last"): lambda t: moved(t, "vlan |  name hosts"),
    ("nxos", "feature last"): lambda t: moved(t, "feature interface-vlan"),
    ("nxos", "VRF behind addresses"): lambda t: late(t, "vrf member"),
    ("eos", "VRF last"): lambda t: moved(t, "vrf instance hosts"),
    ("eos", "never routed"): lambda t: re.sub("   no switchport\n", "", t, count=1),
    ("eos", "hostname inside"): lambda t: moved(t, "hostname", "   mtu|   switchport mode"),
    ("linux", "nexthops last"): lambda t: moved(t, "nexthop"),
    ("linux", "groups first"): lambda t: swapped(t, "nexthop .* via", "nexthop .* group"),
    ("linux", "a link last"): lambda t: moved(t, "nexthop replace id 500002 via"),
    ("frr", "an address elsewhere"): lambda t: moved(t, " ipv6 address fe80", "interface hosts"),
    ("frr", "exit first"): lambda t: moved(t, "exit", "interface lo"),
    ("junos", "a stray access mode"): lambda t: t + ACCESS,
    ("srlinux", "a name"): lambda t: t.replace("srl_nokia-interfaces:bridged", INTERFAC, 1),
    ("srlinux", "a type"): lambda t: t.replace("srl_nokia-network-instance:mac-vrf", "mac-vrf:", 1),
    ("opensm", "one lane"): lambda t: re.sub("low .*", "low 0:64\nmax_op_vls 1", t),
    ("opensm", "arbitration of one lane"): lambda t: re.sub("low .*", "low 0:64", t),
    ("opensm", "no arbitration"): lambda t: re.sub("qos_vlarb.*\n", "", t),
    ("opensm", "one lane at hosts"): lambda t: re.sub("qos_vlarb.*\n", "", t) + "qos_ca_max_vls 1",
    ("opensm", "other levels at hosts"): lambda t: t + "qos_ca_sl2vl 0,0\n",
    ("opensm", "any other setting"): lambda t: t + "force_heavy_sweep TRUE\n",
    ("subnet", "a GUID of a host"): lambda t: re.sub("caguid=0x02", "caguid=0x03", t, count=1),
    ("subnet", "of a switch"): lambda t: re.sub(r"(switchguid=0x)02", r"\g<1>03", t, count=1),
    ("subnet", "of its port 0"): lambda t: re.sub(r"(switchguid=.*\()2", r"\g<1>3", t, count=1),
    ("subnet", "of a system"): lambda t: re.sub("sysimgguid=0x02", "sysimgguid=0x03", t, count=1),
    ("subnet", "ports of a switch"): lambda t: re.sub("Switch\t5", "Switch\t2", t, count=1),
    ("subnet", "ports of a host"): lambda t: re.sub("Ca\t1", "Ca\t2", t, count=1),
    ("subnet", "GUIDs last"): lambda t: moved(t, "switchguid"),
    # OpenSM takes no policy without it: "ERR AC10: Default qos-level (default) not defined".
    ("policy", "no default"): lambda t: t.replace("DEFAULT", "lane0"),
    ("policy", "another default"): lambda t: t.replace("sl: 0", "sl: 1"),
    ("policy", "no such level"): lambda t: t.replace("sl: 1", "sl: 999"),
    ("frr", "a table"): lambda t: t.replace("end\n", f"{NOWHERE}\nend\n"),
    ("linux", "a table"): lambda t: t + LOST,
    # Numbers that the system does not take, or takes for others.
    ("nxos", "a reserved VLAN"): lambda t: re.sub("(?i)(vlan ?)2\\b", r"\g<1>4090", t),
    ("eos", "no VLAN"): lambda t: re.sub("(?i)(vlan ?)2\\b", r"\g<1>4095", t),
    ("nvue", "no VLAN"): lambda t: re.sub('(vlan|access: |vlan: |")2(?=[":\n])', r"\g<1>5000", t),
    ("junos", "no VLAN"): lambda t: re.sub(r"(irb\.|irb unit |vlan-id )2\b", r"\g<1>5000", t),
    ("srlinux", "no index"): lambda t: re.sub('(irb0.|"index": )2\\b', r"\g<1>10000", t),
    ("srlinux", "a key"): lambda t: t.replace('"ip-prefix"', '"prefix"', 1),
    ("srlinux", "the key of a number"): lambda t: t.replace('"index": 0', '"address": 0', 1),
    ("srlinux", "a route twice"): lambda t: re.sub(
        r'( +\{[^{}]+"prefix": "10\.0\.0\.8/29"\s+\},)', r"\1\1", t, count=1
    ),
    ("srlinux", "routes by name"): lambda t: json.dumps(by_name(json.loads(t))),
    ("srlinux", "a line end"): lambda t: t.replace('"nowhere"', '"nowhere\\n"', 1),
    ("config", "a line end"): lambda t: t.replace(
        "default|10.0.0.8/29", "default|10.0.0.8/29\\n", 1
    ),
    ("avd", "a list"): lambda t: re.sub('("ip_address": )("[^"]+")', r"\1[\2]", t, count=1),
    ("avd", "no list"): lambda t: re.sub(r'\[\s*("fd64:[^"]+")\s*\]', r"\1", t, count=1),
    ("nvue", "no set"): lambda t: t.replace("- set:\n", ""),
    ("srlinux", "a text"): lambda t: t.replace('"index": 0', '"index": "0"', 1),
    ("linux", "metric 0 is 1024"): lambda t: re.sub("(fd00::.*metric) 1 ", r"\1 0 ", t, count=1),
    ("linux", "a metric of 33 bits"): lambda t: t.replace("metric 3 ", "metric 4294967299 ", 1),
    ("linux", "an id of 33 bits"): lambda t: t.replace("500001", "4294967297"),
    ("linux", "id 0"): lambda t: re.sub(r"\b500001\b", "0", t),
    ("linux", "octal"): lambda t: t.replace("metric 3 ", "metric 03 ", 1),
    ("linux", "an octal table"): lambda t: t.replace("table 5000", "table 05000"),
    ("rules", "an octal table"): lambda t: t.replace("lookup 5000", "lookup 05000"),
    ("frr", "a route to nowhere"): lambda t: t.replace("end\n", "ip route \nend\n"),
    ("linux", "a route to nowhere"): lambda t: t + "route replace  nhid 500001\n",
    ("nxos", "a route to nowhere"): lambda t: t + "ip route \n",
    ("frr", "weights"): lambda t: t.replace("table 5000", "table 5000 weight 70000"),
    ("ovs", "weights"): lambda t: t.replace("weight:1,", "weight:70000,"),
    # Others' addresses, and interfaces that are not there.
    ("nxos", "an address"): lambda t: t + "interface loopback0\n  ip address 10.0.0.1/32\n",
    ("config", "an address"): lambda t: t.replace('"PORT": {', f'{LOOPBACK},\n  "PORT": {{', 1),
    ("config", "a VLAN without ports"): lambda t: t.replace(*VLAN, 1).replace(*VLAN_ADDRESS, 1),
    ("config", "a routed port of a VLAN"): lambda t: re.sub(*ROUTED_TOO, t),
    ("nvue", "an address"): lambda t: t.replace("      swp1:\n", LO, 1),
    ("addresses", "the neighbour's"): lambda t: t + "address replace fe80::4/64 dev eth1 nodad\n",
    ("links", "no such port"): lambda t: t + "link set eth9 up\n",
    ("rules", "no such port"): lambda t: t + t.splitlines()[-1].replace("eth4", "eth9") + "\n",
    ("links", "another bridge"): lambda t: t + "link set eth5 master other up\n",
    ("bridges", "another"): lambda t: t + "link add other type bridge\n",
    ("bridges", "again"): lambda t: t + "link add hosts type bridge\n",
    ("junos", "an interface"): lambda t: t + OTHER_VLAN,
    # The first table of a group is its primary one.
    ("junos", "the primary table"): lambda t: swapped(t, ".*import-rib inet.0", ".*import-rib pol"),
    ("srlinux", "IPv4 by IPv6"): lambda t: re.sub(
        '(next-hop-group": ".*)ipv4', r"\1ipv6", t, count=1
    ),
    ("segments", "the block"): lambda t: t + VIA.format("fc00::/32"),
    ("segments", "all"): lambda t: t + VIA.format("::/0"),
}
FELT_ELSEWHERE = {"an address elsewhere"}
"""What the neighbours' next hops tell."""
ACCESS = "set interfaces et-0/0/0 unit 0 family ethernet-switching interface-mode access\n"
INTERFAC = "srl_nokia-interfac0s:bridged"
NOWHERE = "ip route 10.0.0.0/25 reject 254 table 4999"
LOOPBACK = '"LOOPBACK_INTERFACE": {"Loopback0": {}, "Loopback0|10.0.0.1/32": {}}'
ROUTED_TOO = r'(?s)("INTERFACE": \{)(.*"Vlan2\|(Ethernet\d+)")', r'\1"\3": {},\2'
VLAN = '"VLAN": {', '"VLAN": {"Vlan3": {"vlanid": "3"},'
VLAN_ADDRESS = '"VLAN_INTERFACE": {', '"VLAN_INTERFACE": {"Vlan3": {}, "Vlan3|10.0.0.1/29": {},'
LO = """      lo:
        type: loopback
        ip:
          address:
            "10.0.0.1/32": {}
      swp1:
"""
OTHER_VLAN = "set vlans other vlan-id 3\nset vlans other l3-interface irb.3\n"
VIA = "route replace {} via fe80::4 dev eth1 protocol 80\n"
LOST = "route replace unreachable 10.0.0.0/25 metric 4000000000 table 4999 protocol 80\n"


@pytest.mark.parametrize(("name", "what"), CHANGES)
def test_a_change_of_order_nesting_or_name_is_a_difference(name, what, written):
    target, build, folder, file, options = written(name)
    path = folder / file
    before = path.read_text()
    after = CHANGES[name, what](before)
    assert after != before
    path.write_text(after)
    try:
        report = check_switch(target, build, folder, 2, options)
    finally:
        path.write_text(before)
    assert report.differences
    near = folder if what in FELT_ELSEWHERE else path
    assert any(example.file.startswith(str(near)) for example in report.examples)


TAKEN = {
    # cEOS keeps the address, and says that it is of no use until the port is a routed one.
    ("eos", "routed late"): lambda t: late(t, "no switchport"),
    # staticd asks for the SIDs of a locator once zebra has it.
    ("srv6", "SIDs first"): lambda t: re.sub(
        r"(  locators(?s:.*?)\n  exit\n)(  static(?s:.*?)\n  exit\n)", r"\2\1", t
    ),
}


@pytest.mark.parametrize(("name", "what"), TAKEN)
def test_an_order_that_the_system_takes_is_no_difference(name, what, written):
    target, build, folder, file, options = written(name)
    path = folder / file
    before = path.read_text()
    after = TAKEN[name, what](before)
    assert after != before
    path.write_text(after)
    try:
        assert not check(target, build, folder, options).differences
    finally:
        path.write_text(before)


def test_a_port_that_is_not_there_in_a_group_of_ecmp(tmp_path):
    build = replace(compiled(HYPERX), identity=IDENTITY)
    write("ovs", build, tmp_path)
    path = tmp_path / build.wiring.names[0] / "groups.txt"
    text = path.read_text()
    path.write_text(re.sub(r"(type=indirect,bucket=actions=.*output:)\d+", r"\g<1>99", text))
    assert path.read_text() != text
    report = check("ovs", build, tmp_path)
    assert str(path.parent) in report.examples[0].file
    assert report.delivered < report.pairs


NO_PACKETS = {
    "nxos": ("nxos.cfg", "vrf context hosts\n  ip route 10.0.0.0/27 Null0 254\n{}"),
    "eos": ("eos.cfg", "vrf instance hosts\n{}"),
    "sonic": ("frr.conf", "vrf Vrf-hosts\n ip route 10.0.0.0/27 blackhole 254 tag 2\n{}exit-vrf\n"),
    "junos": ("junos.set", "{}"),
}
ROUTE = {
    "nxos": "  ip route 10.0.0.12/30 Ethernet1/1 100.64.0.1 vrf default\n",
    "eos": "ip route vrf hosts 10.0.0.12/30 egress-vrf default Ethernet1 100.64.0.1\n",
    "sonic": " ip route 10.0.0.12/30 100.64.0.1 Ethernet0 nexthop-vrf default tag 2\n",
    "junos": "set routing-instances polarfab routing-options static route 10.0.0.12/30"
    " next-hop 100.64.0.1\n",
}


@pytest.mark.parametrize("name", NO_PACKETS)
def test_routes_that_nothing_looks_up_are_differences(name, tmp_path):
    build = fabric("minimal")
    write(name, build, tmp_path)
    file, section = NO_PACKETS[name]
    path = tmp_path / "0" / file
    text = path.read_text()
    at = text.rindex("end\n") if name == "sonic" else len(text)
    path.write_text(text[:at] + section.format(ROUTE[name]) + text[at:])
    assert str(path) in [example.file for example in check(name, build, tmp_path).examples]


BGP = {"routing": "bgp", "bfd": "on"}
SPOKEN = {
    ("frr", "frr.conf"): [
        (" neighbor fabric peer-group\n neighbor fabric capability extended-nexthop\n", 1),
        (" neighbor eth1 interface v6only remote-as [0-9]+\n neighbor eth1 peer-group fabric\n", 1),
    ],
    ("sonic", "frr.conf"): [
        (" neighbor fabric-ipv4 peer-group\n neighbor fabric-ipv4 timers 3 9\n", 1),
        (" neighbor 100[^ ]+ remote-as [0-9]+\n neighbor 100[^ ]+ peer-group fabric-ipv4\n", 1),
        (" exit-address-family\n !\n address-family ipv6 unicast\n", 2),
    ],
    ("eos", "eos.cfg"): [
        ("   neighbor fabric-ipv4 peer group\n   neighbor fabric-ipv4 bfd\n", 1),
        ("router bgp [0-9]+\n   router-id [^ \n]+\n", 1),
    ],
    ("nxos", "nxos.cfg"): [
        ("feature bgp\n(?:.*\n)*router bgp [0-9]+\n", 1),
        ("  template peer fabric-ipv4\n    bfd\n", 1),
    ],
}


@pytest.mark.parametrize(("name", "file"), SPOKEN)
def test_an_order_of_bgp_that_the_system_does_not_take(name, file, tmp_path):
    """FRR: "Specify remote-as or peer-group commands first"."""
    build = fabric("minimal")
    write(name, agreed(build, BGP), tmp_path)
    path = tmp_path / "2" / file
    before = path.read_text()
    for pattern, first in SPOKEN[name, file]:
        (text,) = re.findall(pattern, before)[:1]
        lines = text.splitlines(keepends=True)
        path.write_text(before.replace(text, "".join([*lines[first:], *lines[:first]]), 1))
        report = check(name, agreed(build, BGP), tmp_path)
        assert str(path) in [example.file for example in report.examples], text
    path.write_text(before.replace("set metric 1\n", "set metric 4294967296\n", 1))
    report = check(name, agreed(build, BGP), tmp_path)
    assert str(path) in [example.file for example in report.examples]
    path.write_text(re.sub(r"router-id [0-9]+", "router-id k", before))
    assert check(name, agreed(build, BGP), tmp_path).differences
