"""The watchdog: what fails is told and survived, what has stopped ends the process."""

import os
import socket
import subprocess
import sys
import time
from threading import Event
from types import SimpleNamespace

import pytest

from controller.watchdog import (
    MOST_IDLE_LOOKS,
    MOST_MISSED,
    UNHEALTHY_AFTER,
    Watchdog,
    notifier,
)


@pytest.fixture
def told():
    return []


@pytest.fixture
def noted():
    return []


@pytest.fixture
def watchdog(told, noted):
    return Watchdog(told.append, noted.append)


def test_a_traceback_is_printed_once_in_a_row(told):
    printed = []
    watchdog = Watchdog(told.append, print, printed.append)
    for _ in range(3):
        watchdog.step("repairing", fails)
    (text,) = printed
    lines = text.splitlines()
    assert lines[:2] == ["internal error in: repairing", "Traceback (most recent call last):"]
    assert lines[-1] == "KeyError: 'crafted'"


def fails():
    raise KeyError("crafted")


def test_a_step_that_fails_is_told_counted_and_survived(watchdog, told, noted):
    watchdog.end_round()
    done = []
    watchdog.step("repairing", fails)
    watchdog.step("reporting", lambda: done.append(1))
    watchdog.end_round()
    assert (done, watchdog.internal_errors, noted) == ([1], 1, ["READY=1"])
    assert str(told[0]) == "internal error in: repairing: KeyError('crafted')"
    watchdog.end_round()
    assert noted == ["READY=1", "WATCHDOG=1"]
    assert watchdog.healthy


def test_health_and_the_process_follow_the_rounds(watchdog, noted):
    """Rounds that all fail are no beats: health says so first, then the process ends."""
    for look in range(MOST_MISSED - 1):
        watchdog.step("repairing", fails)
        watchdog.end_round()
        watchdog.check()
        assert watchdog.healthy == (look + 1 < UNHEALTHY_AFTER)
    with pytest.raises(RuntimeError, match="has stopped: the loop that repairs and reports"):
        watchdog.check()
    assert noted == []


def test_a_beat_counts_from_anew(watchdog):
    for _ in range(3 * MOST_MISSED):
        watchdog.check()
        watchdog.end_round()
    assert watchdog.healthy


def test_there_is_no_beat_without_a_thread_that_is_needed(watchdog, told, noted):
    thread = SimpleNamespace(dead=False)
    watchdog.follow("handling what switches say", thread)
    watchdog.end_round()
    thread.dead = True
    watchdog.end_round()
    assert noted == ["READY=1"]
    assert "has stopped: handling what switches say" in str(told[0])


def test_a_loop_that_the_system_holds_is_ended_by_a_thread(watchdog):
    """A named pipe in the place of a file held the loop and its watchdog for ever."""
    ended = Event()
    watchdog.guard_checks(ended.set, 0.01)
    for _ in range(2 * MOST_IDLE_LOOKS):  # twice as long as the thread waits
        assert not ended.wait(0.01)
        watchdog.check()
        watchdog.end_round()
    assert ended.wait(60)


def test_a_long_computation_is_not_ended(watchdog):
    """The plan of a move in a large fabric may take minutes, in which nothing is checked."""
    ended = Event()
    watchdog.guard_checks(ended.set, 0.005)
    until = time.monotonic() + 3 * MOST_IDLE_LOOKS * 0.005
    while time.monotonic() < until:
        sum(range(1000))
    assert not ended.is_set()
    assert ended.wait(60), "now it waits"


def test_the_process_ends_though_its_loop_does_not_answer(tmp_path):
    os.mkfifo(tmp_path / "file")
    script = (
        "import sys; from controller.watchdog import Watchdog, end_process;"
        "Watchdog(print, print).guard_checks(end_process, .01); open(sys.argv[1])"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "file")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 1
    assert process.stderr == (
        "polarfab: the controller's loop has not come back for 60 s; it ends\n"
    )


def test_systemd_is_notified(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})("WATCHDOG=1")
        assert systemd.recv(100) == b"WATCHDOG=1"
        systemd.close()
        notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})("nobody listens")
    notifier({})("no systemd")
