"""Configs of eos, nxos, junos, srlinux and sonic read back: as they are, and changed by a line."""

import pytest

from compilers.readers.strict_json import JsonError, parse
from tests.compilers.readers.emitted import change, check, check_switch, fabric, write

FILES = {
    "eos": "eos.cfg",
    "nxos": "nxos.cfg",
    "junos": "junos.set",
    "srlinux": "srlinux.json",
    "sonic": "config_db.json",
}
FILTERED = "set firewall family inet filter polarfab-inet term fabric"
ENTERING = {
    "eos": [
        "ip routing vrf hosts\n",
        "   vrf hosts\n",
        "vrf instance hosts\n",
        "service routing protocols model multi-agent\n",
        "ip route vrf hosts 10.0.0.0/26 Null0 254\n",
        " egress-vrf default",
    ],
    "nxos": ["  vrf member hosts\n", "vrf context hosts\n", " vrf default"],
    "sonic": [
        '      "vrf_name": "Vrf-hosts"\n',
        '    "Vrf-hosts": {}\n',
        ',\n      "nexthop-vrf": "default,default,default,default"',
    ],
    "junos": [
        f"{FILTERED} from destination-address 10.0.0.0/26\n",
        "term fabric then routing-instance polarfab\n",
        "filter input polarfab-inet\n",
        "set policy-options policy-statement polarfab then load-balance per-packet\n",
    ],
}
"""Texts without which packets from hosts are not told from those in transit."""
A_WAY = {
    "eos": "ip route vrf hosts 10",
    "nxos": "  ip route 10",
    "junos": "set routing-instances polarfab routing-options static route 10",
}
"""How a next hop of packets from hosts begins where it has a line of its own."""
BACK = {
    "eos": (" egress-vrf hosts Ethernet5 10.0.0.22", " egress-vrf hosts Ethernet5 10.0.0.23"),
    "nxos": ("10.0.0.22/32 Ethernet1/5", "10.0.0.23/32 Ethernet1/5"),
    "sonic": ('"default|10.0.0.22/32"', '"default|10.0.0.23/32"'),
}
"""The way back to the host of switch 5, and a wrong one."""


@pytest.mark.parametrize("name", ENTERING)
def test_packets_from_hosts_are_told_from_transit(name, tmp_path):
    build = fabric("spread")
    write(name, build, tmp_path, only=[5])
    assert check(name, build, tmp_path, only={5}).passed
    file = tmp_path / "5" / FILES[name]
    before = file.read_text()
    changes = [(text, "") for text in ENTERING[name]]
    for old, new in (*changes, *([BACK[name]] if name in BACK else [])):
        change(file, old, new)
        report = check_switch(name, build, tmp_path, 5)
        assert not report.passed, (old, new)
        assert any(str(tmp_path / "5") in example.file for example in report.examples)
        file.write_text(before)
    if name in A_WAY:
        lines = [t for t in before.splitlines() if t.startswith(A_WAY[name])]
        next_hop = next(t for t in lines if "100.64" in t and "Null0" not in t)
        line = change(file, f"{next_hop}\n", "")
        report = check_switch(name, build, tmp_path, 5)
        assert (str(file), line) in [(e.file, e.line) for e in report.examples]


def swapped(name, text):
    """The next hop of a route in the place of another's: old and new text."""
    if name == "srlinux":
        return '"next-hop-group": "ethernet-1/1-ipv4"', '"next-hop-group": "ethernet-1/2-ipv4"'
    if name == "sonic":
        key = '"ifname": "Ethernet0",\n      "nexthop": "100.64.0.'
        first = text[text.index(key) :].split('"nexthop": "')[1].split('"')[0]
        return f'"nexthop": "{first}"', '"nexthop": "100.64.0.99"'
    start = {"eos": "ip route 10", "nxos": "ip route 10", "junos": "set routing-options static"}
    lines = [t for t in text.splitlines() if t.startswith(start[name]) and "254" not in t]
    lines = [t for t in lines if "discard" not in t]
    next_hops = [t.split(" ", 3 if name != "junos" else 6)[-1] for t in lines]
    other = next(next_hop for next_hop in next_hops if next_hop != next_hops[0])
    return lines[0], lines[0].replace(next_hops[0], other)


