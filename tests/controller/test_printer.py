"""The printer: nobody who reads the output holds up the one who prints."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from threading import Event

import pytest

from controller import printer
from controller.printer import MOST_LINES, Printer
from tests.waiting import until


class Output:
    """Takes lines while it is open, and fails while it is full."""

    def __init__(self):
        self.lines, self.open, self.full = [], Event(), False
        self.open.set()

    def __call__(self, line):
        self.open.wait()
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.lines.append(line)


@pytest.fixture
def output():
    made = Output()
    yield made
    made.open.set()


def test_lines_come_in_order_and_are_there_at_the_end(output):
    prints = Printer(output)
    for number in range(100):
        prints(str(number))
    prints.finish(10.0)
    assert output.lines == [*map(str, range(100))]


def test_who_takes_nothing_holds_nobody_up(output, monkeypatch):
    """Ctrl-S at the terminal stopped all repairs."""
    monkeypatch.setattr(printer, "LINE_PATIENCE", 0.0)
    output.open.clear()
    prints = Printer(output)
    for number in range(MOST_LINES + 500):
        prints(str(number))
    until(lambda: prints.trouble == "nobody takes the output")
    prints.finish(0.01)
    output.open.set()
    prints.finish(10.0)
    assert output.lines[: MOST_LINES - 1] == [*map(str, range(MOST_LINES - 1))]
    assert prints.trouble == ""


def test_a_full_disk_is_trouble_until_there_is_room(output):
    """Ten seconds after the first line that a full disk did not take, the controller ended."""
    output.full = True
    prints = Printer(output)
    prints("lost")
    prints.finish(10.0)
    assert prints.trouble == os.strerror(errno.ENOSPC)
    output.full = False
    prints("kept")
    prints.finish(10.0)
    assert (prints.trouble, output.lines) == ("", ["kept"])


@pytest.mark.parametrize(("prints", "number"), [("to_output", 1), ("to_errors", 2)])
def test_nothing_is_printed_into_a_file_that_has_the_number_of_an_output(tmp_path, prints, number):
    """Started with `>&-`: the next file that it opened got its lines, or a switch."""
    file = tmp_path / "file"
    words = f"file = open({str(file)!r}, 'w'); from controller.printer import *; "
    words += f"{prints}('line'); assert file.fileno() == {number}"
    closed = ["sh", "-c", f'exec "$0" -c "$1" {number}>&-', sys.executable, words]
    subprocess.run(closed, check=True)
    assert file.read_text() == ""
