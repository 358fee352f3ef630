"""The peer that asks for echoes: it ends with its context, whatever the controller does."""

import socket
import time

from benchmarks.echo_probe import EchoProbe


def test_it_ends_where_no_controller_ever_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        began = time.monotonic()
        with EchoProbe(free.getsockname(), 60.0) as probe:
            pass
    assert (time.monotonic() - began < 10, probe.answers) == (True, 0)
