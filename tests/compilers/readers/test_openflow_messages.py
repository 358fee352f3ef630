"""The messages that a controller sends: as the frameworks read them, and against the tables."""

import struct
from dataclasses import replace

import pytest

from compilers.readers.openflow.rows import Malformed
from compilers.targets.openflow.emitted_messages import check_messages, message_text
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.profiles import PROFILES
from tests.compilers.evaluation.test_guarantee import compiled
from tests.compilers.profiled import with_profile
from tests.compilers.readers.emitted import IDENTITY, check, fabric, write
from tests.compilers.readers.framework_reader import FrameworkReader


@pytest.mark.parametrize(
    ("case", "package"),
    [
        ("two hosts", "os_ken"),
        ("spread, repaired", "ryu"),
        ("spread, repaired", "os_ken"),
        ("aggregates", "ryu"),
    ],
)
def test_a_framework_reads_the_same_rows_and_groups(case, package):
    encoder, framework = Encoder(fabric(case)), FrameworkReader(package)
    for vertex in range(6):
        data = b"".join(encoder.program(vertex).parts)
        text = message_text(data)
        assert (text.flows, text.groups) == framework.texts(data)


@pytest.mark.parametrize("case", ["minimal", "spread, repaired"])
def test_no_differences(case):
    report = check_messages(fabric(case))
    assert (report.differences, report.examples) == (0, ())
    assert report.delivered == report.pairs > 0


ONE_TABLE = replace(PROFILES["few-buckets"], tables=1)
SHAPES = {**PROFILES, "one table, few buckets": ONE_TABLE}
SHAPES["two ports"] = replace(PROFILES["few-buckets"], buckets=2)


@pytest.mark.parametrize(
    ("shape", "case"),
    [(shape, "spread, repaired") for shape in list(SHAPES)[1:]]
    + [("openflow13", "aggregates"), ("single-table", "spines")],
)
def test_programs_of_every_profile_do_what_the_tables_say(shape, case):
    build = fabric(case)
    profiles = [SHAPES[shape]] * build.tables.switches
    report = check_messages(build, profiles=profiles)
    assert (report.differences, report.examples) == (0, ())
    assert report.delivered == report.pairs > 0
    encoder = Encoder(build, profiles)
    for vertex in range(4):
        assert sum(map(len, encoder.program(vertex).flows)) == encoder.row_count(vertex)


@pytest.mark.parametrize("shape", list(SHAPES)[1:])
def test_the_text_of_every_profile_reads_back(shape, tmp_path):
    build = with_profile(fabric("spread, repaired"), SHAPES[shape])
    write("ovs", build, tmp_path)
    assert check("ovs", build, tmp_path).passed
    encoder, framework = Encoder(build), FrameworkReader("ryu")
    for vertex in range(3):
        data = b"".join(encoder.program(vertex).parts)
        text = message_text(data)
        assert (text.flows, text.groups) == framework.texts(data)


def test_intermediates_need_no_fourth_table(tmp_path):
    """The fourth table answers neighbour solicitations."""
    build = replace(compiled("polarfly q=3", "balance: valiant"), identity=IDENTITY)
    build = with_profile(build, replace(PROFILES["openflow13-ovs"], tables=3))
    write("ovs", build, tmp_path)
    assert check("ovs", build, tmp_path).passed
    assert check_messages(build).passed


MUTANTS = [
    (struct.pack(">HHLH", 0, 16, 1, 0), struct.pack(">HHLH", 0, 16, 2, 0)),
    (struct.pack(">QQ", 2, 0xFFFF), struct.pack(">QQ", 1, 0xFFFF)),
    (struct.pack(">QQ", 2, 0xFFFF), struct.pack(">QQ", 2, 0xFF)),
    (struct.pack(">HHL", 22, 8, 2), struct.pack(">HHL", 22, 8, 1)),
    (bytes.fromhex("025046000001"), bytes.fromhex("025046000002")),
    (struct.pack(">HBB4B", 0x8000, 12 << 1 | 1, 8, 10, 0, 0, 8), b"\x80\0\x19\x08\x0a\0\0\x18"),
]


MUTATED = ["output", "class", "class & 0xFF", "group", "gateway", "block"]


@pytest.mark.parametrize(("old", "new"), MUTANTS, ids=MUTATED)
def test_changed_bytes_are_a_difference(old, new, monkeypatch):
    changed = FlowProgram.parts.fget
    parts = lambda program: [part.replace(old, new) for part in changed(program)]  # noqa: E731
    build = fabric("two hosts")
    monkeypatch.setattr(FlowProgram, "parts", property(parts))
    assert old in b"".join(changed(Encoder(build).program(0)))
    report = check_messages(build)
    assert not report.passed
    assert report.examples


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (1, "messages that add rows and groups"),
        (25, "command"),
        (27, "stays"),
        (29, "stays"),
        (35, "buffer"),
        (45, "without flags"),
    ],
)
def test_a_row_that_is_not_just_added_is_refused(place, told):
    """Its type, command, timeouts, buffer and flags (OpenFlow 1.3.5, 7.3.4.1)."""
    message = bytearray(Encoder(fabric("minimal")).program(0).flows[-1].tobytes())
    message[24 + place] ^= 2
    with pytest.raises(Malformed, match=told):
        message_text(bytes(message))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("80000004", "80000204", "a match without field 1 "),
        ("0000232000060030", "000023200006002f", "a move of a whole field"),
    ],
)
def test_what_no_row_has_is_refused(old, new, told):
    """A field to match, and a move of 47 of 48 bits."""
    rows = b"".join(Encoder(fabric("minimal")).program(0).parts)
    assert bytes.fromhex(old) in rows
    with pytest.raises(Malformed, match=told):
        message_text(rows.replace(bytes.fromhex(old), bytes.fromhex(new)))
