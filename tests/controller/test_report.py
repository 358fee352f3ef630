import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from controller.reporter import LINES_AT_ONCE, PROGRESS_PERIOD, STATUS_AGE, Reporter
from controller.switches.current import Current
from controller.switches.events import (
    FabricComplete,
    ProgramRefused,
    SwitchConnected,
    SwitchLeft,
    SwitchProgrammed,
)
from controller.upkeep.background import in_thread
from inventory.problems import InputError


class Fabric:
    """A fabric as the reporter sees it."""

    identity, expected = "0123456789abcdef", 13
    current = Current(identity, (), SimpleNamespace(by_datapath_id=range(expected)))

    def __init__(self):
        self.events, self.programmed = [], 0
        self.tell = self.events.append

    @property
    def complete(self):
        return self.programmed == self.expected

    def take_events(self):
        events = [*self.events]
        self.events.clear()
        return events

    def missing(self):
        return [str(v) for v in range(self.programmed, self.expected)]

    def status(self):
        return {"programmed": self.programmed}

    def state(self):
        return SimpleNamespace(status=self.status(), role={"role": "leader"})


@pytest.fixture
def fabric():
    return Fabric()


@pytest.fixture
def lines():
    return []


STAMP = "2001-09-09T01:46:40Z "


def reporter(fabric, lines, **options):
    """A reporter at one second of 2001, and its lines without that second."""

    def write(line):
        assert line.startswith(STAMP) or options.get("as_json")
        lines.append(line.removeprefix(STAMP))

    return Reporter(fabric, fabric.state, write, time_of_day=lambda: 1e9, **options)


def test_many_events_share_a_line(fabric, lines):
    fabric.events = [SwitchLeft(str(v)) for v in range(13)]
    reporter(fabric, lines).report(fabric.take_events())
    assert lines[: LINES_AT_ONCE + 1] == [
        *(f"switch {v} left" for v in range(5)),
        "8 more of these, the first: switch 5 left",
    ]


def test_a_name_from_outside_forges_no_line(fabric, lines):
    """An uploaded build whose family had a newline and ESC in its name did."""
    name = "family 'x\n2026-11-30T00:00:00Z link 0-1 is \x1b[31m'"
    fabric.events = [ProgramRefused("leaf", name, 5, 1, "row 7", 2)]
    reporter(fabric, lines).report(fabric.take_events())
    assert "".join(lines).isprintable()
    assert r"'x\n2026-11-30T00:00:00Z link 0-1 is \x1b[31m'" in lines[0]


def test_progress_is_told_once_a_while(fabric, lines):
    r, now = reporter(fabric, lines), [0.0]
    r.clock = lambda: now[0]
    for fabric.programmed in range(1, 5):
        now[0] += PROGRESS_PERIOD / 2
        r.report(fabric.take_events())
    now[0] += PROGRESS_PERIOD * 2
    r.report(fabric.take_events())
    assert lines == ["3/13 programmed", "4/13 programmed"]


def test_many_programmed_are_one_line_and_completion_has_its_time(fabric, lines):
    fabric.programmed = 13
    fabric.events = [
        SwitchConnected("0", "0000000000000001", "192.0.2.1:40000"),
        *[SwitchProgrammed(str(v), 1.0) for v in range(13)],
        FabricComplete("x", 13, 2.5),
    ]
    reporter(fabric, lines).report(fabric.take_events())
    assert lines == ["13/13 programmed in 2.50 s: the fabric is complete"]


def test_json_is_a_line_an_event(fabric, lines):
    fabric.events = [
        SwitchProgrammed("3", 0.25, at=1e9),
        ProgramRefused("4", "why", 5, 1, "row 7", 2, at=1e9 + 0.00049),
    ]
    reporter(fabric, lines, as_json=True).report(fabric.take_events())
    assert [json.loads(line) for line in lines] == [
        {
            "event": "programmed",
            "at": 1e9,
            "node": "3",
            "text": "",
            "switch": "3",
            "seconds": 0.25,
        },
        {
            "event": "refused",
            "at": 1e9,
            "node": "4",
            "text": "why",
            "switch": "4",
            "reason": "why",
            "error_type": 5,
            "error_code": 1,
            "entry": "row 7",
            "errors": 2,
        },
    ]


