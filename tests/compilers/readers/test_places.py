"""Where a difference is, how often it is counted, and the port that packets of a text take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compilers.readers.emitted import change, check, fabric, write

SYSTEMS = ("linux", "frr", "sonic", "eos", "nxos", "junos", "srlinux", "nvue")


@pytest.mark.parametrize(
    ("name", "options", "old", "new"),
    [
        *((name, {}, "10.0.0.4/30", "fabric") for name in SYSTEMS),
        ("eos", {}, "10.0.0.0/27", "10.0.0.0/199"),
        ("frr", {"routing": "bgp"}, "network 10.0.0.0/30", "network fabric"),
        ("nvue", {"routing": "bgp"}, 'network: {"10.0.0.0/30"', 'network: {"fabric"'),
        ("linux", {}, "via fe80::4 dev", "via ge80::4 dev"),
        ("frr", {}, "fe80::4 eth2", "ge80::4 eth2"),
        ("ovs", {}, "arp_tpa=10.0.0.0/30", "arp_tpa=10.0.0.0/199"),
    ],
)
def test_what_is_no_prefix_or_address_has_its_line(
    name: str, options: dict[str, str], old: str, new: str, tmp_path: Path
) -> None:
    """One such text does not make the rest of its files unreadable."""
    write(name, fabric("minimal"), tmp_path, options)
    path = next(p for p in sorted((tmp_path / "0").iterdir()) if old in p.read_text())
    line = change(path, old, new)
    report = check(name, fabric("minimal"), tmp_path, options)
    assert any(e.file == str(path) and abs(e.line - line) < 4 for e in report.examples)
    assert not any("not understood" in str(example) for example in report.examples)


def test_a_stranger_is_one_difference(tmp_path: Path) -> None:
    write("linux", fabric("minimal"), tmp_path)
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "links.batch").write_text("")
    report = check("linux", fabric("minimal"), tmp_path)
    assert (report.differences, len(report.examples)) == (1, 1)


def test_a_class_without_a_row_is_missed_in_the_flows(tmp_path: Path) -> None:
    write("ovs", fabric("minimal"), tmp_path)
    path = tmp_path / "0" / "flows.txt"
    lines = path.read_text().splitlines()
    row = next(text for text in lines if text.startswith("table=2,") and ",metadata=1/" in text)
    path.write_text("\n".join(text for text in lines if text != row))
    places = {(e.file, e.line) for e in check("ovs", fabric("minimal"), tmp_path).examples}
    assert (str(path), 0) in places
    assert (str(path.with_name("groups.txt")), 0) not in places
