"""The paths of the management API as an ASGI application, in the HTTP process.

`controller.management.http_process` serves it. A read is answered with the page that the controller
sent last; a request that changes something is passed on to the controller. Tokens and roles are
checked here, before the body of a request is read. The controller checks them again afterwards.
"""

from __future__ import annotations

import json
import traceback
from asyncio import Condition, wait_for
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from ipaddress import ip_address
from math import ceil
from time import monotonic
from typing import Any, Protocol
from urllib.parse import parse_qsl

from controller.management.tokens import Role, Token, Tokens
from controller.switches.events import KeptEvents, TokenRefused
from controller.switches.peers import RejectedPeers

MOST_HEAD = 16 * 1024
"""Most bytes of a request's path, query and headers. The server bounds only a head that arrives in
several pieces."""
MOST_BODY = 64 * 1024
"""Most bytes of a request's body, if that is not a build."""
MOST_DROPPED = 1 << 20
"""Most bytes of a refused body that are read and dropped. A sender reads the answer, which says why
it is refused, only after it has sent the body."""
SLOW_START, LEAST_RATE = 10.0, 100_000
"""Seconds that any body may take, and bytes a second at which the rest of a longer one has to come.
A slower one would keep the only place for builds."""
LONGEST_UPLOAD, LARGE_BODY_RATE = 60.0, 1_000_000
"""Most seconds that a body may take, and bytes a second at which one has to come that takes longer.
"""
CHUNK = 64 * 1024
"""Bytes of an answer that are sent at once."""
MOST_GUESSES = 10
"""Most wrong tokens of a host in a minute (`controller.switches.peers.REPORT_PERIOD`), and most
requests with a token whose role is too low.
"""
FIRST_PATIENCE = 5.0
"""Most seconds that a reader waits for a page that the controller has not sent yet."""
STALE = 5.0
"""Seconds without a page `health` from the controller after which its loop counts as stuck."""

JSON = "application/json"
"""The type of JSON."""
POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
"""What a page may load (`Content-Security-Policy`)."""
HTML, SCRIPT, STYLE = (f"text/{kind}; charset=utf-8" for kind in ("html", "javascript", "css"))
"""The types of pages, scripts and style sheets."""

TYPE_IN_PAGE = ""
"""In place of the content type of the metrics: it is a page itself, `metrics_type`."""
READ: dict[str, tuple[str, str]] = {
    "/": ("status_page/page.html", HTML),
    "/page.js": ("status_page/page.js", SCRIPT),
    "/page.css": ("status_page/page.css", STYLE),
    "/style.css": ("pages/style.css", STYLE),
    "/metrics": ("metrics", TYPE_IN_PAGE),
    **{f"/api/{name}": (name, JSON) for name in ("state", "floor", "health", "move", "history")},
}
"""By path, the name of its page and the page's content type. A name with a / is that of a file of
`templates`; the controller makes the other pages."""
EVENTS = "/api/events"
"""The path of the latest events."""
PASSED: dict[tuple[str, str], Role] = {
    ("GET", "/api/build"): "read",
    ("POST", "/api/reconcile"): "operate",
    ("POST", "/api/drain"): "operate",
    ("POST", "/api/undrain"): "operate",
    ("POST", "/api/apply"): "apply",
    ("POST", "/api/confirm"): "apply",
    ("POST", "/api/rollback"): "apply",
}
"""By method and path, the least role for a request that is passed on to the controller."""
OPEN = frozenset({"/", "/page.js", "/page.css", "/style.css", "/api/health"})
"""The paths that are read without a token even where reading needs one."""

Message = dict[str, Any]
"""A message of ASGI, or a header of `controller.management.frames`."""
Receive = Callable[[], Awaitable[Message]]
"""Gives the server's next message."""
Send = Callable[[Message], Awaitable[None]]
"""Gives the server a message."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request."""

    status: int
    """The HTTP status."""
    body: bytes
    """The bytes of the body."""
    content_type: str = JSON
    """The type of the body."""
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers."""


class Refusal(Exception):
    """A request that is refused; the text says why."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.answer = refused(status, text, **headers)


def refused(status: int, text: str, **headers: str) -> Answer:
    """The answer to a request that is refused.

    Args:
        status: the HTTP status.
        text: why it is refused.
        headers: further headers, with _ in place of - in their names.
    """
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(status, json.dumps({"error": text}).encode() + b"\n", JSON, fields)


class ClientTimer(Protocol):
    """Ends connections whose clients are slow, by the clients' addresses (host and port)."""

    def start_waiting_for(self, address: tuple[str, int]) -> None:
        """Start, or restart, the time in which this client has to send or read something."""

    def trust(self, host: str) -> None:
        """Note that a client on this host has sent an accepted token."""

    def stop_waiting_for(self, address: tuple[str, int]) -> None:
        """Stop this client's time: now the client waits for the controller."""