def test_the_status_file_is_there_at_once_and_follows(fabric, lines, tmp_path):
    path = tmp_path / "status.json"
    r = reporter(fabric, lines, status_file=path)
    r.start("here", fabric.current)
    assert json.loads(path.read_text()) == {"programmed": 0}
    fabric.programmed = 2
    r.report(fabric.take_events())
    assert json.loads(path.read_text()) == {"programmed": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["status.json"]


def test_a_status_file_that_cannot_be_written_is_an_input_error(fabric, lines, tmp_path):
    with pytest.raises(InputError, match="status_file"):
        reporter(fabric, lines, status_file=tmp_path / "no" / "status.json").start(
            "here", fabric.current
        )


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_fails_keeps_no_controller_from_starting(
    fabric, lines, tmp_path, monkeypatch, error
):
    """Started again during a trial it ended, so that the trial did not fall back."""

    def fails(*_, **__):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(Path, "write_text", fails)
    r = reporter(fabric, lines, status_file=tmp_path / "status.json")
    r.start("here", fabric.current)
    r.report(fabric.take_events())
    assert [line for line in lines if os.strerror(error) in line]


@pytest.mark.parametrize("took", [0.1, 5.0])
def test_what_is_told_stands_in_the_status_however_long_that_takes(fabric, tmp_path, took):
    file, now = tmp_path / "status.json", [0.0]
    stood = []
    write = lambda _: stood.append(json.loads(file.read_text()))  # noqa: E731
    r = Reporter(fabric, fabric.state, write, status_file=file)

    def status():
        now[0] += took
        return {"programmed": fabric.programmed}

    r.clock, fabric.status = lambda: now[0], status
    r.report(fabric.take_events())
    fabric.programmed, fabric.events = 1, [SwitchLeft("4")]
    r.report(fabric.take_events())
    assert stood == [{"programmed": 1}]
    fabric.programmed, now[0] = 2, now[0] + STATUS_AGE
    r.report(fabric.take_events())
    assert json.loads(file.read_text()) == {"programmed": 2}


def test_a_status_file_that_cannot_be_written_is_told_once(fabric, lines, tmp_path):
    now = [0.0]
    r = reporter(fabric, lines, status_file=tmp_path / "none" / "status.json")

    def status():
        now[0] += 0.05
        return {}

    r.clock, fabric.status = lambda: now[0], status
    for _ in range(12):
        r.report(fabric.take_events())
        now[0] += 0.25
    (line,) = lines
    assert line.startswith("cannot write")


def test_a_status_file_whose_disk_hangs_keeps_nothing_waiting(fabric, lines, tmp_path, disk):
    """Repairs stopped for as long, and switches left. The newest status is written afterwards."""
    file, now, writes = tmp_path / "status.json", [0.0], []

    def start(work):
        writes.append(in_thread(work))
        return writes[-1]

    r = reporter(fabric, lines, status_file=file, start_write=start)
    r.clock = lambda: now[0]
    r.start("here", fabric.current)
    lines.clear()
    disk.clear()
    for fabric.programmed in range(1, 9):
        fabric.events = [SwitchLeft(str(fabric.programmed))]
        r.report(fabric.take_events())
        now[0] += 1.0
    assert lines.count(f"cannot write {file}: the disk does not answer") == 1
    assert [line for line in lines if "left" in line] == [f"switch {v} left" for v in range(1, 9)]
    assert len(writes) == 2, "one waits"
    disk.set()
    writes[-1].result(60.0)
    now[0] += STATUS_AGE
    r.report(fabric.take_events())
    writes[-1].result(60.0)
    assert json.loads(file.read_text()) == {"programmed": 8}


def test_a_controller_starts_and_ends_while_the_disk_with_its_status_hangs(
    fabric, lines, tmp_path, disk, monkeypatch
):
    monkeypatch.setattr("controller.reporter.END_PATIENCE", 0.1)
    disk.clear()
    file = tmp_path / "status.json"
    r = reporter(fabric, lines, status_file=file, start_write=in_thread)
    r.start("here", fabric.current)
    r.report([], last=True)
    assert any(line.startswith("here; ") for line in lines)
