"""The pulse: what fails is told and survived, what has stopped ends the process."""

import socket
from types import SimpleNamespace

import pytest

from controller.pulse import MOST_MISSED, SICK_AFTER, Pulse, notifier


@pytest.fixture
def told():
    return []


@pytest.fixture
def noted():
    return []


@pytest.fixture
def pulse(told, noted):
    return Pulse(told.append, noted.append)


def fails():
    raise KeyError("crafted")


def test_a_step_that_fails_is_told_counted_and_survived(pulse, told, noted):
    pulse.round()
    done = []
    pulse.step("repairing", fails)
    pulse.step("reporting", lambda: done.append(1))
    pulse.round()
    assert (done, pulse.bugs, noted) == ([1], 1, ["READY=1"])
    assert str(told[0]) == "internal error in: repairing: KeyError('crafted')"
    pulse.round()
    assert noted == ["READY=1", "WATCHDOG=1"]
    assert pulse.beats


def test_health_and_the_process_follow_the_rounds(pulse, noted):
    """Rounds that all fail are no beats: health says so first, then the process ends."""
    for look in range(MOST_MISSED - 1):
        pulse.step("repairing", fails)
        pulse.round()
        pulse.look()
        assert pulse.beats == (look + 1 < SICK_AFTER)
    with pytest.raises(RuntimeError, match="has stopped: the loop that repairs and reports"):
        pulse.look()
    assert noted == []


def test_a_beat_counts_from_anew(pulse):
    for _ in range(3 * MOST_MISSED):
        pulse.look()
        pulse.round()
    assert pulse.beats


def test_there_is_no_beat_without_a_thread_that_is_needed(pulse, told, noted):
    thread = SimpleNamespace(dead=False)
    pulse.follow("handling what switches say", thread)
    pulse.round()
    thread.dead = True
    pulse.round()
    assert noted == ["READY=1"]
    assert "has stopped: handling what switches say" in str(told[0])


def test_systemd_is_notified(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})("WATCHDOG=1")
        assert systemd.recv(100) == b"WATCHDOG=1"
        systemd.close()
        notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})("nobody listens")
    notifier({})("no systemd")
