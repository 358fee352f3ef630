"""Targets with eBGP, read back: the best paths are those of the tables, and changes are told."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from ipaddress import IPv6Network

import pytest

from compilers.pipeline import compile_fabric
from compilers.readers.bgp.bgp_speaker import LARGEST_METRIC
from compilers.routing.choose import choices
from compilers.spec.fabric_file import load_fabric
from compilers.spec.forwarding import Forwarding
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.readers.emitted import (
    IDENTITY,
    IQ,
    STAR,
    assert_each_is_told,
    change,
    check,
    fabric,
    write,
)
from tests.compilers.routed import agreed, routed

pytestmark = pytest.mark.usefixtures("read_once")

BGP = {"routing": "bgp"}


def build_of(parameters):
    build = routed(**parameters)
    return replace(
        build, identity=IDENTITY, addressing=replace(build.addressing, ipv6=IPv6Network("fd::/48"))
    )


@pytest.mark.parametrize(
    "parameters",
    [{"q": 2, "hosts": 2}, {"family": "oft", "q": 2}, IQ],
)
def test_nothing_differs(parameters, tmp_path):
    build = build_of(parameters)
    write("frr", agreed(build, BGP), tmp_path)
    report = check("frr", agreed(build, BGP), tmp_path)
    ends = int(build.topology.endpoints.sum())
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered == ends * (ends - 1)


SEVERAL = {"family": "oft", "q": 2}
NEXT_HOPS = {
    "frr": (
        ("frr.conf", "  maximum-paths 3\n", "  maximum-paths 1\n"),
        ("frr.conf", "  maximum-paths 3\n", "  maximum-paths 2\n"),
        ("frr.conf", " bgp bestpath as-path multipath-relax\n", ""),
        ("frr.conf", " set extcommunity bandwidth num-multipaths\n", ""),
        ("frr.conf", "zebra nexthop-group keep 1\n", ""),
        ("sysctl.conf", "ipv4/fib_multipath_hash_policy = 3", "ipv4/fib_multipath_hash_policy = 1"),
    ),
    "sonic": (
        ("frr.conf", "  maximum-paths 3\n", "  maximum-paths 1\n"),
        ("frr.conf", " bgp bestpath as-path multipath-relax\n", ""),
        ("frr.conf", " set extcommunity bandwidth num-multipaths\n", " set metric 7\n"),
        ("frr.conf", "zebra nexthop-group keep 1\n", ""),
    ),
    "nvue": (
        ("startup.yaml", "multipaths: {ebgp: 3}", "multipaths: {ebgp: 1}"),
        ("startup.yaml", ", multipath: {aspath-ignore: on}", ""),
        (
            "startup.yaml",
            "set: {ext-community-bw: multipaths}",
            "set: {ext-community-bw: cumulative}",
        ),
    ),
    "eos": (
        ("eos.cfg", "   maximum-paths 3 ecmp 3\n", "   maximum-paths 1 ecmp 1\n"),
        ("eos.cfg", "   maximum-paths 3 ecmp 3\n", "   maximum-paths 3 ecmp 2\n"),
        ("avd.json", '"ecmp": 3', '"ecmp": 2'),
    ),
    "nxos": (
        ("nxos.cfg", "    maximum-paths 3\n", "    maximum-paths 2\n"),
        ("nxos.cfg", "    maximum-paths 3\n", ""),
        ("nxos.cfg", "  bestpath as-path multipath-relax\n", ""),
    ),
    "junos": (
        ("junos.set", "set protocols bgp group fabric-ipv4 multipath multiple-as\n", ""),
        ("junos.set", "set routing-options forwarding-table export polarfab\n", ""),
        ("junos.set", "multipath multiple-as", "multipath"),
    ),
    "srlinux": (
        ("srlinux.json", '"maximum-paths": 3', '"maximum-paths": 1'),
        ("srlinux.json", '"allow-multiple-as": true', '"allow-multiple-as": false'),
    ),
}
WEIGHING = ("frr", "sonic", "nvue")


def shared_at_every_hop():
    build = build_of(SEVERAL | {"spread": True})
    forwarding = Forwarding(alternates="shortest", every_hop=True)
    plain = build_of(SEVERAL)
    tables = choices(plain.tables, plain.topology, plain.wiring, forwarding)
    return replace(build, balance="ecmp", forwarding=forwarding, tables=tables)


@pytest.mark.parametrize("name", NEXT_HOPS)
def test_paths_at_every_hop(name, tmp_path):
    """All shortest paths at every switch, each of which says how many are behind it."""
    build = shared_at_every_hop()
    options = BGP | {"wcmp": "on"} if name in WEIGHING else BGP
    write(name, build, tmp_path, options)
    report = check(name, build, tmp_path, options)
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered
    if name in WEIGHING:
        assert check(name, agreed(build, BGP), tmp_path).differences
    for file, *pair in NEXT_HOPS[name]:
        assert_each_is_told(name, build, tmp_path, file, [pair], options)


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("eos", {"routing": "static"}, "routing.transit: required minimal, as target eos cannot"),
        ("eos", {"wcmp": "on"}, "control_plane.wcmp: required false, as system eos does not"),
        (
            "frr",
            {"routing": "static", "wcmp": "on"},
            "control_plane.wcmp: required false with static routes, given true; write",
        ),
    ],
)
def test_paths_at_every_hop_are_refused(name, options, told, tmp_path):
    with pytest.raises(InputError) as error:
        write(name, shared_at_every_hop(), tmp_path, BGP | options)
    assert told in str(error.value)


@pytest.mark.parametrize("spines", [16, 17])
def test_junos_takes_sixteen_next_hops(spines, tmp_path):
    links = [f"{leaf} {spine + 2}\n" for leaf in (0, 1) for spine in range(spines)]
    (tmp_path / "links.txt").write_text("".join(links))
    (tmp_path / "fabric.yaml").write_text(
        "name: wide\ntopology: {family: graph, file: links.txt}\nhosts_per_node: 1\n"
        "routing: {balance: ecmp, transit: ecmp}\n"
    )
    build = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    if spines == 16:
        write("junos", agreed(build, BGP), tmp_path)
        assert not check("junos", agreed(build, BGP), tmp_path).differences
        return
    with pytest.raises(InputError, match="required at most 16 next hops of a route"):
        target("junos").check(agreed(build, BGP))
    target("eos").check(agreed(build, BGP))


def test_one_path_has_no_weight(tmp_path):
    with pytest.raises(InputError, match="wcmp: required false without `transit: ecmp`"):
        write("frr", agreed(build_of({"q": 2}), BGP | {"wcmp": "on"}), tmp_path)


def test_a_metric_may_be_the_largest(tmp_path):
    """Where the compiled port has a smaller one all paths stay what they were."""
    build = build_of({"family": "oft", "q": 2})
    write("frr", agreed(build, BGP), tmp_path)
    for node in build.wiring.names:
        path = tmp_path / node / "frr.conf"
        change(path, "set metric 2\n", f"set metric {LARGEST_METRIC}\n", count=-1)
        change(path, "set metric 1\n", f"set metric {LARGEST_METRIC - 1}\n", count=-1)
    report = check("frr", agreed(build, BGP), tmp_path)
    assert (report.differences, report.pairs) == (0, report.delivered)


UNNUMBERED = BGP | {"unnumbered": "on"}
ALONE = {
    "sonic": (
        ("frr.conf", " interface v6only remote-as 42", " interface remote-as 42"),
        ("frr.conf", " neighbor fabric capability extended-nexthop\n", ""),
        ("frr.conf", " neighbor Ethernet0 peer-group fabric\n", ""),
        ("config_db.json", '"ipv6_use_link_local_only": "enable"', '"mpls": "enable"'),
        ("config_db.json", '"ipv6_use_link_local_only": "enable"', '"vrf_name": "Vrf-hosts"'),
        (
            "config_db.json",
            '    "Ethernet0": {',
            '    "Ethernet0|100.64.0.2/31": {},\n    "Ethernet0": {',
        ),
    ),
    "nvue": (
        ("startup.yaml", "type: unnumbered", "type: numbered"),
        ("startup.yaml", "                peer-group: fabric\n", ""),
        ("startup.yaml", '"swp1":', '"swp9":'),
        (
            "startup.yaml",
            "    ipv6-unicast:\n                    enable: on",
            "    l2vpn-evpn:\n                    enable: on",
        ),
        (
            "startup.yaml",
            'description: "sw-1 swp1"\n',
            'description: "sw-1 swp1"\n        ip: {address: {"100.64.0.2/31": {}}}\n',
        ),
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_links_without_addresses(name, tmp_path):
    """A session a link for both families, over the interface (RFC 8950); no link has an address."""
    build = build_of({"q": 2, "hosts": 2})
    write(name, build, tmp_path, UNNUMBERED)
    report = check(name, build, tmp_path, UNNUMBERED)
    ends = int(build.topology.endpoints.sum())
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered == ends * (ends - 1)
    assert all("100.64." not in path.read_text() for path in tmp_path.glob("*/*"))
    assert check(name, build, tmp_path, BGP).differences
    for file, *pair in ALONE[name]:
        assert_each_is_told(name, agreed(build, UNNUMBERED), tmp_path, file, [pair])


JUNOS_TERM = "set policy-options policy-statement fabric-ipv4 term "
ELSEWHERE = {
    "eos": (
        "eos.cfg",
        (" remote-as 42", " remote-as 41"),
        ("   neighbor 100.64.0.3 peer group", "   neighbor 100.64.0.9 peer group"),
        ("as-path length <= 6", "as-path length <= 0"),
        ("ip as-path regex-mode string\n", ""),
        ("again permit ^[0-9]+_4200000003_ any\n", "again permit ^[0-9]+_4200000009_ any\n"),
        (
            "!\nip prefix-list",
            "ip as-path access-list again permit ^[0-9]+_1_ any\n!\nip prefix-list",
        ),
        ("   bgp always-compare-med\n", ""),
        ("   router-id", "   bgp bestpath as-path ignore\n   router-id"),
        ("   ip address 100.64.0.2/31", "   ip address 100.64.0.20/31"),
    ),
    "nxos": (
        "nxos.cfg",
        ("    remote-as 42", "    remote-as 41"),
        ("    inherit peer fabric-ipv4\n", ""),
        ("feature bgp\n", ""),
        ("  match as-path again\n", ""),
        ("_4200000001_", "_4200000002_"),
        ("  maxas-limit 6\n", "  maxas-limit 5\n"),
        ("      route-map announced-ipv4 out\n", ""),
        ("  router-id", "  shutdown\n  router-id"),
        ("ip route 10.0.0.0/26 Null0 254\n", ""),
    ),
    "junos": (
        "junos.set",
        ("peer-as 42", "peer-as 41"),
        (" static route 10.0.0.0/29 discard", " static route 10.0.0.0/29 next-hop 100.64.0.3"),
        ('".{1,6}"', '".{1,1}"'),
        ("/29-/29", "/29-/31"),
        ("family inet6 unicast", "family inet unicast"),
        ("term others then reject", "term others then accept"),
        (JUNOS_TERM + "20", f"{JUNOS_TERM}others then reject\n{JUNOS_TERM}20"),
    ),
    "nvue": (
        "startup.yaml",
        ("remote-as: 42", "remote-as: 41"),
        ("{0,5}", "{0,0}"),
        ("compare-always: on", "compare-always: off"),
        (" bfd: {enable: on,", " bfd: {enable: off,"),
        ("action: {permit: {}}", "action: {deny: {}}"),
        (", outbound: {route-map: announced-ipv4}", ""),
        ('network: {"10.0.0.0/29": {}}', 'network: {"10.0.0.8/29": {}}'),
        (' "10.0.0.0/29": {address-family', ' "10.0.9.0/29": {address-family'),
        ("{action: permit, match:", "{action: deny, match:"),
    ),
    "sonic": (
        "frr.conf",
        ("remote-as 42", "remote-as 41"),
        (" neighbor 100.64.0.3 peer-group fabric-ipv4\n", ""),
        ("  maximum-paths 1", "  maximum-paths 2"),
        ("  neighbor fabric-ipv6 activate\n", ""),
        ("{0,4}$", "{0,5}$"),
        (" (42", " (41"),
        (" match as-path again\n", " match as-path near\n"),
        (" set metric 2\n", " set metric 1\n"),
    ),
    "srlinux": (
        "srlinux.json",
        ('"peer-as": 42', '"peer-as": 41'),
        ('"minimum-advertisement-interval": 1', '"minimum-advertisement-interval": 5'),
        ('"install": true', '"install": false'),
        ('"always-compare-med": true', '"always-compare-med": false'),
        ('"29..29"', '"31..31"'),
        ('"operator": "le"', '"operator": "ge"'),
        ('"policy-result": "reject"', '"policy-result": "accept"'),
        ('"peer-address": "100.64.0.3"', '"peer-address": "100.64.0.9"'),
    ),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_change_is_told_by_every_system(name, tmp_path):
    build = build_of({"q": 2, "hosts": 2})
    write(name, build, tmp_path, BGP)
    report = check(name, build, tmp_path, BGP)
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered == 42
    file, *changes = ELSEWHERE[name]
    assert_each_is_told(name, agreed(build, BGP), tmp_path, file, changes)


def test_the_order_of_a_policy_is_told(tmp_path):
    build = build_of({"family": "oft", "q": 2})
    write("srlinux", agreed(build, BGP), tmp_path)
    path = tmp_path / build.wiring.names[0] / "srlinux.json"
    tree = json.loads(path.read_text())
    policies = tree["srl_nokia-routing-policy:routing-policy"]["policy"]
    statements = next(each["statement"] for each in policies if len(each["statement"]) > 1)
    statements.reverse()
    path.write_text(json.dumps(tree))
    assert check("srlinux", agreed(build, BGP), tmp_path).differences == 1


def test_avd_says_of_bgp_what_the_device_says(tmp_path):
    build = build_of({"q": 2, "hosts": 2})
    write("eos", agreed(build, BGP), tmp_path)
    path = tmp_path / "0" / "avd.json"
    before = path.read_text()
    for old, new in (
        ('"remote_as": "42', '"remote_as": "41'),
        ('"activate": true', '"x": true'),
        ('"ip_address": "100.64.0.3"', '"ip_address": "no address"'),
        ('"router_id": "10.0.0.1"', '"router_id": "10.0.0.2"'),
    ):
        line = change(path, old, new)
        found = [
            e.line
            for e in check("eos", agreed(build, BGP), tmp_path).examples
            if e.file == str(path)
        ]
        assert any(abs(n - line) < 3 for n in found), (old, new)
        path.write_text(before)


ROUTER_IDS = {"frr": "frr.conf", "junos": "junos.set", "nvue": "startup.yaml", "nxos": "nxos.cfg"}


@pytest.mark.parametrize("name", ROUTER_IDS)
def test_a_router_id_that_is_no_address_has_a_line(name, tmp_path):
    build = build_of({"q": 2, "hosts": 2})
    write(name, agreed(build, BGP), tmp_path)
    path = tmp_path / "0" / ROUTER_IDS[name]
    word = "router-id: " if name == "nvue" else "router-id "
    line = change(path, f"{word}10.0.0.1", f"{word}nonsense")
    assert (str(path), line) in {
        (e.file, e.line) for e in check(name, agreed(build, BGP), tmp_path).examples
    }


CHANGES = {
    "addresses without a route": ("ip route 10.0.0.0/25 reject 254\n", ""),
    "another's prefix": ("  network 10.0.0.0/30\n", "  network 10.0.0.4/30\n"),
    "a longer prefix": ("ge 30 le 30", "ge 31 le 31"),
    "another metric": (" set metric 0", " set metric 2"),
    "another preference": ("via-4-ipv4 seq 5 permit 10.", "via-5-ipv4 seq 5 permit 10."),
    "metrics of one system only": (" bgp always-compare-med\n", ""),
    "no others": ("route-map via-4-ipv4 permit 20\n", "route-map via-4-ipv4 deny 20\n"),
    "not used": ("  neighbor eth4 route-map via-4-ipv4 in\n", ""),
    "several paths": ("  maximum-paths 1", "  maximum-paths 2"),
    "a static route": ("interface lo", "ip route 10.0.0.8/30 10.0.0.9 eth1\ninterface lo"),
    "another weight": (" bgp router-id", " bgp bestpath as-path ignore\n bgp router-id"),
}


FABRICS = {"plain": {"q": 2}, "aggregates": STAR}
OF_AGGREGATES = (
    *("addresses without a route", "another's prefix", "another metric", "another preference"),
    *("no others", "not used"),
)
"""Changes of lines that only a fabric with aggregates has, or that concern its prefixes."""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder of a small fabric, and one of a fabric with aggregates."""
    folders = {}
    for name, parameters in FABRICS.items():
        folders[name] = tmp_path_factory.mktemp("bgp")
        write("frr", agreed(build_of(parameters), BGP), folders[name])
    return folders


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_told(name, written):
    kind = "aggregates" if name in OF_AGGREGATES else "plain"
    folder = written[kind]
    path = folder / "0" / "frr.conf"
    before = path.read_text()
    try:
        change(path, *CHANGES[name])
        report = check("frr", agreed(build_of(FABRICS[kind]), BGP), folder)
    finally:
        path.write_text(before)
    assert report.differences
    assert all(example.file.startswith(str(folder)) for example in report.examples)


