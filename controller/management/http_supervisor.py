"""The controller's side of the HTTP process: starts it, sends it pages, and answers its requests.

`controller.composition` makes one `HttpSupervisor` where the management API is configured.
`controller.management.http_api.Api` makes the pages (state, health, events, metrics …). The process
serves them to readers by itself, and passes on only requests that change something.

The controller never waits for the process: a page that the process has not taken yet is replaced by
the newer page. When the process ends, it is started again. Clients that connect meanwhile wait in
the backlog of the listening socket, which the controller keeps.
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
from io import BytesIO
from time import monotonic
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from controller.management.action_log import Actor
from controller.management.frames import LENGTHS, Header, frame, pages_frame
from controller.management.http_api import Api, PassedRequest
from controller.management.site import refused
from controller.management.tls_copies import TlsCopies
from controller.switches.events import EVENTS_KEPT, ApiRestarted, Event
from controller.upkeep.background import LONGEST_WAIT, Backoff

MODULE = "controller.management.http_process"
"""The module that the process runs."""
RECEIVE_BYTES = 1 << 20
"""Most bytes that are received at once."""
PERIOD_PER_WORK = 20
"""The period in which pages are made, in multiples of the time that making them takes. So it takes
a twentieth of the loop's time."""
PERIOD_PER_WORK_AFTER_EVENT = 5
"""The same, if an event has happened since they were made."""
MOST_AGE = 2.0
"""Most seconds until pages are made again."""
LEAST_METRICS_AGE, MOST_METRICS_AGE = 0.25, 5.0
"""Least and most seconds until metrics are made again."""
MAKING_POLL = 0.005
"""Seconds between two checks whether another green thread has made its pages."""
END_PATIENCE, END_POLL = 5.0, 0.02
"""Seconds that a process may take to end, and between two checks whether it has."""
MOST_REST = 0.1
"""Most seconds of rest after a request, which is as long as its answer took."""
HANG_PATIENCE = 15.0
"""Seconds of silence after which a process that has said something counts as hung."""
START_PATIENCE = 60.0
"""Seconds of silence after which a process that has only been started counts as hung."""
MOST_SILENT_STEP = 1.0
"""Most seconds of silence that count between two ticks: the controller may have been stopped."""


