"""The paths of the management API as an ASGI application, in the HTTP process.

What is read are bytes that the controller has sent before. What changes something is passed on to
the controller. Who is refused is refused here, before the body is read.
"""

from __future__ import annotations

import json
import traceback
from asyncio import Condition, wait_for
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from math import ceil
from time import monotonic
from typing import Any, Protocol
from urllib.parse import parse_qsl

from controller.management.tokens import Role, Token, Tokens
from controller.switches.events import EVENTS_KEPT, TokenRefused
from controller.switches.peers import RejectedPeers

MOST_HEAD = 16 * 1024
"""Most bytes of a request's path, query and headers. The server bounds only a head that arrives in
several pieces."""
MOST_BODY = 64 * 1024
"""Most bytes of a request's body, if that is not a build."""
MOST_DROPPED = 1 << 20
"""Bytes of a refused body that are read and dropped, so that its sender reads why it is refused."""
CHUNK = 64 * 1024
"""Bytes of an answer that are sent at once."""
MOST_GUESSES = 10
"""Wrong tokens that a host may send in a minute (`controller.switches.peers.RETELL`), and requests
with a token that lacks the role.
"""
FIRST_PATIENCE = 5.0
"""Seconds that a reader waits for what the controller has not sent yet."""
STALE = 5.0
"""Seconds without news from the controller after which its loop counts as stuck."""

JSON = "application/json"
"""The type of JSON."""
POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
"""What a page may load (`Content-Security-Policy`)."""
HTML, SCRIPT, STYLE = (f"text/{kind}; charset=utf-8" for kind in ("html", "javascript", "css"))
"""The types of pages, scripts and style sheets."""

READ: dict[str, tuple[str, str]] = {
    "/": ("status_page/page.html", HTML),
    "/page.js": ("status_page/page.js", SCRIPT),
    "/page.css": ("status_page/page.css", STYLE),
    "/style.css": ("pages/style.css", STYLE),
    "/metrics": ("metrics", ""),
    **{f"/api/{name}": (name, JSON) for name in ("state", "floor", "health", "move", "history")},
}
"""By path, the part that is read there and its type; that of the metrics comes with them."""
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
"""What is passed on to the controller, and the role that it needs."""
OPEN = frozenset({"/", "/page.js", "/page.css", "/style.css", "/api/health"})
"""What is read without a token in any case."""

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
    kind: str = JSON
    """The type of the body."""
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers."""


class Refusal(Exception):
    """A request that is refused; the text says why."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.answer = refused(status, text, **headers)


