"""Lines beside the routes that change where packets go, or whether they go at all."""

import json
import re

import pytest

from tests.compilers.readers.emitted import change, check, check_switch, fabric, write
from tests.compilers.targets.test_port_names import compiled

SRL = "srl_nokia-"
ADDED = {
    ("eos", "eos.cfg"): [
        "interface Management1\n   vrf default\n   ip address 192.0.2.5/24\n"
        "ip route vrf default 10.0.0.12/30 Null0\n",
        "interface Management1\n   ip address 10.0.0.16/28\n",
        "traffic-policies\n   traffic-policy all\n",
        "maintenance\n   unit System\n      quiesce\n",
        "vlan 7\n   state suspend\n",
    ],
    ("nxos", "nxos.cfg"): [
        "interface mgmt0\n  vrf member default\n  ip address 10.0.0.16/29\n",
        "interface mgmt0\n  ip address 10.0.0.16/29\n",
        "system mode maintenance\n",
        "system qos\n  service-policy type qos input mark\n",
        "vlan 7\n  shutdown\n",
    ],
    ("junos", "junos.set"): [
        "set interfaces fxp0 unit 0 family inet address 10.0.0.16/28\n",
        "set groups g interfaces et-0/0/0 disable\nset apply-groups g\n",
        "set class-of-service interfaces et-0/0/0 unit 0 rewrite-rules dscp d\n",
        "set security forwarding-options family inet6 mode drop\n",
        "set routing-options static route 10.0.0.12/31 discard\n"
        "set routing-options static route 10.0.0.12/31 preference 254\n",
    ],
    ("linux", "sysctl.conf"): [
        "net/ipv4/conf/eth1/rp_filter = 1\n",
        "net/ipv4/conf/eth1/forwarding = 0\n",
        "net/ipv6/conf/eth1/disable_ipv6 = 1\n",
    ],
    ("linux", "routes.batch"): [
        "route replace unreachable 10.0.0.24/31 metric 4000000000 protocol 80\n"
    ],
    ("srv6", "srv6-sysctl.conf"): ["net/ipv6/conf/eth1/seg6_enabled = 0\n"],
    ("ovs", "flows.txt"): [
        "table=2,priority=9,cookie=0x5046000000000006,metadata=1/0x1,actions=group:GROUP\n"
    ],
}
LEFT_OUT = {
    ("linux", "sysctl.conf"): [
        "net/ipv4/conf/all/ignore_routes_with_linkdown = 1\n",
        "net/ipv6/conf/all/ignore_routes_with_linkdown = 1\n",
    ],
    ("linux", "load.sh"): [
        "    ip $family -batch rules.batch || ",
        "  commands=$(usable)\n",
    ],
    ("nxos", "nxos.cfg"): ["vlan 2\n  name hosts\n"],
    ("srv6", "srv6-sysctl.conf"): [
        "net/ipv6/conf/all/seg6_enabled = 1\n",
        "net/ipv6/conf/all/forwarding = 1\n",
    ],
    ("srv6", "srv6.conf"): ["  static-sids\n", "    format usid-f3216\n"],
}


@pytest.mark.parametrize(("name", "file"), ADDED)
def test_a_line_too_many_is_seen(name, file, tmp_path):
    build = fabric("minimal" if name == "ovs" else "spread")
    write(name, build, tmp_path, only=[2])
    path = tmp_path / "2" / file
    before = path.read_text()
    own = re.search(r"metadata=1/0xffff,actions=group:(\d+)", before)
    for text in ADDED[name, file]:
        # A row of class 1 that also takes the packets of classes 3, 5, …
        path.write_text(before + text.replace("GROUP", own[1] if own else ""))
        assert str(path) in [e.file for e in check_switch(name, build, tmp_path, 2).examples], text