class HttpSupervisor:
    """Starts the process that serves the management API, and talks to it.

    Args:
        hub: the framework's green threads.
        listener: the socket where clients connect.
        settings: what the process has to know (`controller.management.http_process`).
        tell: reports an event.
        clock: seconds on a monotonic clock.
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
        self._unsent_pages: dict[str, bytes] = {}
        """The newest pages that are not sent to the process yet, by name."""
        self._events: deque[bytes] = deque(maxlen=EVENTS_KEPT)
        """The events that are not sent yet, a line of JSON each."""
        self._frames: deque[bytes] = deque()
        """Other frames that are not sent yet, such as answers."""
        self._unsent = hub.Event()
        """Set while there are unsent pages, events or frames."""
        self._connected = False
        """Whether the process runs and has been sent its settings."""
        self._pages_locked = False
        """Whether a green thread is making pages (`_making_pages`)."""
        self._silent_seconds = 0.0
        """Seconds since the process sent something."""
        self._has_spoken = False
        """Whether the process has sent anything since it was started."""
        self._last_silence_check = clock()
        """When `_silent_seconds` was updated last."""
        self._next_pages = 0.0
        """When pages are made again if no event happens before."""
        self._next_pages_after_event = 0.0
        """When pages are made again, at the earliest, if an event happens."""
        self._rest_until = 0.0
        """When the next request may be answered."""

    def run(self, api: Api) -> None:
        """Serve for ever, in a green thread of its own."""
        backoff = Backoff(self._clock)
        self._hub.spawn(self._refresh_metrics, api)
        while True:
            began = self._clock()
            try:
                reason = self._serve(api)
            except Exception as error:
                api.report_bug("hearing the process of the API", error)
                reason = repr(error)
            if self._clock() - began > LONGEST_WAIT:
                backoff.succeeded()
            backoff.failed(RuntimeError(reason))  # each wait is twice as long as the last
            api.metrics.http["restarts"] += 1
            wait = max(backoff.retry_at - self._clock(), 0.0)
            self._tell(ApiRestarted(reason, wait))
            self._hub.sleep(wait)

    def tick(self, api: Api, has_event: bool) -> None:
        """Make the pages if their time has come, and kill a process that hangs.

        Args:
            api: makes the pages.
            has_event: whether an event has happened since the last tick.
        """
        began = self._clock()
        self._end_if_hung(began)
        if not self._connected:
            return
        if began < (self._next_pages_after_event if has_event else self._next_pages):
            return
        if self._pages_locked:
            # A request's green thread makes pages. This loop must not wait for it: it also repairs.
            self._next_pages = self._next_pages_after_event = began
            return
        self._make_changed_pages(api)
        took = self._clock() - began
        self._next_pages = began + min(PERIOD_PER_WORK * took, MOST_AGE)
        self._next_pages_after_event = began + PERIOD_PER_WORK_AFTER_EVENT * took

    def _end_if_hung(self, now: float) -> None:
        """Kill a process that has been silent for too long; `run` starts it again."""
        self._silent_seconds += min(now - self._last_silence_check, MOST_SILENT_STEP)
        self._last_silence_check = now
        patience = HANG_PATIENCE if self._has_spoken else START_PATIENCE
        if self._connected and self._silent_seconds > patience and self._process is not None:
            self._silent_seconds = 0.0
            self._process.kill()

    def renew_certificates(self, contents: Mapping[str, bytes]) -> None:
        """Pass new TLS files on, of which the caller has checked that they can be used.

        Args:
            contents: what they have, as `TlsCopies` takes it.
        """
        if self._tls:
            self._tls.renew(contents)
        self._queue_frame(frame({"reload": True}))

    def end(self) -> None:
        """Kill the process, so that its address can be used again."""
        if self._process is not None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_PATIENCE)

    def _serve(self, api: Api) -> str:
        """Start the process and handle its frames until it ends; returns why it did."""
        from eventlet.greenio import GreenSocket

        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = process = self._start(theirs)
        except OSError as error:
            ours.close()
            return f"it cannot be started: {error.strerror or error}"
        self._silent_seconds, self._has_spoken = 0.0, False
        link = GreenSocket(ours)
        try:
            self._run_session(link, api)
        finally:
            link.close()
            code = self._reap(process)
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _run_session(self, link: Any, api: Api) -> None:
        """Send a fresh process its settings and all pages, then what changes; handle its frames."""
        with self._making_pages():
            self._unsent_pages.clear()
            self._frames.clear()
            self._events.clear()
            settings = {"settings": json.dumps(self._settings).encode()}
            self._queue_pages(settings | api.all_pages())
        # The writer starts only now: the settings have to be the first that the process reads.
        writer = self._hub.spawn(self._write, link)
        self._connected = True
        try:
            self._handle_frames(link, api)
        finally:
            self._connected = False
            self._hub.kill(writer)

    def _reap(self, process: subprocess.Popen[bytes]) -> int:
        """The exit code of a process that has closed its link; it is killed if it does not end."""
        until = self._clock() + END_PATIENCE
        code = process.poll()
        while code is None:
            if self._clock() > until:
                process.kill()
            self._hub.sleep(END_POLL)
            code = process.poll()
        return code

    def _start(self, link: socket.socket) -> subprocess.Popen[bytes]:
        """Start the process: a fresh interpreter, which the framework has not patched.

        Args:
            link: the process's end of the socket pair that joins it to the controller.
        """
        descriptors = self._listener.fileno(), link.fileno()
        copies = self._tls.descriptors.values() if self._tls else ()
        environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
        return subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, *map(str, descriptors)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[*descriptors, *copies],
            env=environment,
        )

    def _make_changed_pages(self, api: Api) -> None:
        """Make the pages that have changed, and queue them for the process.

        A bug in making them is only reported.
        """
        try:
            with self._making_pages():
                self._queue_pages(api.changed_pages())
        except Exception as error:
            api.report_bug("making what readers get", error)

    @contextmanager
    def _making_pages(self) -> Iterator[None]:
        """Lock out other green threads that make pages: else older pages could be sent last."""
        while self._pages_locked:
            self._hub.sleep(MAKING_POLL)
        self._pages_locked = True
        try:
            yield
        finally:
            self._pages_locked = False

    def _queue_pages(self, pages: dict[str, bytes]) -> None:
        """Queue pages for the process, by name; they replace those that are not sent yet.

        New events are added to the unsent ones. If these are too many, the oldest are dropped.
        """
        self._events.extend(pages.pop("events", b"").splitlines(keepends=True))
        self._unsent_pages |= pages
        self._unsent.set()

    def _queue_frame(self, data: bytes) -> None:
        """Queue a frame for the process."""
        self._frames.append(data)
        self._unsent.set()

    def _write(self, link: Any) -> None:
        """Write what is queued to the process, for ever.

        Pages go before answers: who has an answer to a change reads pages that show the change.
        """
        with suppress(OSError):  # `_handle_frames` notices, too, that the process has ended
            while True:
                self._unsent.wait()
                self._unsent.clear()
                while self._unsent_pages or self._events or self._frames:
                    answers = b"".join(self._frames)
                    pages = self._unsent_pages | {"events": b"".join(self._events)}
                    self._unsent_pages.clear()
                    self._events.clear()
                    self._frames.clear()
                    link.sendall(pages_frame(pages) + answers)

    def _handle_frames(self, link: Any, api: Api) -> None:
        """Handle the frames of the process until it ends."""
        with suppress(OSError):
            while lengths := _exactly(link, LENGTHS.size):
                header_bytes, body_bytes = LENGTHS.unpack(lengths)
                text, body = _exactly(link, header_bytes), _exactly(link, body_bytes)
                if (len(text), len(body)) != (header_bytes, body_bytes):
                    return  # it has ended within a frame
                self._silent_seconds, self._has_spoken = 0.0, True
                header: Header = json.loads(text)
                if "alive" in header:
                    continue
                if "request" in header:
                    self._hub.spawn(self._answer, api, header, body)
                elif "wrong_token" in header:
                    api.wrong_token(header["wrong_token"])
                else:
                    api.failed(header["fault"], HttpFault(header["text"]), header["times"])

    def _answer(self, api: Api, header: Header, body: bytes) -> None:
        """Answer a request; the next ones wait a while, so that switches are served in between."""
        process = self._process
        while (wait := self._rest_until - self._clock()) > 0:
            self._hub.sleep(wait)
        began = self._clock()
        try:
            actor, secret = Actor(**header["actor"]), header["secret"].encode()
            request = PassedRequest(
                header["method"], header["path"], header["query"], actor, secret, body
            )
            answer = api.answer(request, header["needs"])
        except Exception as error:  # the process limits how many requests are unanswered
            api.failed("a request", error)
            answer = refused(500, "an internal error: the controller's log has it")
        if header["method"] != "GET" and process is self._process:
            self._make_changed_pages(api)
        if process is not self._process:
            return  # the process that passed it on is gone, and the next one counts anew
        answer_header = {
            "answer": header["request"],
            "status": answer.status,
            "type": answer.content_type,
            "headers": answer.headers,
        }
        self._queue_frame(frame(answer_header, answer.body))
        now = self._clock()
        self._rest_until = now + min(now - began, MOST_REST)

    def _refresh_metrics(self, api: Api) -> None:
        """Make the metrics page again and again, for ever."""
        while True:
            wait = LEAST_METRICS_AGE
            if self._connected:
                try:
                    wait = PERIOD_PER_WORK * self._make_metrics(api)
                    wait = min(max(wait, LEAST_METRICS_AGE), MOST_METRICS_AGE)
                except Exception as error:
                    api.report_bug("making the metrics", error)
                    wait = MOST_METRICS_AGE
            self._hub.sleep(wait)

    def _make_metrics(self, api: Api) -> float:
        """Make the metrics page and queue it for the process; other work goes on after each metric.

        Returns:
            The seconds that making it took.
        """
        took, texts, metrics = 0.0, list[bytes](), api.exposition()
        while True:
            began = self._clock()
            text = next(metrics, None)
            took += self._clock() - began
            if text is None:
                break
            texts.append(text)
            self._hub.sleep(0)
        self._queue_pages(
            {"metrics": b"".join(texts), "metrics_type": CONTENT_TYPE_LATEST.encode()}
        )
        return took


class HttpFault(Exception):
    """An exception in the HTTP process, with its traceback."""


def _exactly(link: Any, size: int) -> bytes:
    """Read so many bytes of a socket; no bytes where the other end is closed."""
    data = BytesIO()  # it gives its bytes without a copy: a build may be large
    while data.tell() < size:
        chunk = link.recv(min(size - data.tell(), RECEIVE_BYTES))
        if not chunk:
            return b""
        data.write(chunk)
    return data.getvalue()