def test_a_fault_is_told_first_with_its_line(tmp_path):
    """What it does to others and to packets is one difference, behind it."""
    build = build_of({"q": 2, "hosts": 2})
    write("nvue", agreed(build, BGP), tmp_path)
    path = tmp_path / "6" / "startup.yaml"
    before = path.read_text()
    for old, new, above, says, tables in (
        ("autonomous-system: 42", "autonomous-system: 41", 0, "AS number 41", "AS number 42"),
        ("remote-as: 42", "remote-as: 41", 1, "session swp1 ipv4 AS 41", "session swp1 ipv4 AS 42"),
    ):
        line = change(path, old, new) - above
        report = check("nvue", agreed(build, BGP), tmp_path)
        first, last = report.examples
        assert report.differences == 2
        assert (first.file, first.line) == (str(path), line)
        assert (first.says[: len(says)], first.tables[: len(tables)]) == (says, tables)
        assert last.says.endswith(" more, of where packets go: they may follow from the others")
        path.write_text(before)


def test_sessions_behind_each_others_ports_are_told(tmp_path):
    build = build_of({"q": 2, "hosts": 2})
    write("nxos", agreed(build, BGP), tmp_path)
    path = tmp_path / "0" / "nxos.cfg"
    text = path.read_text()
    one, other = re.findall(r"  neighbor (100\S+)", text)[:2]
    text = text.replace(f"neighbor {one}", "neighbor -").replace(
        f"neighbor {other}", f"neighbor {one}"
    )
    path.write_text(text.replace("neighbor -", f"neighbor {other}"))
    first, second, *_ = check("nxos", agreed(build, BGP), tmp_path).examples
    session = "session Ethernet1/{} ipv4 AS 420000000{}"
    assert (first.says, first.tables) == (session.format(2, 1), session.format(2, 3))
    assert (second.says, second.tables) == (session.format(1, 3), session.format(1, 1))