Ask = Callable[[Message, bytes | bytearray], Awaitable[Answer]]
"""Passes a request on to the controller."""


@dataclass(slots=True)
class ManagementApi:
    """The HTTP process's half of the management API: an ASGI application."""

    timer: ClientTimer
    """Ends the connections of slow clients."""
    ask: Ask
    """Passes a request on to the controller."""
    note: Callable[[Message], None]
    """Sends the controller a message that it does not answer."""
    report_fault: Callable[[str, str], None]
    """Reports what failed, and its traceback."""
    hosts: frozenset[str] | None = None
    """Host names under which requests are accepted, besides addresses; None for any name."""
    private: bool = False
    """Whether reading needs a token, too."""
    tokens: Tokens = field(default_factory=Tokens)
    """The tokens that are accepted."""
    clock: Callable[[], float] = monotonic
    """Seconds on a monotonic clock."""
    refusals: RejectedPeers = field(init=False)
    """Counts wrong tokens, by host."""
    low_roles: RejectedPeers = field(init=False)
    """Counts requests with a token whose role is too low, by its name: apart from wrong tokens, of
    which hosts may send so many that they are not counted one by one."""
    _most_build: int = MOST_BODY
    """Most bytes of a build, as the controller has said last."""
    _has_build: bool = False
    """Whether a build is being received, or has no answer yet."""
    _pages: dict[str, bytes] = field(default_factory=dict)
    """The pages that the controller has sent last, by name."""
    _events: KeptEvents[bytes] = field(default_factory=KeptEvents)
    """The latest events, a line of JSON each."""
    _last_health: float = 0.0
    """When the controller's loop has sent `health` last, by `clock`."""
    _arrived: Condition = field(default_factory=Condition)
    """Notified when pages arrive."""

    def __post_init__(self) -> None:
        self.refusals = RejectedPeers(lambda _: None, self.clock)
        self.low_roles = RejectedPeers(lambda _: None, self.clock)

    async def receive_pages(self, pages: Mapping[str, bytes]) -> None:
        """Take pages that the controller has sent, by name.

        The controller's loop sends `health`; another green thread sends the metrics. So `health`
        shows that the loop is not stuck.
        """
        if "health" in pages:
            self._last_health = self.clock()
        self.refusals.tick()
        self.low_roles.tick()
        for name, page in pages.items():
            if name == "events":
                for line in page.splitlines():
                    record = json.loads(line)
                    self._events.add(record["number"], record["event"], line)
            elif name == "tokens":
                tokens = (Token(name, role, key.encode()) for name, role, key in json.loads(page))
                self.tokens.accepted = tuple(tokens)
            elif name == "most_build":
                self._most_build = int(page)
            else:
                self._pages[name] = page
        async with self._arrived:
            self._arrived.notify_all()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive, self.timer)
        try:
            answer = await self._answer(request)
        except Refusal as refusal:
            answer = refusal.answer
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            self.report_fault(f"answering {request.method} {request.path}", text)
            answer = refused(500, "an internal error: the controller's log has it")
        await _send_answer(answer, request, send)

    async def _answer(self, request: Request) -> Answer:
        """The answer to a request.

        Raises:
            Refusal: the request is refused.
        """
        if request.head_bytes > MOST_HEAD:
            raise Refusal(431, f"required a head of at most {MOST_HEAD:,} bytes")
        self._check_host(request)
        method = "GET" if request.method == "HEAD" else request.method
        path = request.path.rstrip("/") or "/"
        role = PASSED.get((method, path))
        allowed = _methods(path)
        if method not in allowed:
            if not allowed:
                raise Refusal(404, f"there is no {path[:100]} here")
            raise Refusal(405, f"required {' or '.join(allowed)}", Allow=", ".join(allowed))
        if role:
            return await self._pass_on(request, method, path, role)
        if self.private and path not in OPEN:
            self._token_of(request)
        if path == EVENTS:
            return self._events_after(request.query.get("after", "0"))
        return await self._read(path)

    def _check_host(self, request: Request) -> None:
        """Refuse requests under unknown host names, against DNS rebinding.

        There, a malicious page lets its own name resolve to the controller's address, to read what
        only the browser's machine can reach.
        """
        host = _name_in(request.header("host") or "localhost")
        if self.hosts is None or host in self.hosts or _is_address(host):
            return
        text = f"this controller does not go by the name {host[:100]}: start it with `http_host`"
        raise Refusal(421, text)

    async def _read(self, path: str) -> Answer:
        """The page of a path, as the controller has sent it last.

        Where the controller's loop is stuck, the page says so (`STUCK`).
        """
        name, content_type = READ[path]
        if name not in self._pages:
            await self._wait_for(name)
        body = self._pages[name]
        status = int(self._pages["health_status"]) if name == "health" else 200
        if self.clock() - self._last_health > STALE and name in STUCK:
            text_if_alive, text_if_stuck = STUCK[name]
            body = body.replace(text_if_alive, text_if_stuck, 1)
            if name == "health":
                status = 503
        is_of_status_page = path in OPEN and content_type != JSON
        headers = (("Content-Security-Policy", POLICY),) if is_of_status_page else ()
        if content_type == TYPE_IN_PAGE:
            content_type = self._pages["metrics_type"].decode()
        return Answer(status, body, content_type, headers)

    async def _wait_for(self, name: str) -> None:
        """Wait until a page has arrived.

        Raises:
            Refusal: it has not arrived in `FIRST_PATIENCE`.
        """

        async def page_arrives() -> None:
            async with self._arrived:
                await self._arrived.wait_for(lambda: name in self._pages)

        try:
            await wait_for(page_arrives(), FIRST_PATIENCE)
        except TimeoutError:
            raise Refusal(503, "the controller has not said it yet", Retry_After="1") from None

    def _events_after(self, after: str) -> Answer:
        """The events after the one of this number, as a JSON list."""
        if not (after.isascii() and after.isdigit() and len(after) < 19):
            raise Refusal(400, "after: required the number of an event")
        return Answer(200, b"[" + b", ".join(self._events.after(int(after))) + b"]\n")

    async def _pass_on(self, request: Request, method: str, path: str, role: Role) -> Answer:
        """Pass a request on to the controller, and return its answer.

        Where the token's role is too low, the controller refuses and logs it; it gets no body then.
        """
        token = self._token_of(request)
        if not token.may(role):  # limited, since the controller writes each to the disk
            requests = f"requests that need the role {role}, given a token of {token.role}"
            self._count_refusal(self.low_roles, token.name, f"lacks the role {role}", requests)
        actor = {"name": token.name, "role": token.role, "address": request.host}
        header = {"method": method, "path": path, "query": request.query, "needs": role}
        header |= {"actor": actor, "secret": token.secret.decode()}
        is_build = path == "/api/apply" and token.may(role)
        with self._only_build() if is_build else nullcontext():
            most_bytes = self._most_build if is_build else MOST_BODY
            body = await request.read(most_bytes) if token.may(role) else b""
            self.timer.stop_waiting_for(request.client)
            try:
                return await self.ask(header, body)
            finally:
                self.timer.start_waiting_for(request.client)

    @contextmanager
    def _only_build(self) -> Iterator[None]:
        """While a build is received and proved, refuse others: each is held in memory.

        Raises:
            Refusal: another build has no answer yet.
        """
        if self._has_build:
            text = "another build is being received or proved: send this one after its answer"
            raise Refusal(503, text, Retry_After="1")
        self._has_build = True
        try:
            yield
        finally:
            self._has_build = False

    def _token_of(self, request: Request) -> Token:
        """The accepted token in the `Authorization` header of a request.

        Raises:
            Refusal: there is none.
        """
        if not self.tokens.accepted:
            text = "this controller was started without `token_file` and accepts no changes"
            raise Refusal(403, text)
        authorization = request.header("authorization")
        token = self.tokens.bearer(authorization)
        if token is not None:  # even after many wrong ones: a proxy's clients are all one host
            self.timer.trust(request.host)
            return token
        reason, requests = "a token that is not known", "wrong tokens from this host"
        # A request without a token guesses none.
        is_guess = authorization is not None
        self._count_refusal(self.refusals, request.host, reason, requests, only_checks=not is_guess)
        if authorization is not None:
            self.note({"wrong_token": request.host})
        text = "required a token: Authorization: Bearer TOKEN"
        raise Refusal(401, text, WWW_Authenticate="Bearer")

    def _count_refusal(
        self,
        counted: RejectedPeers,
        client: str,
        reason: str,
        requests: str,
        only_checks: bool = False,
    ) -> None:
        """Count a request that is refused.

        Args:
            counted: those that were refused for such a reason.
            client: its host, or the name of its token.
            reason: why it is refused.
            requests: a name for such requests, for the message where there are too many.
            only_checks: whether to check only how many there were, and not to count this one.

        Raises:
            Refusal: there were `MOST_GUESSES` in the last minute.
        """
        times, seconds_left = counted.recent(TokenRefused, client, reason)
        if times >= MOST_GUESSES:
            raise Refusal(429, f"too many {requests}", Retry_After=str(ceil(seconds_left)))
        if not only_checks:
            counted.add(TokenRefused, client, reason)


