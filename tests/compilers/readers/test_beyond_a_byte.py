"""Numbers beyond a byte, of ports, classes and hosts, read back by every target."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from ipaddress import IPv6Network
from pathlib import Path

import pytest

from compilers.readers.emitted_report import EmittedReport
from compilers.spec.target_names import SHIPPED_SYSTEMS
from compilers.tables.build import Build
from compilers.targets.openflow.emitted_messages import check_messages
from compilers.targets.openflow.pipeline import require
from inventory.problems import InputError
from tests.compilers.readers.emitted import IDENTITY, check, write
from tests.compilers.routed import classes_from, ports_beyond_a_byte, routed

SMALL = {"srlinux", "opensm"}
"""They have no such ports."""
OPENFLOW = {"openflow", "ovs"}
SYSTEMS = sorted({*SHIPPED_SYSTEMS, "openflow"} - SMALL)


@cache
def large(first: int, hosts: int, *, spread: bool = False, protect: str = "none") -> Build:
    build = ports_beyond_a_byte(routed(q=2, hosts=hosts, spread=spread, protect=protect))
    addressing = replace(build.addressing, ipv6=IPv6Network("fd00::/48"))
    return classes_from(replace(build, identity=IDENTITY, addressing=addressing), first)


def read_back(name: str, build: Build, out: Path) -> EmittedReport:
    if name == "openflow":
        return check_messages(build)
    write(name, build, out)
    return check(name, build, out)


def test_hosts_of_opensm(tmp_path: Path) -> None:
    """420 of them, in groups of a lane; InfiniBand has no ports beyond a byte."""
    build, options = replace(routed(q=2, hosts=60), identity=IDENTITY), {"guids": "made-up"}
    write("opensm", build, tmp_path, options)
    assert agrees(check("opensm", build, tmp_path, options))


def agrees(report: EmittedReport) -> bool:
    assert report.examples == ()
    return report.differences == 0 and report.delivered == report.pairs == 42


@pytest.mark.parametrize("name", SYSTEMS)
def test_ports_and_classes(name: str, tmp_path: Path) -> None:
    assert agrees(read_back(name, large(254, 1), tmp_path))


@pytest.mark.parametrize("name", ["junos", "linux"])
def test_alternates(name: str, tmp_path: Path) -> None:
    assert agrees(read_back(name, large(254, 2, spread=True), tmp_path))


@pytest.mark.parametrize("name", sorted(OPENFLOW))
def test_alternates_in_groups(name: str, tmp_path: Path) -> None:
    """A class with alternates has four groups, of 1,024: 256 classes are all that there can be."""
    assert agrees(read_back(name, large(250, 2, spread=True), tmp_path))
    with pytest.raises(InputError, match=r"at most 1024 groups per switch .* given 1040"):
        require(large(254, 2, spread=True), name)


@pytest.mark.parametrize("name", ["frr", "ovs"])
def test_repair(name: str, tmp_path: Path) -> None:
    assert agrees(read_back(name, large(0, 2, spread=True, protect="link"), tmp_path))


@pytest.mark.parametrize("name", ["ovs"])
def test_hosts(name: str, tmp_path: Path) -> None:
    assert agrees(read_back(name, large(0, 270), tmp_path))
