"""Files of targets linux and frr, read back: nothing differs, and every change is told."""

from __future__ import annotations

import pytest

from tests.compilers.readers.emitted import change, check, check_switch, fabric, write

OPTIONS = {"linux": {}, "frr": {}, "frr 10.7": {"version": "10.7", "bfd": "on"}}
LINUX = {
    "another way": (
        "routes.batch",
        "nhid 500001 metric 1 table 254",
        "nhid 500002 metric 1 table 254",
    ),
    "another order": ("routes.batch", "metric 2 table 254", "metric 9 table 254"),
    "another table": ("routes.batch", "metric 1 table 5001", "metric 1 table 5002"),
    "another prefix": ("routes.batch", "replace 10.0.0.8/29 nhid", "replace 10.0.0.16/29 nhid"),
    "a foreign prefix": ("routes.batch", "replace 10.0.0.8/29 nhid", "replace 10.9.0.8/29 nhid"),
    "a discarded block": ("routes.batch", "unreachable 10.0.0.0/25", "unreachable 10.0.0.8/29"),
    "another weight": ("routes.batch", "500001,1/", "500001,2/"),
    "another member": ("routes.batch", "group 500001,1", "group 500009,1"),
    "another gateway": ("routes.batch", "via fe80::2 ", "via fe80::3 "),
    "another link": ("routes.batch", "dev eth1 ", "dev eth2 "),
    "a new route": ("routes.batch", "# 0:", "route add 10.0.0.8/29 blackhole\n# 0:"),
    "its own address": ("addresses.batch", "fe80::1/64", "fe80::2/64"),
    "its gateway": ("addresses.batch", "10.0.0.1/29", "10.0.0.2/29"),
    "a shorter block": ("addresses.batch", "10.0.0.1/29", "10.0.0.1/28"),
    "another rule": ("rules.batch", "iif eth1 lookup 5001", "iif eth1 lookup 5002"),
    "no rule": ("rules.batch", "rule add iif hosts lookup 5000 pref 1000 protocol 80\n", ""),
    "a late rule": ("rules.batch", "pref 1000", "pref 40000"),
    "another far end": ("links.batch", "alias 1", "alias 2"),
    "a link that is down": ("links.batch", "link set eth1 up\n", ""),
    "a port of a host": ("links.batch", "link set eth5 master hosts up\n", ""),
    "a setting": ("sysctl.conf", "ip_forward = 1", "ip_forward = 0"),
}
FRR = {
    "another way": ("frr.conf", "eth2 onlink", "eth3 onlink"),
    "another order": ("frr.conf", " 2 onlink", " 9 onlink"),
    "another table": ("frr.conf", "table 5001", "table 5002"),
    "another gateway": ("frr.conf", "ip route 10.0.0.8/29 10.", "ip route 10.0.0.8/29 11."),
    "not found": ("frr.conf", " onlink", ""),
    "its own address": ("frr.conf", "fe80::1/64", "fe80::2/64"),
    "a route less": ("frr.conf", "ip route 10.0.0.8/29", "!"),
    "another far end": ("frr.conf", "description 1 ", "description 2 "),
    "a discarded block": ("frr.conf", "10.0.0.0/25 reject", "10.0.0.8/29 reject"),
    "another protocol": ("frr.conf", "interface lo", "router ospf\n!\ninterface lo"),
}


@pytest.mark.parametrize(
    ("system", "name"),
    [
        *(("linux", name) for name in ("minimal", "spread, repaired", "aggregates", "spines")),
        *(("frr", name) for name in ("repaired", "spread, two hosts", "aggregates")),
        ("frr 10.7", "spread, repaired"),
    ],
)
def test_nothing_differs(system, name, tmp_path):
    target, build = system.split()[0], fabric(name)
    write(target, build, tmp_path, OPTIONS[system])
    report = check(target, build, tmp_path, OPTIONS[system])
    ends = int(build.topology.endpoints.sum())
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered == ends * (ends - 1)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("routers")
    for target in ("linux", "frr"):
        write(target, fabric("spread, repaired"), out / target)
    return out


@pytest.mark.parametrize(
    ("target", "mutant"), [("linux", word) for word in LINUX] + [("frr", word) for word in FRR]
)
def test_a_change_is_told(target, mutant, written):
    file, old, new = (LINUX if target == "linux" else FRR)[mutant]
    path = written / target / "0" / file
    before = path.read_text()
    try:
        change(path, old, new)
        report = check_switch(target, fabric("spread, repaired"), written / target, 0)
    finally:
        path.write_text(before)
    assert report.differences
    assert all(example.file.startswith(str(written / target)) for example in report.examples)
    # A neighbour's next hop tells that a switch has another address than it should.
    assert mutant == "its own address" or any(
        str(path.parent) in example.file for example in report.examples
    )


def test_the_same_address_on_two_switches(tmp_path):
    write("linux", fabric("minimal"), tmp_path)
    path = tmp_path / "0" / "addresses.batch"
    path.write_text(path.read_text().replace("fe80::1/", "fe80::7/"))
    other = next(p for p in tmp_path.glob("*/routes.batch") if "via fe80::1 " in p.read_text())
    report = check("linux", fabric("minimal"), tmp_path)
    told = [str(example) for example in report.examples]
    assert any(f"{path}:" in text and "fe80::7" in text for text in told)
    assert any(str(other) in text and "fe80::1 behind" in text for text in told)


def test_switches_that_are_not_there(tmp_path):
    write("linux", fabric("minimal"), tmp_path)
    (tmp_path / "3").rename(tmp_path / "stranger")
    report = check("linux", fabric("minimal"), tmp_path)
    told = " ".join(map(str, report.examples))
    assert f"{tmp_path}/3/" in told
    assert f"{tmp_path}/stranger: files of a switch" in told
    assert report.delivered < report.pairs