STUCK = {
    "health": (b'"alive": true', b'"alive": false'),
    "state": (b'"alive": true', b'"alive": false'),
    "metrics": (b"\npolarfab_alive 1.0\n", b"\npolarfab_alive 0.0\n"),
}
"""By page, its text where the controller's loop is alive, and what replaces that once it is stuck.
"""


@dataclass(slots=True)
class Request:
    """A request, whose body is read only on demand."""

    scope: Message
    """The connection scope of ASGI."""
    receive: Receive
    """Gives the next bytes of the body."""
    timer: ClientTimer
    """Ends the connection if its client is slow."""
    ended: bool = False
    """Whether the whole body has been read."""

    @property
    def method(self) -> str:
        """The HTTP method."""
        return str(self.scope["method"])

    @property
    def path(self) -> str:
        """The path, decoded."""
        return str(self.scope["path"])

    @property
    def client(self) -> tuple[str, int]:
        """The client's address and port."""
        host, port = (self.scope.get("client") or ("", 0))[:2]
        return host, port

    @property
    def host(self) -> str:
        """The client's address."""
        return self.client[0]

    @property
    def query(self) -> dict[str, str]:
        """The query, of each key the last value."""
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1")))

    def header(self, name: str) -> str | None:
        """The value of a header; None without one."""
        headers: Sequence[tuple[bytes, bytes]] = self.scope["headers"]
        values = [value for key, value in headers if key == name.encode()]
        return values[0].decode("latin-1") if values else None

    @property
    def head_bytes(self) -> int:
        """The bytes of the path, the query, and the headers with their separators."""
        separators = len(b": \r\n")
        headers = sum(len(name) + len(value) + separators for name, value in self.scope["headers"])
        return len(self.path.encode()) + len(self.scope["query_string"]) + headers

    @property
    def length(self) -> float:
        """The bytes of the body as its headers say; infinite where they do not."""
        if self.header("transfer-encoding"):
            return float("inf")
        return float(self.header("content-length") or 0)

    async def read(self, most_bytes: int) -> bytes | bytearray:
        """The body.

        Raises:
            Refusal: it is longer than `most_bytes`, or comes too slowly.
        """
        began = monotonic()
        if self.header("transfer-encoding") is None and self.length > most_bytes:
            raise Refusal(413, f"required a body of at most {most_bytes:,} bytes")
        body = bytearray()
        while not self.ended:
            body += await self._next()
            if monotonic() - began > _patience(len(body)):
                raise Refusal(408, TOO_SLOW)
            if len(body) > most_bytes:
                raise Refusal(413, f"required a body of at most {most_bytes:,} bytes")
        return body

    async def drop(self) -> None:
        """Read and discard the rest of a short body."""
        dropped = 0
        while not self.ended and dropped <= MOST_DROPPED:
            dropped += len(await self._next())

    async def _next(self) -> bytes:
        """The next bytes of the body."""
        self.timer.start_waiting_for(self.client)
        message = await self.receive()
        self.ended = message["type"] != "http.request" or not message.get("more_body")
        if message["type"] != "http.request":
            raise Refusal(400, "the client is gone")
        return bytes(message.get("body", b""))


