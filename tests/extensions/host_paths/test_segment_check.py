"""Target srv6 read back: carriers followed through the switches' files, and changes to a line."""

import pytest

from compilers.targets.rendering.plane_check import check_planes
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.readers.emitted import change, check, fabric, write

MODES = ["host", "switch"]


@pytest.mark.parametrize("decap", MODES)
@pytest.mark.parametrize("case", ["minimal", "two hosts", "spread"])
def test_no_differences(case, decap, tmp_path):
    build = fabric(case)
    write("srv6", build, tmp_path, {"decap": decap})
    report = check("srv6", build, tmp_path, {"decap": decap})
    order = build.tables.switches
    assert (report.differences, report.examples) == (0, ())
    assert report.delivered == report.pairs == order * (order - 1)


def test_one_host_only(tmp_path):
    build = fabric("spread")
    write("srv6", build, tmp_path, {"host": "h9"})
    report = check("srv6", build, tmp_path)
    assert report.passed
    assert report.pairs == build.tables.switches - 1


def test_some_switches_only_are_not_followed(tmp_path):
    build = fabric("minimal")
    target("srv6").render(build, tmp_path, only=[1])
    with pytest.raises(InputError, match="only the files of all switches together"):
        target("srv6").check_emitted(build, tmp_path, only=[1])


SWITCH = [
    ("fc00:0:1003::/48 via", "fc00:0:1033::/48 via"),
    ("action End flavors", "action End.DT6 flavors"),
    ("oif eth1", "oif eth2"),
    ("lblen 32", "lblen 48"),
]


@pytest.mark.parametrize(("old", "new"), SWITCH)
def test_a_changed_row_of_a_switch_is_named(old, new, tmp_path):
    build = fabric("minimal")
    write("srv6", build, tmp_path)
    file = tmp_path / "0" / "srv6.batch"
    line = change(file, old, new)
    report = check("srv6", build, tmp_path)
    assert not report.passed
    named = {(e.file, e.line) for e in report.examples}
    assert (str(file), line) in named or str(tmp_path / "0" / "srv6.conf") in dict(named)


def test_a_row_that_matches_three_usids_is_named(tmp_path):
    """It was taken for a row of the first uSID, and passed beside that one."""
    build = fabric("minimal")
    write("srv6", build, tmp_path)
    named = set()
    for name, row in (
        ("srv6.batch", "route replace {} via {} dev {} protocol 80\n"),
        ("srv6.conf", "ipv6 route {} {} {}\n"),
    ):
        file = tmp_path / "0" / name
        right = row.format("fc00:0:1003::/48", "fe80::4", "eth2")
        wrong = row.format("fc00:0:1003:1002:1001::/80", "fe80::2", "eth1")
        named.add((str(file), change(file, right, right + wrong)))
    report = check("srv6", build, tmp_path)
    assert named <= {(example.file, example.line) for example in report.examples}


HOST = [
    ("segs fc00:0:1002:", "segs fc00:0:1003:"),
    (",4", ",5"),
    (":a000:e000::", ":a001:e000::"),
    ("fd00:0:0:3::2/128", "fd00:0:0:4::22/128"),
    ("via fd00::1", "via fd00::9"),
    ("local fc00:0:a000:e000::/64", "local fc00:0:a000:e000:0:1::/64"),
    ("local fc00:0:a000:e000::/64", "local fc00:0:a000:e000::/063"),
    ("local fc00:0:a000:e000::/64", "local fc00:0:a000:g000::/64"),
    (",4", ",04"),
    ("route replace fd00:0:0:3::2/128", "# route replace fd00:0:0:3::2/128"),
]


@pytest.mark.parametrize(("old", "new"), HOST)
def test_a_changed_row_of_a_host_is_named(old, new, tmp_path):
    build = fabric("spread")
    write("srv6", build, tmp_path, {"host": "h0"})
    file = tmp_path / "hosts" / "h0" / "host.batch"
    old = old.replace(",4", ",1/")
    change(file, old, new.replace(",5", ",5/").replace(",04", ",01/"))
    report = check("srv6", build, tmp_path)
    assert not report.passed
    places = [e.line for e in report.examples if e.file == str(file)]
    assert places, report.examples


def test_frr_says_the_same(tmp_path):
    build = fabric("minimal")
    write("srv6", build, tmp_path)
    file = tmp_path / "0" / "srv6.conf"
    line = change(
        file, "ipv6 route fc00:0:1003::/48 fe80::4 eth2", "ipv6 route fc00:0:1003::/48 fe80::2 eth1"
    )
    (example,) = check("srv6", build, tmp_path).examples
    assert (example.file, example.line) == (str(file), line)


def test_the_target_is_found_by_its_files(tmp_path):
    build = fabric("minimal")
    write("srv6", build, tmp_path)
    (report,) = check_planes([build], tmp_path)
    assert (report.target, report.passed) == ("srv6", True)