@pytest.mark.parametrize(("name", "file"), LEFT_OUT)
def test_a_line_too_few_is_seen(name, file, tmp_path):
    build = fabric("spread" if name == "srv6" else "two hosts")
    write(name, build, tmp_path)
    path = tmp_path / "2" / file
    before = path.read_text()
    for text in LEFT_OUT[name, file]:
        change(path, text, "")
        assert str(path.parent) in check_switch(name, build, tmp_path, 2).examples[0].file, text
        path.write_text(before)


def test_a_nexthop_that_becomes_an_empty_group_is_seen(tmp_path):
    """The second group has a member that was a nexthop and is a group without members now."""
    build = fabric("minimal")
    write("linux", build, tmp_path, only=[2])
    path = tmp_path / "2/routes.batch"
    before = path.read_text()
    nexthop = re.search(r"nexthop replace id (\d+) via", before)[1]
    path.write_text(
        f"{before}nexthop replace id {nexthop} group 99999,1 protocol 80\n"
        f"nexthop replace id 99998 group {nexthop},1 protocol 80\n"
    )
    assert str(path) in [e.file for e in check_switch("linux", build, tmp_path, 2).examples]


def changed(path, change_it):
    tree = json.loads(path.read_text())
    change_it(tree)
    path.write_text(json.dumps(tree, indent=2))


@pytest.mark.parametrize(
    "change_it",
    [
        lambda tree: tree.update({f"{SRL}acl:acl": {"interface": []}}),
        lambda tree: tree[f"{SRL}interfaces:interface"][0].update({"vlan-tagging": True}),
        lambda tree: tree[f"{SRL}interfaces:interface"][0].update(ethernet={"aggregate-id": "l"}),
        lambda tree: tree[f"{SRL}interfaces:interface"][0]["subinterface"][0].update(acl={}),
        lambda tree: tree[f"{SRL}network-instance:network-instance"][0].update(protocols={}),
    ],
)
def test_a_key_of_srlinux_that_steers_is_seen(change_it, tmp_path):
    build = fabric("minimal")
    write("srlinux", build, tmp_path, only=[2])
    path = tmp_path / "2/srlinux.json"
    changed(path, change_it)
    assert check_switch("srlinux", build, tmp_path, 2).examples[0].file == str(path)


@pytest.mark.parametrize(
    ("table", "entries"),
    [
        ("PORTCHANNEL_MEMBER", {}),
        ("VLAN_SUB_INTERFACE", {"Eth0.3": {"vlan": "3"}}),
        ("STATIC_NAT", {}),
    ],
)
def test_a_table_of_sonic_that_steers_is_seen(table, entries, tmp_path):
    build = fabric("minimal")
    write("sonic", build, tmp_path, only=[2])
    path = tmp_path / "2/config_db.json"
    changed(path, lambda tree: tree.update({table: entries}))
    assert check_switch("sonic", build, tmp_path, 2).examples[0].file == str(path)


MTU = {
    "eos": ("eos.cfg", r"   mtu (9000)"),
    "frr": ("links.batch", r"mtu (9000)"),
    "junos": ("junos.set", r"set interfaces et\S+ mtu (9014)"),
    "linux": ("links.batch", r"mtu (9000)"),
    "nxos": ("nxos.cfg", r"  mtu (9000)"),
    "sonic": ("config_db.json", r'"mtu": "(9000)"'),
    "srlinux": ("srlinux.json", r'"mtu": (9014)'),
}


def test_an_mtu_that_the_inventory_does_not_say_is_seen(tmp_path):
    build = compiled(tmp_path)
    for name, (file, pattern) in MTU.items():
        write(name, build, tmp_path / name, only=[2])
        assert check(name, build, tmp_path / name, only={2}).passed
        path = tmp_path / name / "leaf2" / file
        text = path.read_text()
        begin, end = re.search(pattern, text).span(1)
        path.write_text(f"{text[:begin]}1000{text[end:]}")
        assert not check(name, build, tmp_path / name, only={2}).passed, name
