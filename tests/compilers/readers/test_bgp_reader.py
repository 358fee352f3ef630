"""Target frr with eBGP, read back: the best paths are those of the tables, and changes are told."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv6Network

import pytest

from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.readers.emitted import IDENTITY, IQ, change, check, fabric, write
from tests.compilers.routed import routed

BGP = {"routing": "bgp"}


def build_of(parameters):
    build = routed(**parameters)
    return replace(
        build, identity=IDENTITY, addressing=replace(build.addressing, ipv6=IPv6Network("fd::/48"))
    )


@pytest.mark.parametrize(
    "parameters", [{"q": 3, "hosts": 2}, {"family": "pn", "q": 2}, {"family": "oft", "q": 2}, IQ]
)
def test_nothing_differs(parameters, tmp_path):
    build = build_of(parameters)
    write("frr", build, tmp_path, BGP)
    report = check("frr", build, tmp_path, BGP)
    ends = int(build.topology.endpoints.sum())
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered == ends * (ends - 1)


CHANGES = {
    "another system": ("remote-as 42000000", "remote-as 41000000"),
    "no session": (" neighbor eth1 interface", " ! eth1 interface"),
    "not announced": ("  network 10.0.0.0/30\n", ""),
    "another's prefix": ("  network 10.0.0.0/30\n", "  network 10.0.0.4/30\n"),
    "a longer prefix": ("ge 30 le 30", "ge 31 le 31"),
    "another metric": (" set metric 0", " set metric 2"),
    "the same metric for all": (" set metric 1", " set metric 0"),
    "another preference": ("via-eth4 seq 5 permit 10.", "via-eth5 seq 5 permit 10."),
    "metrics of one system only": (" bgp always-compare-med\n", ""),
    "no others": (" call fabric\n", ""),
    "a short path": ("{0,7}", "{0,0}"),
    "not used": ("  neighbor eth4 route-map via-eth4 in\n", ""),
    "several paths": ("  maximum-paths 1", "  maximum-paths 2"),
    "a static route": ("interface lo", "ip route 10.0.0.8/30 10.0.0.9 eth1\ninterface lo"),
    "another weight": (" bgp router-id", " bgp bestpath as-path ignore\n bgp router-id"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("bgp")
    write("frr", build_of(IQ), out, BGP)
    return out


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_told(name, written):
    path = written / "0" / "frr.conf"
    before = path.read_text()
    try:
        change(path, *CHANGES[name])
        report = check("frr", build_of(IQ), written, BGP)
    finally:
        path.write_text(before)
    assert report.differences
    assert all(example.file.startswith(str(written)) for example in report.examples)


def test_only_all_switches_can_be_read(tmp_path):
    build = fabric("minimal")
    target("frr").render(build, tmp_path, options=BGP, only=[1])
    with pytest.raises(InputError, match="only the files of all switches together"):
        target("frr").check_emitted(build, tmp_path, BGP, only=[1])
