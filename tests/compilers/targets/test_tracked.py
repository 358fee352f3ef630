"""Static routes whose next hops eBGP keeps for BFD: read back, and what is wrong is found."""

import re
from functools import cache
from shutil import copytree

import pytest

from compilers.targets.target_lookup import target
from inventory.problems import InputError
from polarfab.fabric import Fabric
from tests.compilers.routed import agreed
from tests.vtysh import NEEDS_VTYSH, judged

BFD = {"bfd": "on"}
ROUTING = {
    "marks": {"balance": "spread", "protect": "link"},
    "alternates": {"balance": "compact-valiant", "adjacent": "bounce", "protect": "link"},
    "none": {"balance": "minimal"},
}


@cache
def build(case):
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "routing": ROUTING[case]}
    return Fabric.from_spec(spec | {"addressing": {"ipv6": "fd00::/48"}}).build


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of all switches."""
    target("frr").render(agreed(build("marks"), BFD), folder := tmp_path_factory.mktemp("out"))
    return folder


def test_what_was_written_says_what_the_tables_say(whole):
    report = target("frr").check_emitted(agreed(build("marks"), BFD), whole)
    assert (report.examples, report.passed) == ((), True)


@pytest.mark.parametrize("case", ["alternates", "none"])
def test_what_was_written_without_marks_says_so_too(case, tmp_path):
    target("frr").render(agreed(build(case), BFD), tmp_path)
    report = target("frr").check_emitted(agreed(build(case), BFD), tmp_path)
    assert (report.examples, report.passed) == ((), True)


@NEEDS_VTYSH
def test_vtysh_accepts_them(whole):
    path = whole / "4" / "frr.conf"
    assert judged(path) == (0, "", "")


WRONG = (
    (r" neighbor fabric bfd profile fabric\n", ""),
    (r"(?m)^ neighbor eth1 peer-group fabric\n", ""),
    (r" set ipv6 next-hop local fe80::1:0:1\n", ""),
    (r" set ipv6 next-hop local fe80::1:0:1\n", " set ipv6 next-hop local fe80::1:0:9\n"),
    (r"plain-eth1-ipv4 seq 5 permit \S+", "plain-eth1-ipv4 seq 5 permit 100.127.0.9/32"),
    (r"plain-eth1-ipv4 seq 5 permit (\S+)/32", r"plain-eth1-ipv4 seq 5 permit \1/31"),
    (r"own-ipv4 seq 5 permit \S+", "own-ipv4 seq 5 permit 100.127.0.9/32"),
    (r"  neighbor eth2 route-map eth2-ipv4 in\n", "  neighbor eth2 route-map eth1-ipv4 in\n"),
    (r"interface v6only remote-as \d+", "interface v6only remote-as 64512"),
    (r"router bgp \d+", "router bgp 64512"),
    (r"(ip route \S+ 100\.127\.0\.\d+) 2\b", r"\1 9"),
    (r"(ip route \S+ 100\.127\.)128(\.\d+ table 5000)", r"\g<1>0\2"),
    (r"zebra nexthop-group keep 1\n", ""),
    (r"(ip route \S+) 100\.127\.0\.\d+ 1\n", r"\1 10.0.0.1 eth1 onlink\n"),
)


def test_what_is_wrong_is_found(whole, tmp_path):
    """At a switch with its neighbour 0 behind eth1."""
    for before, after in WRONG:
        copytree(whole, tmp_path, dirs_exist_ok=True)
        path = tmp_path / "4" / "frr.conf"
        text, count = re.subn(before, after, path.read_text(), count=1)
        assert count == 1, before
        path.write_text(text)
        assert (
            not target("frr")
            .check_emitted(agreed(build("marks"), BFD), tmp_path, only=[0, 4])
            .passed
        ), before


def test_a_pool_that_is_too_small(tmp_path):
    with pytest.raises(InputError, match="a network of at least 28 addresses"):
        target("frr").render(agreed(build("marks"), BFD | {"nexthops": "100.127.0.0/28"}), tmp_path)
