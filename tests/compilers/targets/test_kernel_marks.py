"""Marked spread on Linux kernels, targets linux and frr: text, mutants, kernels that forward."""

import json
import re
from dataclasses import replace
from functools import cache
from ipaddress import IPv6Network

import numpy as np
import pytest

from compilers.proof.failures.failure_walks import walk_failures
from compilers.readers.devices.held_routes import MAIN_TABLE
from compilers.targets.linux.route_lines import kernel_remediation
from compilers.targets.linux.routing_tables import read
from compilers.targets.routed.linux_tables import kernel_tables
from compilers.targets.routed.static_routes import BuildRouters
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.readers.emitted import IDENTITY, change, check, write
from tests.compilers.routing.makers import loads_by_hand, marked
from tests.compilers.targets.kernels import on_kernels

FLOWS = 2000
PAIRS = [(0, 2), (0, 4), (5, 11)]
"""Of q = 3: over a switch between them, next to each other, and a quadric's."""


@cache
def fabric(q=3, protect="link", **more):
    build = marked(q, protect, **more)
    plan = replace(
        build.addressing, ipv6=IPv6Network("fd00::/48"), hierarchy=build.topology.hierarchy
    )
    return replace(build, identity=IDENTITY, addressing=plan)


@pytest.mark.parametrize(
    ("family", "q", "protect", "name", "options"),
    [
        ("polarfly", 3, "node", "linux", {}),
        ("polarfly", 3, "node", "frr", {"version": "10.7"}),
        ("oft", 2, "link", "frr", {}),
    ],
)
def test_every_file_says_what_the_tables_say(family, q, protect, name, options, tmp_path):
    build = fabric(q, protect, hosts=2, family=family)
    write(name, build, tmp_path, options)
    report = check(name, build, tmp_path, options)
    assert not report.differences
    assert report.delivered == report.pairs > 0


def test_a_table_spreads_over_all_links_but_the_last_and_its_apex(tmp_path):
    """By the words of the files and the cables alone, in both targets."""
    build = fabric()
    far = build.wiring.far
    near = [set(row[row >= 0].tolist()) for row in far]
    for name in ("linux", "frr"):
        write(name, build, tmp_path / name)
        for v in range(len(far)):
            files = tmp_path / name / str(v)
            for k, sender in enumerate(far[v].tolist()):
                if sender >= 0:
                    ports = spread_ports(files, int(build.wiring.port[v, k]))
                    after = near[v] - {sender} - near[sender]
                    names = {
                        f"eth{build.wiring.port[v, np.flatnonzero(far[v] == w)[0]]}" for w in after
                    }
                    assert ports == [names] * 2, (name, v, sender)


def spread_ports(files, port):
    """The interfaces over which packets that came in marked on a port leave, by family."""
    rules = (files / "rules.batch").read_text()
    (table,) = re.findall(rf"iif marked{port} lookup (\d+) pref 999 ", rules)
    if (files / "frr.conf").exists():
        text = (files / "frr.conf").read_text()
        said = re.findall(rf"^(ipv?6?) route \S+ \S+ (\S+) table {table}\b", text, re.M)
        return [{port for family, port in said if family == each} for each in ("ip", "ipv6")]
    text = (files / "routes.batch").read_text()
    hops = dict(re.findall(r"replace id (\d+) via \S+ dev (\S+)", text))
    groups = dict(re.findall(r"replace id (\d+) group (\S+)", text))
    paths = re.findall(rf"route replace \S+ nhid (\d+) metric 1 table {table} ", text)
    return [{hops[m.removesuffix(",1")] for m in groups[path].split("/")} for path in paths]


