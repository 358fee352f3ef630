"""The watchdog: what fails is told and survived, what has stopped ends the process."""

import socket
from types import SimpleNamespace

import pytest

from controller.watchdog import MOST_MISSED, UNHEALTHY_AFTER, Watchdog, notifier


@pytest.fixture
def told():
    return []


@pytest.fixture
def noted():
    return []


@pytest.fixture
def watchdog(told, noted):
    return Watchdog(told.append, noted.append)


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


def test_systemd_is_notified(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})("WATCHDOG=1")
        assert systemd.recv(100) == b"WATCHDOG=1"
        systemd.close()
        notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})("nobody listens")
    notifier({})("no systemd")
