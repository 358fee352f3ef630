"""The queue of accepted connections: hosts take turns, and each turn is short.

Strangers may connect a thousand times a second, and one step of a TLS handshake takes the
controller milliseconds of processor time. `controller.switches.connections.listening` has a queue
for hosts of the fabric's own switches and one for all others, so that a switch that reconnects
waits for no stranger.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Address = Any
"""The address of a connection: its host, its port, and more for IPv6."""


class EntryQueue:
    """Connections that wait to be served, named by their addresses. Their hosts take turns.

    So a switch whose host is not known yet waits for one connection of each other host. Green
    threads use it.
    """

    def __init__(self) -> None:
        from eventlet.semaphore import Semaphore

        self._by_host: dict[str, dict[Address, None]] = {}
        """The connections that wait, by host, the oldest first. The host whose turn it is comes
        first."""
        self._arrived = Semaphore(0)
        """Released once a connection waits."""
        self._step = Semaphore(1)
        """Held during a step, and for the rest of that turn of the loop."""

    def add(self, address: Address) -> None:
        """Have a connection wait."""
        self._by_host.setdefault(address[0], {})[address] = None
        if self._arrived.locked():
            self._arrived.release()

    def discard(self, address: Address) -> None:
        """Remove a connection that has ended, if it waits."""
        waiting = self._by_host.get(address[0], {})
        waiting.pop(address, None)
        if not waiting:
            self._by_host.pop(address[0], None)

    def take(self) -> Address:
        """Remove the connection whose turn it is, however long it takes until there is one."""
        while not self._by_host:
            self._arrived.acquire()
        host = next(iter(self._by_host))
        waiting = self._by_host.pop(host)
        address = next(iter(waiting))
        del waiting[address]
        if waiting:
            self._by_host[host] = waiting
        return address

    def wait_for_turn(self) -> None:
        """Wait until the steps that are waited for already are done, as if for a step itself."""
        with self.step():
            pass

    @contextmanager
    def step(self) -> Iterator[None]:
        """One step of serving a connection of the queue: one in each turn of the loop."""
        from eventlet import sleep

        with self._step:
            try:
                yield
            finally:
                sleep(0)