LINUX = [
    ("links.batch", "link add marked2 link eth2", "link add marked2 link eth1", "marked device"),
    ("links.batch", "80:00:06 type", "80:00:07 type", "marked device"),
    ("links.batch", "link set marked2 up\n", "", "marked2 is not set up"),
    ("addresses.batch", "fe80::1:0:6/64 dev marked3", "fe80::6/64 dev marked3", "fe80::6/64"),
    ("addresses.batch", "fe80::6/64 dev eth3", "fe80::1:0:6/64 dev eth3", "fe80::1:0:6/64"),
    ("addresses.batch", "address replace fe80::1:0:6/64 dev marked3 nodad\n", "", "nothing of it"),
    ("sysctl.conf", "hash_seed = 1346764806", "hash_seed = 1346764805", "hash_seed"),
    ("sysctl.conf", "net/ipv4/fib_multipath_hash_policy = 3", None, "hash_policy"),
    ("rules.batch", "iif marked1 lookup 100001", "iif marked1 lookup 100002", "table 100001"),
    (
        "rules.batch",
        "iif marked1 lookup 5001 pref 1000",
        "iif marked1 lookup 5002 pref 1000",
        "eth1",
    ),
    ("rules.batch", "lookup 100001 pref 999", "lookup 100001 pref 1001", "onward eth1"),
    ("routes.batch", "id 800003 group 500001,1/", "id 800003 group ", "onward"),
    (
        "routes.batch",
        "group 500001,1/500002,1/500004,1",
        "group 500001,2/500002,1/500004,1",
        "onward",
    ),
    (
        "routes.batch",
        "group 500001,1/500002,1/500004,1",
        "group 700001,1/500002,1/500004,1",
        "onward",
    ),
    ("routes.batch", "600001 group 500002,1/700001,1", "600001 group 500002,1/500001,1", "a mark"),
    ("routes.batch", "600001 group 500002,1", "600001 group 700002,1", "a mark"),
    ("routes.batch", "700002 via fe80::1:0:7 dev eth2", "700002 via fe80::1:0:8 dev eth2", "eth2"),
    ("routes.batch", "throw 10.0.0.4/30 metric 1 table 100001", None, "the same prefixes"),
    ("routes.batch", "throw 10.0.0.4/30", "throw 10.0.0.8/30", "the same prefixes"),
    ("routes.batch", "10.0.0.0/26 nhid 800001 metric 1 table 100001", None, "onward"),
    ("load.sh", "marked1 marked2", "marked2", "for device in"),
]
FRR = [
    ("links.batch", "scope host", "", "169.254.0.6/32"),
    ("links.batch", "throw 10.0.0.4/30 metric 1 table 100001", None, "the same prefixes"),
    ("links.batch", "169.254.0.6/32 dev marked2", "169.254.0.7/32 dev marked2", "169.254.0.7"),
    ("links.batch", "address replace 169.254.0.6/32 dev marked2 scope host\n", "", "without that"),
    ("sysctl.conf", "eth1/arp_ignore = 3", "eth1/arp_ignore = 0", "arp_ignore"),
    ("frr.conf", "eth1 table 100003", None, "onward"),
    ("frr.conf", "169.254.0.7 eth2 table 5000", "10.0.0.25 eth2 table 5000", "a mark"),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The files of both targets."""
    places = {name: tmp_path_factory.mktemp(name) for name in ("linux", "frr")}
    for name, folder in places.items():
        write(name, fabric(), folder)
    return places


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "says"),
    [*(("linux", *each) for each in LINUX), *(("frr", *each) for each in FRR)],
)
def test_what_marks_need_is_read_back(folders, name, file, old, new, says):
    path = folders[name] / "5" / file
    before = path.read_text()
    if new is None:  # the whole line
        gone = next(line for line in before.splitlines(keepends=True) if old in line)
        change(path, gone, "")
    else:
        change(path, old, new)
    near = fabric().wiring.far[5]
    report = target(name).check_emitted(fabric(), folders[name], only=[5, *near[near >= 0]])
    path.write_text(before)
    assert report.differences
    assert any(says in str(each) for each in report.examples), report.examples


def test_neighbours_are_thrown_on_by_all_tables(tmp_path):
    """What all tables of a switch lack is no less found than what one lacks."""
    build = fabric()
    write("linux", build, tmp_path)
    path = tmp_path / "5" / "routes.batch"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "throw 10.0.0.4/30" not in line))
    (found,) = check("linux", build, tmp_path).examples
    assert "thrown on 10.0.0.4/30" in str(found)


@pytest.mark.parametrize("name", ["linux", "frr"])
def test_a_port_named_as_a_device_is_refused(name, tmp_path):
    build = fabric()
    names = tuple((*of_type[:-1], "marked3") for of_type in build.wiring.port_names)
    taken = replace(build, wiring=replace(build.wiring, port_names=names))
    with pytest.raises(InputError, match=f"no port with the name of a device that target {name}"):
        write(name, taken, tmp_path)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """Render and bring up; returns the build, its files and what live_marks.py saw."""

    def bring_up(name):
        folder = tmp_path_factory.mktemp("marks")
        return on_kernels(fabric(), name, folder, PAIRS, FLOWS)

    return bring_up


@pytest.mark.live
@pytest.mark.parametrize("name", ["linux", pytest.param("frr", marks=pytest.mark.long)])
def test_kernels_carry_the_shares_that_paths_by_hand_have(live, name):
    """Every link of the fabric, in both families; then every pair answers around a cut link."""
    build, out, seen = live(name)
    far, loads = build.wiring.far, loads_by_hand("polarfly", 3)
    for (source, destination), by_family in zip(PAIRS, seen["sent"], strict=True):
        for sent in by_family:
            for v, k in np.argwhere(far >= 0).tolist():
                part = loads[v, int(far[v, k])][source, destination]
                deviation = (FLOWS * part * (1 - part)) ** 0.5
                close = pytest.approx(FLOWS * part, abs=5 * deviation + 12)
                assert sent[v][k] == close, (name, source, destination, v, int(far[v, k]))
    ttl = np.array(seen["pings"])
    apart = ~np.eye(len(far), dtype=bool)
    assert set(ttl[:, apart].ravel().tolist()) == {59, 60, 61, 62}
    down = np.array(seen["down"])
    longest = walk_failures(build, "link").max_hops
    assert down[:, apart].min() >= 63 - longest
    assert down[:, apart].max() == 62
    if name == "linux":
        shown = [json.loads(text) for text in seen["held"]]
        held = read([each for each in shown if each]).tables()
        expected = kernel_tables(BuildRouters.of(build), 5, {4: "ipv6", 6: "ipv6"})
        batch = (out / "5" / "routes.batch").read_text()
        routes = json.dumps([*shown[0], *shown[1]])
        assert not kernel_remediation(routes, json.dumps(shown[2]), batch)
        gone = json.dumps([one for one in (*shown[0], *shown[1]) if one.get("type") != "throw"])
        lacking = kernel_remediation(gone, json.dumps(shown[2]), batch)
        assert (len(lacking.add), lacking.remove) == (2 * 4 * 5, ())
        ours = expected.keys() - {MAIN_TABLE}
        assert {t: held.get(t, {}) for t in ours} == {t: expected[t] for t in ours}