def refused(status: int, text: str, **headers: str) -> Answer:
    """The answer to a request that is refused."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(status, json.dumps({"error": text}).encode() + b"\n", JSON, named)


class Door(Protocol):
    """Decides which connections are ended because their clients keep us waiting."""

    def waits(self, address: tuple[str, int]) -> None:
        """From now on a connection waits for its client."""

    def works(self, address: tuple[str, int]) -> None:
        """From now on the client waits for us."""


Ask = Callable[[Message, bytes], Awaitable[Answer]]
"""Passes a request on to the controller."""


@dataclass(slots=True)
class ManagementApi:
    """The management API, as far as it is in the HTTP process."""

    door: Door
    """The door that the connections came through."""
    ask: Ask
    """Passes a request on to the controller."""
    note: Callable[[Message], None]
    """Tells the controller something that it does not answer."""
    hosts: frozenset[str] | None = None
    """Names that the controller goes by, besides addresses; None for any name."""
    private: bool = False
    """Whether reading needs a token, too."""
    most_build: int = MOST_BODY
    """Most bytes of a build."""
    tokens: Tokens = field(default_factory=Tokens)
    """The tokens that are accepted."""
    clock: Callable[[], float] = monotonic
    """Seconds on a clock that is never set."""
    guesses: RejectedPeers = field(init=False)
    """The wrong tokens of the last minute, and those that lacked a role."""
    _parts: dict[str, bytes] = field(default_factory=dict)
    """What readers get, by name."""
    _events: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    """The latest events: number and line."""
    _heard: float = 0.0
    """When the controller's loop said something last."""
    _arrived: Condition = field(default_factory=Condition)
    """Notified when parts arrive."""

    def __post_init__(self) -> None:
        self.guesses = RejectedPeers(lambda _: None, self.clock)

    async def told(self, parts: Mapping[str, bytes]) -> None:
        """The controller has sent these parts. Its loop sends `health`, and another one metrics."""
        if "health" in parts:
            self._heard = self.clock()
        self.guesses.tick()
        for name, part in parts.items():
            if name == "events":
                lines = part.splitlines()
                self._events.extend((json.loads(line)["number"], line) for line in lines)
            elif name == "tokens":
                held = (Token(name, role, key.encode()) for name, role, key in json.loads(part))
                self.tokens.accepted = tuple(held)
            else:
                self._parts[name] = part
        async with self._arrived:
            self._arrived.notify_all()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive, self.door)
        try:
            answer = await self._answer(request)
        except Refusal as refusal:
            answer = refusal.answer
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            self.note({"fault": f"answering {request.method} {request.path}", "text": text})
            answer = refused(500, "an internal error: the controller's log has it")
        await _sent(answer, request, send)

    async def _answer(self, request: Request) -> Answer:
        """The answer to a request that may be asked for here."""
        if request.head > MOST_HEAD:
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
            return await self._passed(request, method, path, role)
        if self.private and path not in OPEN:
            self._holder(request)
        if path == EVENTS:
            return self._events_after(request.query.get("after", "0"))
        return await self._read(path)

    def _check_host(self, request: Request) -> None:
        """Refuse requests for other names: a page of somebody else's may have had its own name
        resolved to our address, to read what only the browser's machine can reach.
        """
        host = _name_in(request.header("host") or "localhost")
        if self.hosts is None or host in self.hosts or _is_address(host):
            return
        text = f"this controller does not go by the name {host[:100]}: start it with `http_host`"
        raise Refusal(421, text)

    async def _read(self, path: str) -> Answer:
        """What the controller has sent last."""
        name, kind = READ[path]
        if name not in self._parts:
            await self._arrival(name)
        body = self._parts[name]
        status = 200
        if name == "health":
            status = int(self._parts["health_status"])
        if self.clock() - self._heard > STALE and name in STUCK:
            body, status = body.replace(*STUCK[name], 1), 503 if name == "health" else status
        headers = (("Content-Security-Policy", POLICY),) if path in OPEN and kind != JSON else ()
        return Answer(status, body, kind or self._parts["metrics_type"].decode(), headers)

    async def _arrival(self, name: str) -> None:
        """Wait until a part has arrived."""

        async def here() -> None:
            async with self._arrived:
                await self._arrived.wait_for(lambda: name in self._parts)

        try:
            await wait_for(here(), FIRST_PATIENCE)
        except TimeoutError:
            raise Refusal(503, "the controller has not said it yet", Retry_After="1") from None

    def _events_after(self, after: str) -> Answer:
        """The events after this number."""
        if not (after.isascii() and after.isdigit() and len(after) < 19):
            raise Refusal(400, "after: required the number of an event")
        lines = [line for number, line in self._events if number > int(after)]
        return Answer(200, b"[" + b", ".join(lines) + b"]\n")

    async def _passed(self, request: Request, method: str, path: str, role: Role) -> Answer:
        """What the controller answers. It writes down who lacks a role, too, but gets no body."""
        token = self._holder(request)
        if not token.may(role):  # each is a line on the disk, and a wait for it
            what = f"requests that need the role {role}, given a token of {token.role}"
            self._count(token.name, f"lacks the role {role}", what)
        most = self.most_build if path == "/api/apply" else MOST_BODY
        body = await request.read(most) if token.may(role) else b""
        actor = {"name": token.name, "role": token.role, "address": request.host}
        asked = {"method": method, "path": path, "query": request.query, "actor": actor}
        self.door.works(request.client)
        try:
            return await self.ask({**asked, "needs": role}, body)
        finally:
            self.door.waits(request.client)

    def _holder(self, request: Request) -> Token:
        """The token of a request."""
        if not self.tokens.accepted:
            text = "this controller was started without `token_file` and accepts no changes"
            raise Refusal(403, text)
        authorization = request.header("authorization")
        token = self.tokens.bearer(authorization)
        if token is not None:  # it passes always: behind a proxy all clients are one host
            return token
        wrong = request.host, "a token that is not known", "wrong tokens from this host"
        self._count(*wrong, adds=authorization is not None)
        if authorization is not None:
            self.note({"wrong_token": request.host})
        text = "required a token: Authorization: Bearer TOKEN"
        raise Refusal(401, text, WWW_Authenticate="Bearer")

    def _count(self, who: str, why: str, what: str, adds: bool = True) -> None:
        """Count a refusal; the next ones are refused here once there are too many."""
        times, left = self.guesses.recent(TokenRefused, who, why)
        if times >= MOST_GUESSES:
            raise Refusal(429, f"too many {what}", Retry_After=str(ceil(left)))
        if adds:
            self.guesses.add(TokenRefused, who, why)


