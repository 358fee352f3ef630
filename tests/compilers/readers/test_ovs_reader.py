"""flows.txt and groups.txt, read back: nothing differs, and every change of a line is told."""

from __future__ import annotations

import pytest

from tests.compilers.readers.emitted import change, check, check_switch, fabric, write

MUTANTS = {
    "another class": ("flows.txt", "metadata:1/0xffff", "metadata:2/0xffff"),
    "no mask": ("flows.txt", "metadata:1/0xffff", "metadata:1/0xff"),
    "all bits": ("flows.txt", "metadata:1/0xffff,goto", "metadata:1,goto"),
    "a class of all bits": ("flows.txt", "metadata=1/0xffff,actions", "metadata=1,actions"),
    "another prefix": ("flows.txt", "ip_dst=10.0.0.8/29", "ip_dst=10.200.0.8/29"),
    "another priority": ("flows.txt", "table=1,priority=29", "table=1,priority=30"),
    "another group": ("flows.txt", "actions=group:1\n", "actions=group:2\n"),
    "another port in": ("flows.txt", "in_port=1,metadata", "in_port=2,metadata"),
    "another host": ("flows.txt", "ip_dst=10.0.0.2,", "ip_dst=10.0.0.3,"),
    "a host's MAC": ("flows.txt", "02:00:00:00:00:01->eth_dst", "02:00:00:00:00:02->eth_dst"),
    "a host's port": ("flows.txt", "->eth_dst,output:5", "->eth_dst,output:4"),
    "another source": ("flows.txt", "ip_src=10.0.0.2,", "ip_src=10.0.0.3,"),
    "any source": ("flows.txt", "ip_src=10.0.0.2,", ""),
    "a port that is not guarded": (
        "flows.txt",
        "10,in_port=5,actions=drop",
        "10,in_port=3,actions=drop",
    ),
    "not a host": ("flows.txt", "ip,in_port=5,eth_dst", "ip,in_port=3,eth_dst"),
    "another gateway": ("flows.txt", "eth_dst=02:50:46:00:00:01", "eth_dst=02:50:46:00:00:02"),
    "another build": ("flows.txt", "0x50470123456789ab", "0x50470123456789ac"),
    "a flag": ("flows.txt", "0xe0000000", "0xc0000000"),
    "a new row": ("flows.txt", "# Routes", "table=0,priority=9,actions=drop\n# Routes"),
    "another output": (
        "groups.txt",
        "watch_port:1,actions=output:1",
        "watch_port:1,actions=output:2",
    ),
    "another order": (
        "groups.txt",
        "watch_port:3,actions=output:3,bucket=watch_port:4,actions=output:4",
        "watch_port:4,actions=output:4,bucket=watch_port:3,actions=output:3",
    ),
    "another weight": ("groups.txt", "weight:1,watch", "weight:2,watch"),
    "to a host": ("groups.txt", "watch_port:1,actions=output:1", "watch_port:5,actions=output:5"),
    "not back": ("groups.txt", "actions=in_port", "actions=output:1"),
    "one more of the TTL": ("groups.txt", "actions=output:1", "actions=dec_ttl,output:1"),
    "another type": ("groups.txt", "type=fast_failover", "type=select"),
}
ELSEWHERE = {"another port in"}
"""What a row no longer does, nobody says: the row that is met instead is told."""


@pytest.mark.parametrize("name", ["minimal", "spread, repaired", "aggregates"])
def test_nothing_differs(name, tmp_path):
    write("ovs", fabric(name), tmp_path)
    report = check("ovs", fabric(name), tmp_path)
    ends = int(fabric(name).topology.endpoints.sum())
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered == ends * (ends - 1)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("ovs")
    write("ovs", fabric("spread, repaired"), out)
    return out


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_change_is_told_with_its_line(mutant, written):
    file, old, new = MUTANTS[mutant]
    path = written / "0" / file
    before = path.read_text()
    try:
        line = change(path, old, new)
        report = check_switch("ovs", fabric("spread, repaired"), written, 0)
        told = [(example.file, example.line) for example in report.examples]
        assert report.differences
        assert mutant in ELSEWHERE or (str(path), line) in told
        assert all(place.startswith(str(path.parent)) for place, _ in told)
    finally:
        path.write_text(before)


@pytest.fixture(scope="module")
def spines(tmp_path_factory):
    """Switches with classes that no route uses, and spines that have no hosts."""
    out = tmp_path_factory.mktemp("spines")
    write("ovs", fabric("spines"), out)
    return out


UNMET = {
    "a group that no packet reaches": ("0", lambda group: group == 1),
    "a class that no route uses": ("0", lambda group: group == 7),
    "packets from hosts at a spine": ("20", lambda group: 14 <= group <= 19),
}


@pytest.mark.parametrize("kind", UNMET)
def test_groups_that_no_packet_meets_are_checked(kind, spines):
    node, chosen = UNMET[kind]
    path = spines / node / "groups.txt"
    before = path.read_text().splitlines()
    try:
        number, line = next(
            (number, line)
            for number, line in enumerate(before, 1)
            if line.startswith("group_id=") and chosen(int(line[9 : line.index(",")]))
        )
        edited = line.replace("output:1", "output:0").replace("output:2", "output:1")
        path.write_text("\n".join([*before[: number - 1], edited, *before[number:]]) + "\n")
        report = check("ovs", fabric("spines"), spines)
        assert report.differences
        assert any(f"{path}:{number}:" in str(example) for example in report.examples)
    finally:
        path.write_text("\n".join(before) + "\n")


def test_a_class_that_no_route_uses_is_missed(spines):
    paths = [spines / "0" / name for name in ("flows.txt", "groups.txt")]
    before = [path.read_text() for path in paths]
    try:
        rows = before[0].splitlines()
        ours = [row for row in rows if "metadata=7/" in row or "metadata=0x10007/" in row]
        ours += [row for row in rows if "metadata=65543/" in row]
        groups = {row.rpartition("group:")[2] for row in ours}
        paths[0].write_text("\n".join(row for row in rows if row not in ours) + "\n")
        kept = [
            line
            for line in before[1].splitlines()
            if line.partition(",")[0].removeprefix("group_id=") not in groups
        ]
        paths[1].write_text("\n".join(kept) + "\n")
        report = check("ovs", fabric("spines"), spines)
        assert "packets of class 7 from port eth1 leave by no port" in str(report.examples)
    finally:
        for path, text in zip(paths, before, strict=True):
            path.write_text(text)
