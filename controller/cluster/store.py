"""A client of etcd, the store of a cluster of controllers, by its JSON gateway (v3, etcd 3.4 on).

`controller.cluster.election` claims leadership here, and `controller.cluster.shared_record`
writes here while its controller leads.

No Python client makes this shorter: gRPC's threads conflict with eventlet; etcd3gw, which is
maintained, knows one member only, does not return a granted lease's duration, and needs
transactions written as here. Calls block, so they run in threads outside the hub.

Keys, below a prefix: `leader` (the leader's name, while its lease lasts), `epoch` (see
`EPOCH_SHIFT`), and those of the shared record.
"""

from __future__ import annotations

import json
import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from controller.switches.connections.tls_files import handshake_fault

STORE_PATIENCE = 1.0
"""Seconds to wait for an answer."""
EPOCH_SHIFT = 32
"""Bits of a term below its epoch. The epoch is the second in which the store was first used, and
the lower bits are the revision of etcd at which the leader's key was created. So terms still grow
where a store is made anew, whose revisions begin again."""


Operation = dict[str, Any]
"""An operation of a transaction of etcd, by its kind, such as `request_put`."""


class Unavailable(Exception):
    """The store does not answer, or refuses."""


class LeaderClaim(NamedTuple):
    """The store's answer to a claim of leadership."""

    leader: str
    """The leader's name."""
    term: int
    """The leader's term."""
    is_ours: bool
    """Whether the leader is the instance that claimed."""


class _Entry(NamedTuple):
    """A key of the store."""

    value: bytes
    """The value."""
    revision: int
    """The revision of etcd at which the key was created."""
    lease: int
    """The lease with whose end the key is deleted; 0 for none."""


