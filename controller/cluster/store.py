"""The store of a cluster of controllers: etcd, by the JSON gateway of its API (v3, from etcd 3.4).

No Python client makes this shorter: gRPC's threads conflict with eventlet; etcd3gw, which is
maintained, knows one member only, does not return a granted lease's duration, and needs
transactions written as here. Calls block, so they run in threads outside the hub.

Keys, below a prefix: `leader` (a name, while a lease lasts), `epoch`, and the leaders' own.
"""

from __future__ import annotations

import json
import ssl
from base64 import b64decode, b64encode
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

STORE_PATIENCE = 1.0
"""Seconds to wait for an answer."""
EPOCH_SHIFT = 32
"""A term is the second in which the store was first used, and a revision below: the revisions of a
store that was made anew begin again, its terms do not."""


class Unavailable(Exception):
    """The store does not answer, or refuses."""


class Claimed(NamedTuple):
    """The answer to a claim of leadership."""

    leader: str
    """The leader's name."""
    term: int
    """The leader's term."""
    ours: bool
    """Whether the leader is the instance that asked."""


class _Entry(NamedTuple):
    """A key of the store."""

    value: bytes
    """The value."""
    revision: int
    """The revision of the store that made the key."""
    lease: int
    """The lease for as long as which it lasts; 0 for ever."""


class Etcd:
    """An etcd cluster by the URLs of its members, tried in turn. For one thread.

    Raises (all methods):
        Unavailable: no member answers, or it refuses.
    """

    def __init__(
        self, urls: Sequence[str], prefix: str, context: ssl.SSLContext | None = None
    ) -> None:
        self._urls, self._prefix, self._context = tuple(urls), prefix, context
        self._connection: HTTPConnection | None = None
        """A connection with a member that has answered; None without one."""
        self._place = 0
        """The number of that member, counted on at each failure."""
        self._epoch = 0
        """The second in which the store was first used; 0 before it is known."""

    def grant(self, ttl: int) -> tuple[int, float]:
        """A lease, and how many seconds it lasts."""
        answer = self._call("lease/grant", {"TTL": ttl})
        self._epoch = 0  # of a store that was made anew it is another one
        return int(answer["ID"]), float(answer["TTL"])

    def renew(self, lease: int) -> float:
        """Renew a lease; returns how many seconds it lasts from now, 0 if it has ended."""
        answer = self._call("lease/keepalive", {"ID": str(lease)})
        return float(answer["result"].get("TTL", 0))

    def revoke(self, lease: int) -> None:
        """End a lease."""
        self._call("lease/revoke", {"ID": str(lease)})

    def claim(self, lease: int, name: str) -> Claimed:
        """Write our name as the leader's, if there is no leader."""
        epoch = self._epoch_of()  # before: a store made anew in between refuses the lease
        leader = self._first("leader", name.encode(), lease)
        term = (epoch << EPOCH_SHIFT) + leader.revision
        return Claimed(leader.value.decode(errors="replace"), term, leader.lease == lease)

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""
        entries = self._call("kv/range", {"key": self._key(key)}).get("kvs")
        return b64decode(entries[0].get("value", "")) if entries else None

    def put(self, key: str, value: bytes, term: int) -> bool:
        """Write a value if this term still lasts; returns whether it was written."""
        return self._while(term, _put(self._key(key), value))

    def delete(self, key: str, term: int) -> bool:
        """Delete all keys with this prefix if this term still lasts; returns whether it did."""
        return self._while(term, {"request_delete_range": self._all(key)})

    def keys(self, start: str) -> list[str]:
        """The keys with this prefix."""
        entries = self._call("kv/range", self._all(start) | {"keys_only": True}).get("kvs", ())
        return [b64decode(kv["key"]).decode().removeprefix(f"{self._prefix}/") for kv in entries]

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _while(self, term: int, request: dict[str, Any]) -> bool:
        """Do something if this term still lasts; returns whether it does."""
        revision = term - (self._epoch_of() << EPOCH_SHIFT)
        return bool(self._if_made_at(revision, "leader", request).get("succeeded"))

    def _epoch_of(self) -> int:
        """The second in which the store was first used: now, if it never was."""
        self._epoch = self._epoch or int(self._first("epoch", str(int(time())).encode()).value)
        return self._epoch

    def _first(self, key: str, value: bytes, lease: int = 0) -> _Entry:
        """A key, with this value if there was none before."""
        # Read first: a store that is full refuses whatever could write, and renews leases.
        entry = next(iter(self._call("kv/range", {"key": self._key(key)}).get("kvs", ())), None)
        if entry is None:
            read = {"request_range": {"key": self._key(key)}}
            answer = self._if_made_at(0, key, _put(self._key(key), value, lease), read)
            if answer.get("succeeded"):
                return _Entry(value, int(answer["header"]["revision"]), lease)
            entry = answer["responses"][0]["response_range"]["kvs"][0]
        return _Entry(
            b64decode(entry["value"]), int(entry["create_revision"]), int(entry.get("lease", 0))
        )

    def _if_made_at(self, revision: int, key: str, do: Any, *instead: Any) -> Any:
        """Do something if a key was made at this revision, 0 if there is none; else that."""
        condition = {"key": self._key(key), "target": "CREATE", "create_revision": str(revision)}
        body = {"compare": [condition], "success": [do], "failure": instead}
        return self._call("kv/txn", body)

    def _key(self, name: str) -> str:
        """A key as a request has it."""
        return b64encode(f"{self._prefix}/{name}".encode()).decode()

    def _all(self, start: str) -> dict[str, Any]:
        """The range of all keys with this prefix."""
        end = f"{self._prefix}/{start}".encode() + b"\xff"
        return {"key": self._key(start), "range_end": b64encode(end).decode()}

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        """Ask the members in turn until one answers."""
        last: Exception | None = None
        for _ in self._urls:
            url = self._urls[self._place % len(self._urls)]
            try:
                return self._ask(url, path, json.dumps(body))
            except (OSError, HTTPException, ValueError, KeyError, IndexError, TypeError) as error:
                last = Unavailable(f"{url}: {error or type(error).__name__}")
            except Unavailable as error:
                last = error
            self.close()
            self._place += 1
        raise last or Unavailable("no URL of a store")

    def _ask(self, url: str, path: str, body: str) -> Any:
        """The answer of a member, which is JSON."""
        if self._connection is None:
            address = urlsplit(url)
            if address.scheme == "https":
                self._connection = HTTPSConnection(
                    address.netloc, timeout=STORE_PATIENCE, context=self._context
                )
            else:
                self._connection = HTTPConnection(address.netloc, timeout=STORE_PATIENCE)
        self._connection.request("POST", f"/v3/{path}", body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if not isinstance(answer, dict):
            raise ValueError("no JSON object")
        if "error" in answer:
            error = answer["error"]
            text = error.get("message", "") if isinstance(error, dict) else str(error)
            raise Unavailable(f"{url}: {text}")
        return answer


def _put(key: str, value: bytes, lease: int = 0) -> dict[str, Any]:
    """The request that writes a value."""
    return {"request_put": {"key": key, "value": b64encode(value).decode(), "lease": str(lease)}}
