"""The program of the HTTP process, which serves the management API beside the controller.

The controller starts it (`controller.management.http_supervisor`) with two descriptors: the socket
where clients connect, and its end of a Unix socket to the controller, on which both send frames
(`controller.management.frames`). With TLS it inherits copies of the files, too
(`controller.management.tls_copies`). It ends when the controller does.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from controller.management.frames import LENGTHS, Header, frame, frame_start, pages_in
from controller.management.site import Answer, ManagementApi, Refusal
from controller.switches.connections.ended import is_ended
from controller.switches.peers import HalfOpen

if TYPE_CHECKING:
    from ssl import SSLContext

    from controller.settings import Tls

MOST_IDLE = 64
"""Most connections that wait for their clients; the oldest is ended where there would be more."""
CLIENT_PATIENCE = 10.0
"""Most seconds that a connection waits for its client."""
CONNECTIONS_A_TURN = 16
"""Connections that are accepted before other work of this process goes on."""
CHECK_PERIOD = 1.0
"""Seconds between two checks for slow clients, and between two signs of life."""
MOST_WAITING = 16
"""Requests that may wait for the controller; further ones get 503."""
NICE = 5
"""The niceness of this process, so that the controller comes first on a busy machine."""
MOST_FAULTS, FAULT_PERIOD = 5, 60.0
"""Most faults that are sent to the controller one by one in so many seconds."""
PR_SET_PDEATHSIG = 1
"""The option of prctl that has a signal sent when our parent ends (prctl(2))."""


class ClientListener(socket.socket):
    """The socket where clients connect; it ends the connections of slow clients.

    A thousand idle clients would take all descriptors, and the server itself ends no connection
    whose client has sent only a part of a request, or does not read its answer.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(fileno=descriptor)
        self._idle = HalfOpen(MOST_IDLE)
        """The connections that wait for their clients."""
        self._sockets: dict[Any, socket.socket] = {}
        """All connections, by the client's address and port."""
        self._trusted_hosts: set[str] = set()
        """Hosts whose clients have sent an accepted token."""
        self._accepted_in_turn = 0
        """Connections that were accepted since other work went on."""

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection whose client is still there.

        asyncio accepts until there is no more: a flood would leave it no time for anything else,
        and its buffers for TLS would fill the memory.

        Raises:
            BlockingIOError: there is none, or other work comes first.
        """
        for address in [key for key, sock in self._sockets.items() if sock.fileno() < 0]:
            self._forget(address)
        while True:
            self._accepted_in_turn += 1
            if self._accepted_in_turn > CONNECTIONS_A_TURN:
                self._accepted_in_turn = 0
                raise BlockingIOError
            sock, address = super().accept()
            if not is_ended(sock):
                break
            sock.close()
        self._sockets[address[:2]] = sock
        self.start_waiting_for(address[:2])
        return sock, address

    def start_waiting_for(self, address: tuple[str, int]) -> None:
        """Start the time in which this client has to send or read something.

        If more than `MOST_IDLE` connections wait for their clients, one of them is ended, as
        `HalfOpen` chooses. Trusted hosts are preferred.
        """
        if address in self._sockets:
            oldest = self._idle.enter(address, is_preferred=address[0] in self._trusted_hosts)
            if oldest is not None:
                self._end(oldest)

    def trust(self, host: str) -> None:
        """Note that a client on this host has sent an accepted token."""
        self._trusted_hosts.add(host)

    def stop_waiting_for(self, address: tuple[str, int]) -> None:
        """Stop this client's time: now the client waits for an answer."""
        self._idle.leave(address)

    def end_slow(self) -> None:
        """End the connections that have waited for their clients for too long."""
        for address in self._idle.late(CLIENT_PATIENCE):
            self._end(address)

    def _end(self, address: Any) -> None:
        """End a connection."""
        sock = self._forget(address)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _forget(self, address: Any) -> socket.socket | None:
        """Forget a connection; returns it, if it is known."""
        self._idle.leave(address)
        return self._sockets.pop(address, None)


