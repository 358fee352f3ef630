"""What to add and what to take away: lines of configurations, and for ip -batch."""

from compilers.targets.devices.route_lines import fabric_lines, remediation, section_lines
from compilers.targets.junos.route_lines import junos_lines
from compilers.targets.linux.route_lines import kernel_remediation, rule_remediation
from compilers.targets.sonic.route_lines import sonic_lines

POOLS = ("10.0.0.0/24", "fd00::/60")
RENDERED = """hostname a
ip route 10.0.0.0/24 reject 254
ip route 10.0.0.8/29 10.0.0.9 eth1 onlink
ip route 10.0.0.8/29 10.0.0.17 eth2 2 table 5001 onlink
ipv6 route fd00:0:0:1::/64 fe80::2 eth1
"""


def by_lines(there, wanted, lines=section_lines, vrf=""):
    return remediation(*(list(fabric_lines(lines(text), POOLS, vrf)) for text in (there, wanted)))


def test_frr_by_lines():
    running = RENDERED.replace("2 table 5001 onlink", "onlink table 5001 2")
    assert not by_lines(running, RENDERED)
    others = "ip route 192.0.2.0/24 eth0\nip route 0.0.0.0/0 192.0.2.1\n"
    others += "vrf red\n ip route 10.0.0.8/29 10.0.0.9 eth1\nexit-vrf\n"
    stale = "ip route 10.0.0.8/29 10.0.0.25 eth3 onlink\nipv6 route fd00:0:0:1::/64 fe80::9 eth3\n"
    lacking = running.replace("ip route 10.0.0.8/29 10.0.0.9 eth1 onlink\n", "")
    found = by_lines(lacking + others + stale, RENDERED)
    assert found.add == ("ip route 10.0.0.8/29 10.0.0.9 eth1 onlink",)
    assert found.remove == tuple(f"no {line}" for line in stale.splitlines())


def test_sections_of_a_vrf_are_left_again():
    """Or the next line of the main table would be about the VRF."""
    text = "vrf context hosts\n  ip route 10.0.0.8/29 Ethernet1/1 10.0.0.9 vrf default\n"
    found = by_lines("", text, vrf="hosts")
    assert found.add == (f"{text}  exit",)
    assert by_lines(text, "", vrf="hosts").remove == (f"{text}  exit".replace("ip", "no ip", 1),)
    eos = "ip route vrf hosts 10.0.0.8/29 egress-vrf default Ethernet1 10.0.0.9\n"
    assert by_lines(eos, "", vrf="hosts").remove == (f"no {eos.strip()}",)


def test_what_a_route_has_once_is_replaced():
    route = "set routing-options static route 10.0.0.8/29"
    there = f"{route} discard\n{route} preference 254\n{route} next-hop 10.0.0.9\n"
    wanted = f"{route} next-hop 10.0.0.17\n{route} preference 5\n"
    found = by_lines(there, wanted, junos_lines)
    assert found.add == tuple(wanted.splitlines())
    delete = route.replace("set", "delete")
    assert found.remove == (f"{delete} discard", f"{delete} next-hop 10.0.0.9")
    assert by_lines(there, "", junos_lines).remove == (delete,)


def test_routes_of_config_db():
    entry = {"STATIC_ROUTE": {"default|10.0.0.8/29": {"nexthop": "a,b", "ifname": "c,d"}}}
    key = "sonic-db-cli CONFIG_DB {} 'STATIC_ROUTE|default|10.0.0.8/29'"
    assert by_lines({}, entry, sonic_lines).add == (f"{key.format('HSET')} ifname c,d nexthop a,b",)
    assert by_lines(entry, {}, sonic_lines).remove == (key.format("DEL"),)


BATCH = """nexthop replace id 500001 via fe80::2 dev eth1 protocol 80
nexthop replace id 500002 via fe80::3 dev eth2 protocol 80
nexthop replace id 600000 group 500001,2/500002,1 protocol 80
route replace unreachable 10.0.0.0/24 metric 4000000000 protocol 80
route replace 10.0.0.8/29 nhid 500001 metric 1 table 254 protocol 80
route replace 10.0.0.8/29 nhid 600000 metric 1 table 5000 protocol 80
"""
NEXTHOPS = """[{"id":500001,"gateway":"fe80::2","dev":"eth1","protocol":"80"},
{"id":500002,"gateway":"fe80::3","dev":"eth2","protocol":"80"},
{"id":600000,"group":[{"id":500002},{"id":500001,"weight":2}],"protocol":"80"}]"""
ROUTES = """[{"type":"unreachable","dst":"10.0.0.0/24","metric":4000000000,"protocol":"80"},
{"dst":"10.0.0.8/29","nhid":500001,"metric":1,"protocol":"80"},
{"dst":"10.0.0.8/29","nhid":600000,"metric":1,"table":"5000","protocol":"80"},
{"dst":"default","gateway":"192.0.2.1","dev":"eth0","protocol":"boot"}]"""


def test_the_kernel_by_its_objects():
    assert not kernel_remediation(ROUTES, NEXTHOPS, BATCH)
    assert kernel_remediation("", "", BATCH).add == tuple(BATCH.splitlines())
    more = '{"dst":"10.0.0.10","nhid":500003,"metric":2,"protocol":"80"}'
    object_ = '{"id":500003,"gateway":"fe80::4","dev":"eth3","protocol":"80"}'
    wrong = ROUTES.replace('"nhid":500001', '"nhid":500003').replace("]", f",{more}]")
    found = kernel_remediation(wrong, NEXTHOPS[:-1] + f",{object_}]", BATCH)
    assert found.add == ("route replace 10.0.0.8/29 nhid 500001 metric 1 table 254 protocol 80",)
    assert found.remove == (
        "route delete 10.0.0.10/32 metric 2 table 254 protocol 80",
        "nexthop delete id 500003",
    )
    weights = kernel_remediation(ROUTES, NEXTHOPS.replace('"weight":2', '"weight":3'), BATCH)
    assert weights.add == (BATCH.splitlines()[2],)


def test_rules_by_family():
    batch = "# a\nrule add iif eth5 lookup 5000 pref 1000 protocol 80\n"
    ours = '{"priority":1000,"src":"all","iif":"eth5","table":"5000","protocol":"80"}'
    old = ours.replace("5000", "5009")
    others = '{"priority":5,"src":"all","iif":"eth0","table":"99"}'
    found = rule_remediation(f"[{ours},{others}]", f"[{old}]", batch)
    assert found.add == ("-6 rule add iif eth5 lookup 5000 pref 1000 protocol 80",)
    assert found.remove == ("-6 rule delete iif eth5 lookup 5009 pref 1000 protocol 80",)