class Etcd:
    """An etcd cluster by the URLs of its members, tried in turn. For one thread.

    Args:
        urls: the URLs of the members.
        prefix: the prefix of all keys.
        context: returns the TLS context for a new connection, which changes with certificates;
            None for plain text, or certificates of the authorities that the machine knows.

    Raises (all methods):
        Unavailable: no member answers, or it refuses.
    """

    def __init__(
        self,
        urls: Sequence[str],
        prefix: str,
        context: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._urls, self._prefix, self._context = tuple(urls), prefix, context
        self._connection: HTTPConnection | None = None
        """A connection with a member that has answered; None without one."""
        self._member = 0
        """The number of that member, modulo the number of members; each failure increments it."""
        self._epoch = 0
        """The second in which the store was first used; 0 before it is known."""

    def grant(self, seconds: int) -> tuple[int, float]:
        """Take a lease of about so many seconds; returns the lease and how many it lasts."""
        answer = self._call("lease/grant", {"TTL": seconds})
        self._epoch = 0  # read it again: the store may have been made anew
        return int(answer["ID"]), float(answer["TTL"])

    def renew(self, lease: int) -> float:
        """Renew a lease; returns how many seconds it lasts from now, 0 if it has ended."""
        answer = self._call("lease/keepalive", {"ID": str(lease)})
        return float(answer["result"].get("TTL", 0))

    def revoke(self, lease: int) -> None:
        """End a lease."""
        self._call("lease/revoke", {"ID": str(lease)})

    def claim(self, lease: int, name: str) -> LeaderClaim:
        """Write this name as the leader's, if there is no leader; returns who leads then."""
        # The epoch is read first. If the store is made anew after that, it does not know the lease
        # and refuses the name, so no term mixes the old epoch with a revision of the new store.
        epoch = self._read_epoch()
        leader = self._get_or_create("leader", name.encode(), lease)
        term = (epoch << EPOCH_SHIFT) + leader.revision
        return LeaderClaim(leader.value.decode(errors="replace"), term, leader.lease == lease)

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""
        entries = self._call("kv/range", {"key": self._key(key)}).get("kvs")
        return b64decode(entries[0].get("value", "")) if entries else None

    def put(self, key: str, value: bytes, term: int) -> bool:
        """Write a value if this term still lasts; returns whether it was written."""
        return self._in_term(term, _put(self._key(key), value))

    def delete(self, key_prefix: str, term: int) -> bool:
        """Delete all keys that begin so if this term still lasts; returns whether it did."""
        return self._in_term(term, {"request_delete_range": self._range(key_prefix)})

    def keys(self, key_prefix: str) -> list[str]:
        """The keys that begin so."""
        request = self._range(key_prefix) | {"keys_only": True}
        entries = self._call("kv/range", request).get("kvs", ())
        return [b64decode(kv["key"]).decode().removeprefix(f"{self._prefix}/") for kv in entries]

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _in_term(self, term: int, operation: Operation) -> bool:
        """Run an operation of etcd if this term still lasts; returns whether it did."""
        revision = term - (self._read_epoch() << EPOCH_SHIFT)
        return bool(self._if_created_at(revision, "leader", operation).get("succeeded"))

    def _read_epoch(self) -> int:
        """The second in which the store was first used: now, if it never was."""
        if not self._epoch:
            entry = self._get_or_create("epoch", str(int(time())).encode())
            self._epoch = int(entry.value)
        return self._epoch

    def _get_or_create(self, key: str, value: bytes, lease: int = 0) -> _Entry:
        """The entry of a key, which is created with this value where there is none."""
        # Read first: a store that is full refuses every transaction that could write, even one that
        # would not, but it still renews leases.
        entry = next(iter(self._call("kv/range", {"key": self._key(key)}).get("kvs", ())), None)
        if entry is None:
            read = {"request_range": {"key": self._key(key)}}
            answer = self._if_created_at(0, key, _put(self._key(key), value, lease), read)
            if answer.get("succeeded"):
                return _Entry(value, int(answer["header"]["revision"]), lease)
            entry = answer["responses"][0]["response_range"]["kvs"][0]
        return _Entry(
            b64decode(entry["value"]), int(entry["create_revision"]), int(entry.get("lease", 0))
        )

    def _if_created_at(
        self, revision: int, key: str, success: Operation, *failure: Operation
    ) -> Any:
        """Run a transaction of etcd, and return its answer.

        Args:
            revision: the revision at which the key has to have been created; 0 if there has to be
                no such key.
            key: the key.
            success: the operation that runs if so.
            failure: the operations that run if not.
        """
        condition = {"key": self._key(key), "target": "CREATE", "create_revision": str(revision)}
        body = {"compare": [condition], "success": [success], "failure": failure}
        return self._call("kv/txn", body)

    def _key(self, name: str) -> str:
        """A key below the prefix, in base64 as requests need it."""
        return b64encode(f"{self._prefix}/{name}".encode()).decode()

    def _range(self, key_prefix: str) -> dict[str, Any]:
        """The range of all keys that begin so."""
        end = f"{self._prefix}/{key_prefix}".encode() + b"\xff"
        return {"key": self._key(key_prefix), "range_end": b64encode(end).decode()}

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        """Send a request to the members in turn until one answers; returns its answer."""
        last_error: Exception | None = None
        for _ in self._urls:
            url = self._urls[self._member % len(self._urls)]
            try:
                return self._post(url, path, json.dumps(body))
            except ssl.SSLError as error:
                fault = handshake_fault(error, has_certificate=self._context is not None)
                last_error = Unavailable(f"{url}: {fault}")
            except (OSError, HTTPException, ValueError, KeyError, IndexError, TypeError) as error:
                last_error = Unavailable(f"{url}: {error or type(error).__name__}")
            except Unavailable as error:
                last_error = error
            self.close()
            self._member += 1
        raise last_error or Unavailable("no URL of a store")

    def _post(self, url: str, path: str, body: str) -> Any:
        """Send a request to a member; returns its answer, a JSON object."""
        if self._connection is None:
            address = urlsplit(url)
            if address.scheme == "https":
                context = self._context() if self._context else None
                self._connection = HTTPSConnection(
                    address.netloc, timeout=STORE_PATIENCE, context=context
                )
            else:
                self._connection = HTTPConnection(address.netloc, timeout=STORE_PATIENCE)
        self._connection.request("POST", f"/v3/{path}", body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if not isinstance(answer, dict):
            raise ValueError("no JSON object")
        if response.status != HTTPStatus.OK or "error" in answer:
            # {"error": TEXT, "message": TEXT, "code": NUMBER}; etcd 3.5 leaves out "error".
            error = answer.get("error", answer)
            text = error.get("message", "") if isinstance(error, dict) else str(error)
            raise Unavailable(f"{url}: {text or response.status}")
        return answer


def _put(key: str, value: bytes, lease: int = 0) -> Operation:
    """The operation of etcd that writes a value under a key, which is in base64."""
    return {"request_put": {"key": key, "value": b64encode(value).decode(), "lease": str(lease)}}