class ControllerLink:
    """The controller, at the other end of the Unix socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._numbers = count()
        """Numbers requests."""
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        """The requests without an answer, by number."""

    async def ask(self, header: Header, body: bytes | bytearray) -> Answer:
        """Pass a request on, and wait for its answer.

        Raises:
            Refusal: too many others wait.
        """
        if len(self._waiting) >= MOST_WAITING:
            raise Refusal(503, "too many requests wait for the controller", Retry_After="1")
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._writer.write(frame_start({"request": number, **header}, len(body)))
        self._writer.write(body)
        # Also a request whose client is gone counts: the controller works on it all the same.
        answer.add_done_callback(lambda _: self._waiting.pop(number))
        return await asyncio.shield(answer)

    def note(self, header: Header) -> None:
        """Send a message that has no answer."""
        self._writer.write(frame(header))

    async def read_frames(self, frames: asyncio.Queue[tuple[Header, bytes]]) -> None:
        """Read the controller's frames until it is gone. Answers go to the requests that wait.

        Args:
            frames: takes the frames that are no answers.
        """
        while True:
            header_bytes, body_bytes = LENGTHS.unpack(await self._reader.readexactly(LENGTHS.size))
            header = json.loads(await self._reader.readexactly(header_bytes))
            body = await self._reader.readexactly(body_bytes)
            if "answer" in header:
                headers = tuple((name, value) for name, value in header["headers"])
                answer = Answer(header["status"], body, header["type"], headers)
                waiting = self._waiting.get(header["answer"])
                if waiting is not None:
                    waiting.set_result(answer)
            else:
                await frames.put((header, body))


class Faults(logging.Handler):
    """Sends the controller the faults of this process, and the errors that its libraries log.

    Nothing is written to standard error, which would hold up all clients while nobody reads it.

    Args:
        note: sends the controller a message that it does not answer.
        clock: seconds on a monotonic clock.
    """

    def __init__(
        self, note: Callable[[Header], None], clock: Callable[[], float] = monotonic
    ) -> None:
        super().__init__(logging.ERROR)
        self._note, self._clock = note, clock
        self._period_start = clock()
        """When the present `FAULT_PERIOD` began."""
        self._sent = self._left_out = 0
        """How many faults of this period were sent one by one, and how many were only counted."""

    def emit(self, record: logging.LogRecord) -> None:
        """Send an error that a library logs, with the traceback of its exception."""
        what = f"serving HTTP: {record.getMessage().strip()}"
        error = record.exc_info[1] if record.exc_info else None
        self.send(what, "".join(traceback.format_exception(error)) if error else what)

    def send(self, what: str, text: str) -> None:
        """Send a fault, or only count it after `MOST_FAULTS` of this period.

        Args:
            what: what this process was doing.
            text: the traceback.
        """
        self.tick()
        if self._sent < MOST_FAULTS:
            self._sent += 1
            self._note({"fault": what, "text": text, "times": 1})
        else:
            self._left_out += 1

    def tick(self) -> None:
        """At the end of a period, send how many faults were only counted."""
        now = self._clock()
        if now - self._period_start < FAULT_PERIOD:
            return
        if self._left_out:
            text = f"{self._left_out:,} further faults in {FAULT_PERIOD:g} s"
            self._note({"fault": "serving HTTP", "text": text, "times": self._left_out})
        self._period_start, self._sent, self._left_out = now, 0, 0


class TlsContext:
    """The context of new connections, from files that may change."""

    def __init__(self, tls: Tls) -> None:
        self._tls, self._current = tls, tls.context(clients=False)
        self.first = self._current
        """The context that the server has; it passes each connection on to the current one."""
        self.first.sni_callback = self._chosen

    def read_again(self) -> None:
        """Use the files as they are now; the controller has checked and copied them."""
        self._current = self._tls.context(clients=False)

    def _chosen(self, connection: Any, _name: str | None, _context: SSLContext) -> None:
        """Give a connection the current context."""
        connection.context = self._current


async def serve(listener: ClientListener, link: socket.socket) -> None:
    """Serve until the controller is gone."""
    import uvicorn

    reader, writer = await asyncio.open_connection(sock=link)
    controller = ControllerLink(reader, writer)
    faults = Faults(controller.note)
    logging.basicConfig(handlers=[faults], level=logging.ERROR)
    frames: asyncio.Queue[tuple[Header, bytes]] = asyncio.Queue()
    reading = asyncio.create_task(controller.read_frames(frames))
    reading.add_done_callback(_exit)
    header, body = await frames.get()
    settings = json.loads(pages_in(header, body)["settings"])
    hosts = settings["hosts"]
    site = ManagementApi(
        listener,
        controller.ask,
        controller.note,
        faults.send,
        None if hosts is None else frozenset(hosts),
        settings["private"],
    )
    await site.receive_pages(pages_in(header, body))
    tls = TlsContext(_tls(settings["tls"])) if settings["tls"] else None
    server = uvicorn.Server(_server_config(site, tls))
    tasks = [
        asyncio.create_task(_handle_frames(frames, site, tls, faults)),
        asyncio.create_task(_check_clients(listener, controller, faults)),
        asyncio.create_task(server.serve(sockets=[listener])),
    ]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


def _server_config(site: ManagementApi, tls: TlsContext | None) -> Any:
    """The configuration of uvicorn."""
    import uvicorn

    config = uvicorn.Config(
        site,
        loop="asyncio",
        http=_http_protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # its warnings are a line for each request that is malformed
        access_log=False,
        # By such a header a client could have its wrong tokens counted for another host.
        proxy_headers=False,
        server_header=False,
    )
    config.load()
    config.ssl = tls.first if tls else None
    return config


def _http_protocol() -> type[asyncio.Protocol]:
    """HTTP for a connection, by uvicorn."""
    from h11 import IDLE, SEND_RESPONSE
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Http(H11Protocol):
        """Answers clients that end their side after a request, as `nc -N` does, or spoil it."""

        has_ended = False
        """Whether the client has ended its side."""

        def connection_made(self, transport: Any) -> None:
            """Begin. The client's address is that of `accept`; a reset connection has no other."""
            super().connection_made(transport)
            self.client = transport.get_extra_info("peername")[:2]

        def send_400_response(self, msg: str) -> None:
            """Refuse what is no HTTP. A request whose body it spoils gets no other answer."""
            request = self.cycle
            is_spoilt = bool(request and not request.response_complete)
            if is_spoilt:
                request.disconnected = True
                request.message_event.set()
            if self.conn.our_state in (IDLE, SEND_RESPONSE):
                has_text = not is_spoilt or request.scope["method"] != "HEAD"
                super().send_400_response(msg if has_text else "")
            else:  # the answer has begun already
                self.transport.close()

        def eof_received(self) -> bool:  # type: ignore[override]
            """Whether the connection stays open: while a whole request has no answer yet."""
            is_plain = self.transport.get_extra_info("ssl_object") is None
            request = self.cycle
            has_request = bool(request and not request.more_body and not request.response_complete)
            self.has_ended = is_plain and has_request
            return self.has_ended

        def on_response_complete(self) -> None:
            """After the last answer, close at once where the client has ended its side.

            A next request may have begun in what came before. Its end can no longer come if it has
            none there. Nothing else would notice that: asyncio reads no further.
            """
            super().on_response_complete()
            request = self.cycle
            if self.has_ended and (request.response_complete or request.more_body):
                request.disconnected = True
                request.message_event.set()
                self.transport.close()

    return Http


