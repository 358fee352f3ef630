"""What OpenSM gets, read back: as it is, and changed by a line."""

import pytest

from tests.compilers.readers.emitted import change, check, fabric, write
from tests.compilers.routed import routed

OPTIONS = {"guids": "made-up"}


def subnet(out, case="two hosts"):
    build = fabric(case)
    write("opensm", build, out, OPTIONS)
    return build


@pytest.mark.parametrize("case", ["minimal", "two hosts", "aggregates"])
def test_no_differences(case, tmp_path):
    build = subnet(tmp_path, case)
    report = check("opensm", build, tmp_path, OPTIONS)
    order = int(build.topology.endpoints.sum())
    assert (report.differences, report.examples) == (0, ())
    assert report.delivered == report.pairs == order * (order - 1)


MUTANTS = [
    ("lfts.txt", " 001 portguid", " 002 portguid"),
    ("lfts.txt", " 004 portguid", " 005 portguid"),
    ("lfts.txt", "0x0002 004 portguid 0x0250460000010003\n", ""),
    ("lfts.txt", "0x0002 004", "0x0003 004"),
    ("lfts.txt", "portguid 0x0250460000010003", "portguid 0x0250460000010009"),
    ("lfts.txt", "0x0002 004 portguid", "0x0002 4 portguid"),
    ("lfts.txt", "Unicast lids guid 0x0250460000020000", "Unicast lids guid 0x0250460000030000"),
    ("fabric.net", '"S-0250460000020000"[1]', '"S-0250460000020000"[2]'),
    ("fabric.net", '# "h1-0"', '# "h1-1"'),
    ("fabric.net", "switchguid=", "switch="),
    # ibsim does not start with these: an empty line ends a device.
    ("fabric.net", "[1](250460000010003)", "\n[1](250460000010003)"),
    ("fabric.net", "switchguid=", "\nswitchguid="),
    ("qos-policy.conf", "destination: 1 lane 1", "destination: 3 lane 1"),
    ("qos-policy.conf", "sl: 1", "sl: 0"),
    ("qos-policy.conf", "port-guid: 0x0250460000020003, ", "port-guid: "),
    ("fabric.topo", "P1 -> switch_5 1 P1", "P1 -> switch_5 1 P2"),
    ("fabric.topo", "-> adapter h0-0 P1", "-> adapter h0-1 P1"),
    ("fabric.topo", "-> adapter h0-0 P1", "-> switch_5 h0-0 P1"),
    ("switch_5.ibnl", "2 -> P2", "2 -> P3"),
    ("hosts.env", "UCX_IB_NUM_PATHS=1", "UCX_IB_NUM_PATHS=2"),
    ("opensm.conf", "file,no_fallback", "file"),
    ("opensm.conf", "qos_sl2vl 0,1", "qos_sl2vl 0,0"),
    ("opensm.conf", "qos TRUE", "qos FALSE"),
]


@pytest.mark.parametrize(("name", "old", "new"), MUTANTS)
def test_a_changed_line_is_named(name, old, new, tmp_path):
    build = subnet(tmp_path)
    line = change(tmp_path / name, old, new)
    report = check("opensm", build, tmp_path, OPTIONS)
    assert report.differences
    places = [(e.file, e.line) for e in report.examples if e.file == str(tmp_path / name)]
    assert places, report.examples
    if name == "lfts.txt" and "Unicast" not in old:
        assert any(abs(at - line) <= 2 for _, at in places), (line, report.examples)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (
            "lfts.txt",
            "0x0003 001 portguid 0x0250460000010003",
            "0x0003 002 portguid 0x0250460000010003",
        ),
        ("lfts.txt", "0x0003 006 portguid", "0x0002 006 portguid"),
        ("opensm.conf", "lmc 1", "lmc 0"),
        ("qos-policy.conf", "sl: 3", "sl: 2"),
        ("hosts.env", "UCX_IB_LID_PATH_BITS=0-1", "UCX_IB_LID_PATH_BITS=0-3"),
    ],
)
def test_a_changed_line_of_several_lids_is_named(name, old, new, tmp_path):
    build, options = routed(q=4), OPTIONS | {"lmc": "1"}
    write("opensm", build, tmp_path, options)
    change(tmp_path / name, old, new)
    report = check("opensm", build, tmp_path, options)
    assert report.differences
    assert {e.file for e in report.examples} == {str(tmp_path / name)}


def test_a_loop_is_not_delivered(tmp_path):
    """Pairs are followed by the files' own ports and cables."""
    build = subnet(tmp_path, "minimal")
    file = tmp_path / "lfts.txt"
    text = file.read_text()
    head = "Unicast lids guid 0x0250460000010000\n"
    block = text.index(head)
    row = next(t for t in text[block:].splitlines() if t.endswith("0x0250460000030003"))
    change(file, row, row.replace(row.split()[1], "001"))
    blocks = file.read_text().split("Unicast")
    own = next(t for t in blocks[2].splitlines() if t.endswith("0x0250460000030003"))
    blocks[2] = blocks[2].replace(own, own.replace(f" {own.split()[1]} ", " 001 "))
    file.write_text("Unicast".join(blocks))
    report = check("opensm", build, tmp_path, OPTIONS)
    assert report.pairs - report.delivered >= 1


def test_files_that_are_not_there(tmp_path):
    build = subnet(tmp_path)
    (tmp_path / "fabric.net").unlink()
    report = check("opensm", build, tmp_path, OPTIONS)
    (example,) = report.examples
    assert (example.file, example.line) == (str(tmp_path / "fabric.net"), 0)
