"""What a controller bears: idle connections and slow clients."""

import json
import resource
import socket
import time
import urllib.request
from contextlib import ExitStack

import pytest

from tests.controller.makers import SWITCHES, connect, leave, polarfab

pytestmark = pytest.mark.live
HTTP = 17690


def limited(files, command):
    """A command that may open so many files."""
    return lambda *args: ["prlimit", f"--nofile={files}:{files}", *command(*args)]


def health():
    """What the API says, and the seconds that this took."""
    began = time.monotonic()
    with urllib.request.urlopen(f"http://127.0.0.1:{HTTP}/api/health", timeout=20) as answer:
        return json.load(answer), time.monotonic() - began


def idle(stack, port, count, first=b""):
    """Connections that say this, and then nothing."""
    for _ in range(count):
        peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        peer.sendall(first)


@pytest.mark.long
@pytest.mark.parametrize("used", ["ryu", "os-ken"])
def test_idle_connections_stop_nothing(switches, builds, run, used):
    """More than it may open files: switches come and go, health answers, the log is short."""
    command = limited(1024, polarfab(builds[0], used, "--http", f"127.0.0.1:{HTTP}"))
    crowded, count = run(command), 10_000
    crowded.wait_for(SWITCHES, "complete")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        idle(stack, crowded.port, count)
        leave(switches, "s7")
        crowded.wait_for(SWITCHES - 1)
        connect(switches, crowded.port, "s7")
        crowded.wait_for(SWITCHES, "complete")
        found, seconds = health()
        assert (found["in_sync"], found["alive"], found["bugs"]) == (SWITCHES, True, 0)
        assert seconds < 5
        assert found["rejected_peers"] >= count - 1024
    crowded.says("did not identify itself as an OpenFlow 1.3 switch: too many connections")
    assert len(crowded.log.read_text().splitlines()) < 30
    crowded.stop()


def test_slow_http_clients_do_not_stall_health(builds, run):
    slow = run(polarfab(builds[0], "ryu", "--http", f"127.0.0.1:{HTTP}"))
    slow.wait_for(SWITCHES, "complete")
    with ExitStack() as stack:
        idle(stack, HTTP, 300, b"GET /api/health HTTP/1.1\r\nHost: ")
        assert health()[1] < 5
        idle(stack, HTTP, 100, b"POST /api/apply HTTP/1.1\r\nContent-Length: 90\r\n\r\n{")
        assert health()[1] < 5
    slow.stop()