async def _handle_frames(
    frames: asyncio.Queue[tuple[Header, bytes]],
    site: ManagementApi,
    tls: TlsContext | None,
    faults: Faults,
) -> None:
    """Handle the frames that the controller sends by itself, for ever: pages, or new TLS files."""
    while True:
        header, body = await frames.get()
        try:
            if "pages" in header:
                await site.receive_pages(pages_in(header, body))
            elif tls:
                tls.read_again()
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            faults.send("hearing the controller", text)


async def _check_clients(
    listener: ClientListener, controller: ControllerLink, faults: Faults
) -> None:
    """End connections of slow clients, and give the controller a sign of life, for ever."""
    while True:
        await asyncio.sleep(CHECK_PERIOD)
        listener.end_slow()
        faults.tick()
        controller.note({"alive": True})


def _exit(reading: asyncio.Task[None]) -> None:
    """Exit at once when the controller is gone: its successor needs the address.

    If reading its frames has failed otherwise, this process has a fault, which it prints first.
    """
    is_gone = isinstance(reading.exception(), asyncio.IncompleteReadError | OSError)
    if not is_gone:
        traceback.print_exception(reading.exception())
    os._exit(0 if is_gone else 1)


def _tls(files: dict[str, str]) -> Tls:
    """The files of TLS by their paths (`controller.management.tls_copies`)."""
    from controller.settings import Tls

    return Tls(Path(files["key"]), Path(files["certificate"]), Path(files["authority"]))


def main() -> None:
    """Serve on the descriptors that are our arguments."""
    # The kernel kills this process, even one that hangs, when the controller ends.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A terminal, or systemd, sends these to the whole service: the controller answers them.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    os.nice(NICE)
    listener, link = map(int, sys.argv[1:3])
    asyncio.run(serve(ClientListener(listener), socket.socket(fileno=link)))


if __name__ == "__main__":
    main()