TOO_SLOW = (
    f"required a body within {SLOW_START:g} s and a second more for each {LEAST_RATE:,} bytes,"
    f" and after {LONGEST_UPLOAD:g} s at {LARGE_BODY_RATE:,} bytes a second or more"
)
"""Why a body is refused that comes too slowly."""


def _patience(received: int) -> float:
    """Most seconds that may have passed when so many bytes of a body have arrived.

    >>> [_patience(megabytes * 1_000_000) for megabytes in (0, 1, 5, 50, 500)]
    [10.0, 20.0, 60.0, 60.0, 500.0]
    """
    longest = max(LONGEST_UPLOAD, received / LARGE_BODY_RATE)
    return min(SLOW_START + received / LEAST_RATE, longest)


async def _send_answer(answer: Answer, request: Request, send: Send) -> None:
    """Send an answer.

    The connection ends after it where the request's body was not read: its bytes would be taken
    for the next request.
    """
    unread = not request.ended and request.length > 0
    headers = {
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        **dict(answer.headers),
        **({"Connection": "close"} if unread else {}),
    }
    encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    body, drops = answer.body, unread and request.length <= MOST_DROPPED
    for start in range(0, max(len(body), 1), CHUNK):
        request.timer.start_waiting_for(request.client)
        more = drops or start + CHUNK < len(body)
        chunk = body[start : start + CHUNK]
        await send({"type": "http.response.body", "body": chunk, "more_body": more})
    if drops:
        try:
            await request.drop()
        except Refusal:
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _methods(path: str) -> list[str]:
    """The methods that a path allows; none where there is no such path."""
    passed = [method for method, passed_path in PASSED if passed_path == path]
    return ["GET", *passed] if path in READ or path == EVENTS else passed


def _name_in(host: str) -> str:
    """The name in a Host header: without its port, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().removesuffix(".")


def _is_address(host: str) -> bool:
    """Whether a host is named by its IP address."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
