"""A client of the management API without a network: both halves of it in this process."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from urllib.parse import quote, urlsplit

from controller.management.action_log import Actor
from controller.management.http_api import Api, PassedRequest
from controller.management.site import ManagementApi
from controller.upkeep.background import at_once

NOBODY = SimpleNamespace(
    start_waiting_for=lambda _: None, stop_waiting_for=lambda _: None, trust=lambda _: None
)
"""A door through which nobody comes."""


@dataclass
class Answered:
    status_code: int
    headers: dict
    data: bytes
    read: int
    """Bytes of the body that the server has read."""

    @property
    def text(self):
        return self.data.decode()

    @property
    def json(self):
        return json.loads(self.data)


class Headers(dict):
    def __getitem__(self, name):
        return super().__getitem__(name.lower())

    def __contains__(self, name):
        return super().__contains__(name.lower())


@dataclass
class Client:
    """What clients are answered by an API."""

    api: Api
    private: bool = False
    hosts: frozenset | None = frozenset({"localhost"})
    site: ManagementApi = field(init=False)
    notes: list = field(default_factory=list)
    silent: bool = False
    """Whether the controller says nothing any more."""

    def __post_init__(self):
        self.api.start = at_once
        self.site = ManagementApi(
            NOBODY, self.ask, self.noted, self.faulted, self.hosts, self.private
        )
        asyncio.run(self.site.receive_pages(self.api.all_pages()))

    async def ask(self, header, body):
        words = (header[word] for word in ("method", "path", "query"))
        actor, secret = Actor(**header["actor"]), header["secret"].encode()
        request = PassedRequest(*words, actor, secret, body)
        return self.api.answer(request, header["needs"])

    def faulted(self, what, text):
        self.notes.append({"fault": what, "text": text})

    def noted(self, header):
        self.notes.append(header)
        if "wrong_token" in header:
            self.api.wrong_token(header["wrong_token"])

    def get(self, path, **words):
        return self.open(path, "GET", **words)

    def post(self, path, **words):
        return self.open(path, "POST", **words)

    def open(self, path, method="GET", headers=(), client="127.0.0.1", host="localhost", **words):
        data = words.get("data", b"")
        if "json" in words:
            data = json.dumps(words["json"]).encode()
        return asyncio.run(self._opened(path, method, dict(headers), data, client, host))

    async def _opened(self, path, method, headers, data, client, host):
        if not self.silent:
            exposed = {"metrics": b"".join(self.api.exposition()), "metrics_type": b"text/plain"}
            await self.site.receive_pages({**self.api.changed_pages(), **exposed})
        parts = urlsplit(path)
        sent = [("host", host), ("content-length", str(len(data))), *headers.items()]
        scope = {
            "type": "http",
            "method": method,
            "path": parts.path,
            "query_string": quote(parts.query, safe="=&%+").encode(),
            "client": (client, 40000),
            "headers": [(name.lower().encode(), value.encode()) for name, value in sent],
        }
        chunks = [data[place : place + 65536] for place in range(0, len(data), 65536)] or [b""]
        left, said = list(chunks), []

        async def receive():
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        async def send(message):
            said.append(message)

        await self.site(scope, receive, send)
        head, *bodies = said
        named = {name.decode(): value.decode() for name, value in head["headers"]}
        body = b"".join(message["body"] for message in bodies)
        read = sum(map(len, chunks)) - sum(map(len, left))
        return Answered(head["status"], Headers(named), body, read)
