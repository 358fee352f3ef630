"""When a router of FRR is ready: what its configuration asks for is in the kernel's routes."""

import json
from types import SimpleNamespace

import pytest

from mininet_scenarios.engines.routers import FrrRouter

STATIC = """ip route 10.0.0.0/16 reject 254
ip route 10.0.1.0/24 100.127.0.2 1
ip route 10.0.1.0/24 100.127.0.3 2
ip route 10.0.2.0/24 100.127.0.3 table 5000
ip route 10.0.2.0/24 100.127.128.2 table 5000
"""
TRACKED = """ip prefix-list own-ipv4 seq 5 permit 100.127.0.1/32
ip prefix-list plain-up-1-ipv4 seq 5 permit 100.127.0.2/32
ip prefix-list marked-up-1-ipv4 seq 5 permit 100.127.128.2/32
 set ipv6 next-hop local fe80::1:0:2
ip prefix-list plain-eth2-ipv4 seq 5 permit 100.127.0.3/32
router bgp 1
bfd
"""
POOL = {"type": "unreachable", "dst": "10.0.0.0/16"}


def unicast(dst, hops, **more):
    """A route as `ip -details -json route` of iproute2 6.1 shows it."""
    known = [{"via": {"family": "inet6", "host": host}, "dev": dev} for dev, host in hops]
    one = known[0] if len(known) == 1 else {"nexthops": known}
    return {"type": "unicast", "dst": dst, **one, **more}


def router(folder, text, *routes):
    (folder / "frr.conf").write_text(text)
    made = FrrRouter.__new__(FrrRouter)
    rows = json.dumps([{"protocol": "static", **route} for route in routes])
    made.files = folder
    made.space = SimpleNamespace(run=lambda *words: rows if "-4" in words else "[]")
    return made


NEAR = unicast("10.0.1.0/24", [("up-1", "fe80::aa")])
FAR = unicast("10.0.1.0/24", [("eth2", "fe80::bb")])
BOTH = unicast("10.0.2.0/24", [("eth2", "fe80::bb"), ("up-1", "fe80::1:0:2")], table="5000")
PLAIN = unicast("10.0.2.0/24", [("eth2", "fe80::bb"), ("up-1", "fe80::aa")], table="5000")
ONE = unicast("10.0.2.0/24", [("eth2", "fe80::bb")], table="5000")


@pytest.mark.parametrize(
    ("routes", "dead", "ready"),
    [
        ([POOL, NEAR, BOTH], set(), True),
        ([POOL, NEAR, ONE], set(), False),  # a next hop did not come back
        ([POOL, NEAR, PLAIN], set(), False),  # marked packets have no next hop of their own
        ([POOL, FAR, BOTH], set(), False),
        ([NEAR, BOTH], set(), False),
        ([POOL, FAR, ONE], {"up-1"}, True),
        ([POOL, NEAR, ONE], {"up-1"}, False),  # BFD has not heard yet
    ],
)
def test_next_hops_that_follow_bfd_are_all_there(routes, dead, ready, tmp_path):
    assert router(tmp_path, STATIC + TRACKED, *routes).ready(dead) is ready


def test_without_bfd_each_route_is_there(tmp_path):
    """FRR 8.4 does not always take a next hop back (docs/targets/frr.md)."""
    text = "ip route 10.0.1.0/24 10.0.0.5 eth1 onlink\nip route 10.0.1.0/24 10.0.0.9 eth2 onlink\n"
    one = {"type": "unicast", "dst": "10.0.1.0/24", "gateway": "10.0.0.5", "dev": "eth1"}
    assert router(tmp_path, text, one).ready(set())
    assert not router(tmp_path, text).ready(set())