@pytest.mark.parametrize(
    ("name", "file", "old", "route"),
    [
        ("nxos", "nxos.cfg", "ip prefix-list", "ip route 10.0.0.32/29 Ethernet1/1 100.64.0.3\n"),
        (
            "nvue",
            "startup.yaml",
            '            "10.0.0.0/26"',
            '            "10.0.0.32/29": {address-family: ipv4-unicast, '
            'via: {"100.64.0.3": {type: ipv4-address}}}\n',
        ),
    ],
)
def test_a_static_route_goes_before_bgp(name, file, old, route, tmp_path):
    """Though it may lead the same way: it stays when the neighbour dies."""
    build = build_of({"q": 2, "hosts": 2})
    write(name, agreed(build, BGP), tmp_path)
    path = tmp_path / "0" / file
    line = change(path, old, route + old)
    (only,) = check(name, agreed(build, BGP), tmp_path).examples
    assert only.says == "a static route to 10.0.0.32/29, which goes before BGP"
    assert (only.file, only.line) == (str(path), line)


def test_one_switch_is_read_beside_what_the_others_would_have(tmp_path):
    build = fabric("minimal")
    target("frr").render(agreed(build, BGP), tmp_path, only=[1])
    report = target("frr").check_emitted(agreed(build, BGP), tmp_path, only=[1])
    assert (report.passed, report.switches) == (True, 1)
    change(tmp_path / "1" / "frr.conf", " timers 3 9", " timers 3 90")
    report = target("frr").check_emitted(agreed(build, BGP), tmp_path, only=[1])
    assert {example.file for example in report.examples} == {str(tmp_path / "1" / "frr.conf")}
