"""The controller's side of the HTTP process: starts it, tells it what readers get, answers it.

Nothing here waits for a reader, or for the process: what it does not take is replaced by what is
newer. When it ends it is started again; clients that connect meanwhile wait in the backlog of the
socket, which is ours.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from controller.management.action_log import Actor
from controller.management.frames import LENGTHS, Header, frame, parts_frame
from controller.management.http_api import Api, Passed
from controller.management.site import refused
from controller.management.tls_copies import TlsCopies
from controller.switches.events import EVENTS_KEPT, ApiRestarted, Event
from controller.upkeep.background import LONGEST_WAIT, Backoff

MODULE = "controller.management.http_process"
"""What the process runs."""
NEWS_SHARE, SHARE = 5, 20
"""What readers get is made again when this many times as long as it took has passed: after an
event, and without one."""
MOST_AGE = 2.0
"""Seconds after which it is made in any case."""
LEAST_METRICS_AGE, MOST_METRICS_AGE = 0.25, 5.0
"""Seconds after which metrics are made again, at least and at most."""
MAKING_POLL = 0.005
"""Seconds between two looks whether what readers get is made."""
END_PATIENCE, END_POLL = 5.0, 0.02
"""Seconds that a process may take to end, and between two looks."""
MOST_REST = 0.1
"""Most seconds for which other requests wait after one, that is, for as long as it took."""
HUNG, SLOW_START, MOST_STEP = 15.0, 60.0, 1.0
"""Seconds without a sign of life after which a process counts as hung, later and at its start; and
how many of them count at most between two looks, as the controller itself may have been stopped."""


class HttpProcess:
    """The process that serves the management API.

    Args:
        hub: the framework's green threads.
        listener: the socket where clients connect.
        settings: what the process has to know (`controller.management.http_process`).
        tell: takes events.
        clock: seconds on a clock that is never set.
        tls: the files of TLS; None for plain text.
    """

    def __init__(
        self,
        hub: Any,
        listener: Any,
        settings: Mapping[str, Any],
        tell: Callable[[Event], None],
        clock: Callable[[], float] = monotonic,
        tls: TlsCopies | None = None,
    ) -> None:
        self._hub, self._listener = hub, listener
        self._tls, self._settings = tls, {**settings, "tls": tls and tls.paths}
        self._tell, self._clock = tell, clock
        self._process: subprocess.Popen[bytes] | None = None
        """The process that was started last."""
        self._parts: dict[str, bytes] = {}
        """What readers get from now on, as far as the process does not have it."""
        self._events: deque[bytes] = deque(maxlen=EVENTS_KEPT)
        """The events that the process does not have."""
        self._frames: deque[bytes] = deque()
        """What is sent to the process besides."""
        self._something = hub.Event()
        """Set while any of these three has something."""
        self._connected = False
        """Whether the process has begun, and has not ended."""
        self._making = False
        """Whether somebody makes what readers get."""
        self._quiet, self._lives = 0.0, False
        """Seconds without a sign of life, and whether there was one."""
        self._looked = clock()
        """When it was looked for one last."""
        self._due = self._due_with_news = 0.0
        """When what readers get is made again, without an event and after one."""
        self._rested = 0.0
        """When the next request may be answered."""

    def run(self, api: Api) -> None:
        """Serve for ever, in a green thread of its own."""
        again = Backoff(self._clock)
        self._hub.spawn(self._metrics, api)
        while True:
            began = self._clock()
            try:
                reason = self._serve(api)
            except Exception as error:
                api.bug("hearing the process of the API", error)
                reason = repr(error)
            if self._clock() - began > LONGEST_WAIT:
                again.succeeded()
            again.failed(RuntimeError(reason))
            api.metrics.http["restarts"] += 1
            wait = max(again.again - self._clock(), 0.0)
            self._tell(ApiRestarted(reason, wait))
            self._hub.sleep(wait)

    def tick(self, api: Api, news: bool) -> None:
        """Time passes: make what readers get, if it is due.

        Args:
            api: makes it.
            news: whether something has happened.
        """
        began = self._clock()
        self._end_if_hung(began)
        if not self._connected or began < (self._due_with_news if news else self._due):
            return
        if self._making:  # repairs wait for this loop: it does not wait for who changes something
            self._due = self._due_with_news = began
            return
        self._put_new(api)
        took = self._clock() - began
        self._due = began + min(SHARE * took, MOST_AGE)
        self._due_with_news = began + NEWS_SHARE * took

    def _end_if_hung(self, now: float) -> None:
        """Kill a process that gives no sign of life any more: then it is started again."""
        self._quiet += min(now - self._looked, MOST_STEP)
        self._looked = now
        most = HUNG if self._lives else SLOW_START
        if self._connected and self._quiet > most and self._process is not None:
            self._quiet = 0.0
            self._process.kill()

    def read_certificates_again(self) -> None:
        """Use the TLS files as they are now, which can be used."""
        if self._tls:
            self._tls.renew()
        self._send(frame({"reload": True}))

    def end(self) -> None:
        """End the process, so that the address is free."""
        if self._process is not None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_PATIENCE)

    def _serve(self, api: Api) -> str:
        """Start the process, and hear it until it ends; returns why it did."""
        from eventlet.greenio import GreenSocket

        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = process = self._started(theirs)
        except OSError as error:
            ours.close()
            return f"it cannot be started: {error.strerror or error}"
        self._quiet, self._lives = 0.0, False
        link = GreenSocket(ours)
        try:
            self._talk(link, api)
        finally:
            link.close()
            code = self._ended(process)
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _talk(self, link: Any, api: Api) -> None:
        """Tell a process that has begun everything, then what is new, and hear it until it ends."""
        with self._alone():
            self._parts.clear()
            self._frames.clear()
            self._events.clear()
            settings = {"settings": json.dumps(self._settings).encode()}
            self._put(settings | api.everything())
        # Not before: it cannot do without the settings, and others may tell something meanwhile.
        writer = self._hub.spawn(self._write, link)
        self._connected = True
        try:
            self._hear(link, api)
        finally:
            self._connected = False
            self._hub.kill(writer)

    def _ended(self, process: subprocess.Popen[bytes]) -> int:
        """The exit code of a process that has hung up; it is killed if it does not end."""
        until = self._clock() + END_PATIENCE
        code = process.poll()
        while code is None:
            if self._clock() > until:
                process.kill()
            self._hub.sleep(END_POLL)
            code = process.poll()
        return code

    def _started(self, link: socket.socket) -> subprocess.Popen[bytes]:
        """A fresh interpreter: what the framework has patched here does not hold there."""
        descriptors = self._listener.fileno(), link.fileno()
        copies = self._tls.descriptors if self._tls else []
        environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
        return subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, *map(str, descriptors)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[*descriptors, *copies],
            env=environment,
        )

    def _put_new(self, api: Api) -> None:
        """Make what readers get. A fault in it is told, and nothing else suffers."""
        try:
            with self._alone():
                self._put(api.parts())
        except Exception as error:
            api.bug("making what readers get", error)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else makes what readers get: else what is older could be sent last."""
        while self._making:
            self._hub.sleep(MAKING_POLL)
        self._making = True
        try:
            yield
        finally:
            self._making = False

    def _put(self, parts: dict[str, bytes]) -> None:
        """Readers get these parts from now on. Those that were not sent yet are replaced, and no
        event is dropped but for newer ones.
        """
        self._events.extend(parts.pop("events", b"").splitlines(keepends=True))
        self._parts |= parts
        self._something.set()

    def _send(self, data: bytes) -> None:
        """Send a frame soon."""
        self._frames.append(data)
        self._something.set()

    def _write(self, link: Any) -> None:
        """Write what waits, for ever: an answer never comes before what it has changed."""
        with suppress(OSError):  # who hears the process hears that it has ended
            while True:
                self._something.wait()
                self._something.clear()
                while self._parts or self._events or self._frames:
                    answers = b"".join(self._frames)
                    parts = self._parts | {"events": b"".join(self._events)}
                    self._parts.clear()
                    self._events.clear()
                    self._frames.clear()
                    link.sendall(parts_frame(parts) + answers)

    def _hear(self, link: Any, api: Api) -> None:
        """Hear the process until it ends."""
        with suppress(OSError):
            while lengths := _exactly(link, LENGTHS.size):
                header_bytes, body_bytes = LENGTHS.unpack(lengths)
                text, body = _exactly(link, header_bytes), _exactly(link, body_bytes)
                if (len(text), len(body)) != (header_bytes, body_bytes):
                    return  # it has ended within a frame
                self._quiet, self._lives = 0.0, True
                header: Header = json.loads(text)
                if "alive" in header:
                    continue
                if "request" in header:
                    self._hub.spawn(self._answer, api, header, body)
                elif "wrong_token" in header:
                    api.wrong_token(header["wrong_token"])
                else:
                    api.failed(header["fault"], HttpFault(header["text"]))

    def _answer(self, api: Api, header: Header, body: bytes) -> None:
        """Answer a request. Others wait afterwards, so that switches are served in between."""
        process = self._process
        while (wait := self._rested - self._clock()) > 0:
            self._hub.sleep(wait)
        began = self._clock()
        try:
            asked = Passed(
                header["method"], header["path"], header["query"], Actor(**header["actor"]), body
            )
            answer = api.answer(asked, header["needs"])
        except Exception as error:  # without an answer, its place among those that wait is lost
            api.failed("a request", error)
            answer = refused(500, "an internal error: the controller's log has it")
        if header["method"] != "GET" and process is self._process:
            self._put_new(api)
        if process is not self._process:
            return  # who passed it on is gone, and the next one has numbers of its own
        about = {"status": answer.status, "type": answer.kind, "headers": answer.headers}
        self._send(frame({"answer": header["request"], **about}, answer.body))
        now = self._clock()
        self._rested = now + min(now - began, MOST_REST)

    def _metrics(self, api: Api) -> None:
        """Make the metrics, for ever."""
        while True:
            wait = LEAST_METRICS_AGE
            if self._connected:
                try:
                    wait = min(max(SHARE * self._exposed(api), wait), MOST_METRICS_AGE)
                except Exception as error:
                    api.bug("making the metrics", error)
                    wait = MOST_METRICS_AGE
            self._hub.sleep(wait)

    def _exposed(self, api: Api) -> float:
        """Make the metrics, and let other work go on after each; returns how long they took."""
        took, texts, metrics = 0.0, [b""], api.exposition()
        while True:
            began = self._clock()
            text = next(metrics, None)
            took += self._clock() - began
            if text is None:
                break
            texts.append(text)
            self._hub.sleep(0)
        self._put({"metrics": b"".join(texts), "metrics_type": CONTENT_TYPE_LATEST.encode()})
        return took


class HttpFault(Exception):
    """An exception in the HTTP process, with its traceback."""


def _exactly(link: Any, size: int) -> bytes:
    """So many bytes; none where the other end is gone."""
    data = bytearray()
    while len(data) < size:
        more = link.recv(min(size - len(data), 1 << 20))
        if not more:
            return b""
        data += more
    return bytes(data)