@pytest.mark.parametrize("name", FILES)
def test_a_swapped_next_hop_is_named_by_its_line(name, tmp_path):
    build = fabric("minimal")
    write(name, build, tmp_path, only=[2])
    file = tmp_path / "2" / FILES[name]
    line = change(file, *swapped(name, file.read_text()))
    report = check_switch(name, build, tmp_path, 2)
    assert report.differences
    near = [e for e in report.examples if e.file == str(file) and abs(e.line - line) <= 3]
    assert near, report.examples


@pytest.mark.parametrize("name", FILES)
def test_an_own_address_of_another_is_a_difference(name, tmp_path):
    """Of a link, and of a gateway."""
    build = fabric("minimal")
    write(name, build, tmp_path, only=[2])
    assert check(name, build, tmp_path, only={2}).passed
    file = tmp_path / "2" / FILES[name]
    before = file.read_text()
    for old, new in (("100.64.0.", "100.65.0."), ("10.0.0.9/30", "10.0.0.17/30")):
        change(file, old, new)
        assert not check_switch(name, build, tmp_path, 2).passed
        file.write_text(before)


@pytest.mark.parametrize("name", FILES)
def test_a_switch_without_a_file_and_one_too_many(name, tmp_path):
    build = fabric("minimal")
    write(name, build, tmp_path)
    (tmp_path / "2").rename(tmp_path / "other")
    report = check(name, build, tmp_path)
    files = [example.file for example in report.examples]
    assert any(file.startswith(str(tmp_path / "2")) for file in files)
    assert str(tmp_path / "other") in files


DROPPED = {
    "eos": ["ip routing\n", "   no switchport\n", "ipv6 unicast-routing\n"],
    "nxos": ["  no shutdown\n", "  no switchport\n", "ip route 10.0.0.0/27 Null0 254\n"],
    "junos": ["set routing-options static route 10.0.0.0/27 preference 254\n"],
    "srlinux": ['      "admin-state": "enable",\n'],
    "sonic": ['      "admin_status": "up",\n'],
}


@pytest.mark.parametrize("name", FILES)
def test_what_forwarding_needs_is_there(name, tmp_path):
    build = fabric("minimal")
    write(name, build, tmp_path, only=[3])
    file = tmp_path / "3" / FILES[name]
    before = file.read_text()
    for text in DROPPED[name]:
        change(file, text, "")
        report = check_switch(name, build, tmp_path, 3)
        assert not report.passed, text
        assert {example.file for example in report.examples} == {str(file)}
        file.write_text(before)


@pytest.mark.parametrize(
    ("name", "second", "old", "new"),
    [
        ("eos", "avd.json", '"interface": "Ethernet1",', '"interface": "Ethernet2",'),
        ("eos", "avd.json", '"ip_address": "100.64.0.', '"ip_address": "100.65.0.'),
        ("sonic", "frr.conf", " Ethernet0 tag 2", " Ethernet4 tag 2"),
        ("sonic", "frr.conf", "tag 2", "tag 3"),
    ],
)
def test_both_files_of_a_switch_say_the_same(name, second, old, new, tmp_path):
    build = fabric("minimal")
    write(name, build, tmp_path, only=[4])
    file = tmp_path / "4" / second
    line = change(file, old, new)
    report = check_switch(name, build, tmp_path, 4)
    example = report.examples[0]
    assert example.file == str(file)
    assert abs(example.line - line) <= 2


@pytest.mark.parametrize(("mode", "case"), [("host", "minimal"), ("switch", "two hosts")])
def test_sonic_with_segments(mode, case, tmp_path):
    build = fabric(case)
    options = {"srv6": mode}
    write("sonic", build, tmp_path, options)
    assert check("sonic", build, tmp_path, options).passed
    file = tmp_path / "1" / "config_db.json"
    before = file.read_text()
    for old, new in (
        ('"default|fc00:0:1003::/48"', '"default|fc00:0:1033::/48"'),
        ('"action": "uA"', '"action": "uX"'),
        ('"node_len": "16"', '"node_len": "32"'),
    ):
        change(file, old, new)
        assert not check_switch("sonic", build, tmp_path, 1, options).passed, old
        file.write_text(before)


def test_a_key_that_stands_twice():
    with pytest.raises(JsonError, match="the key a twice") as error:
        parse('{\n "a": 1,\n "b": 2,\n "a": 3}')
    assert error.value.line == 4