STUCK = {
    "health": (b'"alive": true', b'"alive": false'),
    "state": (b'"alive": true', b'"alive": false'),
    "metrics": (b"\npolarfab_alive 1.0\n", b"\npolarfab_alive 0.0\n"),
}
"""By part, what it says of the controller's loop, and what it has to say once that is stuck."""


@dataclass(slots=True)
class Request:
    """A request, whose body is read only on demand."""

    scope: Message
    """What the server says of it (ASGI)."""
    receive: Receive
    """Gives the next bytes of the body."""
    door: Door
    """The door that its connection came through."""
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
    def head(self) -> int:
        """The bytes of the path, the query, and the headers with their separators."""
        headers = sum(len(name) + len(value) + 4 for name, value in self.scope["headers"])
        return len(self.path.encode()) + len(self.scope["query_string"]) + headers

    @property
    def length(self) -> float:
        """The bytes of the body as its sender says; infinite where that is not said."""
        if self.header("transfer-encoding"):
            return float("inf")
        return float(self.header("content-length") or 0)

    async def read(self, most: int) -> bytes:
        """The body.

        Raises:
            Refusal: it is longer than `most` bytes.
        """
        if self.header("transfer-encoding") is None and self.length > most:
            raise Refusal(413, f"required a body of at most {most:,} bytes")
        body = bytearray()
        while not self.ended:
            body += await self._next()
            if len(body) > most:
                raise Refusal(413, f"required a body of at most {most:,} bytes")
        return bytes(body)

    async def drop(self) -> None:
        """Read what is left of a short body, and forget it."""
        dropped = 0
        while not self.ended and dropped <= MOST_DROPPED:
            dropped += len(await self._next())

    async def _next(self) -> bytes:
        """The next bytes of the body."""
        self.door.waits(self.client)
        message = await self.receive()
        self.ended = message["type"] != "http.request" or not message.get("more_body")
        if message["type"] != "http.request":
            raise Refusal(400, "the client is gone")
        return bytes(message.get("body", b""))


async def _sent(answer: Answer, request: Request, send: Send) -> None:
    """Send an answer. A body that was not read ends the connection, since what follows is not a
    request.
    """
    unread = not request.ended and request.length > 0
    headers = {
        "Content-Type": answer.kind,
        "Content-Length": str(len(answer.body)),
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        **dict(answer.headers),
        **({"Connection": "close"} if unread else {}),
    }
    encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    body, drops = answer.body, unread and request.length <= MOST_DROPPED
    for place in range(0, max(len(body), 1), CHUNK):
        request.door.waits(request.client)
        more = drops or place + CHUNK < len(body)
        chunk = body[place : place + CHUNK]
        await send({"type": "http.response.body", "body": chunk, "more_body": more})
    if drops:
        try:
            await request.drop()
        except Refusal:
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _methods(path: str) -> list[str]:
    """The methods that a path takes."""
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
