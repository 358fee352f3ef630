"""A client of a controller's management API, for the verbs and functions of running fabrics.

`Client` sends HTTP requests with a token to the controller's address, and returns the JSON of its
answers. A refusal or a controller that does not answer becomes an `InputError` that says why.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from controller import API
from controller.management.tokens import Tokens
from inventory.problems import InputError

HTTP_PATIENCE = 30.0
"""Seconds to wait for an answer."""
HTTP = f"http://{API}"
"""The URL of a controller's management API by default."""
MOVE_POLL = 0.2
"""Seconds between two requests for the progress of a move."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client of a controller's management API."""

    url: str
    """The URL of the API."""
    key: str
    """The option that named the URL, for messages."""
    token: str = ""
    """The token that is sent; "" for none."""
    authority: str | Path | None = None
    """The authority of the controller's certificate (PEM), for https."""

    @classmethod
    def to(
        cls,
        url: str,
        key: str,
        tokens: str | Path | None = None,
        authority: str | Path | None = None,
    ) -> Client:
        """A client of the API at a URL.

        Args:
            url: the URL of the API.
            key: the option that named it, for messages.
            tokens: a file, whose first token is sent.
            authority: the authority of the controller's certificate (PEM), for https.

        Raises:
            InputError: the URL is not http or https, or the file cannot be used.
        """
        try:
            parts = urlsplit(url)
            is_web_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_web_address = False
        if not is_web_address:
            raise InputError.of(key=key, required=f"a URL such as {HTTP}", given=repr(url))
        token = Tokens.read(Path(tokens)).accepted[0].secret.decode() if tokens else ""
        return cls(url.rstrip("/"), key, token, authority)

    def get(self, path: str, **query: str) -> Any:
        """The JSON at /api/PATH, decoded.

        Raises:
            InputError: the controller does not answer, or refuses.
        """
        return json.loads(self.ask(f"{path}?{urlencode(query)}"))

    def post(self, path: str, body: Mapping[str, Any] | bytes) -> Any:
        """Send a command; returns the answer, decoded.

        Raises:
            InputError: the controller does not answer, or refuses.
        """
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return json.loads(self.ask(path, data))

    def apply(
        self,
        archive: bytes,
        accept_loss: bool = False,
        unverified: bool = False,
        progress: Callable[[int, int], None] | None = None,
        confirm_within: int = 0,
    ) -> dict[str, Any]:
        """Move the fabric to a packed build; returns the state in which the move ended.

        Args:
            archive: the packed build.
            accept_loss: whether to go on although pairs of hosts lose packets.
            unverified: whether to take tables that verification has not passed on.
            progress: takes how many rounds are done, and how many there are.
            confirm_within: seconds in which the move must be confirmed; 0 for no trial.

        Raises:
            InputError: the controller does not answer, or refuses.
        """
        options = f"accept_loss={accept_loss:d}&unverified={unverified:d}"
        options += f"&confirm_within={confirm_within}"
        return self._last_state(self.post(f"apply?{options}", archive), progress)

    def roll_back(
        self, build: str = "", progress: Callable[[int, int], None] | None = None
    ) -> dict[str, Any]:
        """Move the fabric to an earlier build; returns the state in which the move ended.

        Raises:
            InputError: the controller does not answer, or refuses.
        """
        return self._last_state(self.post("rollback", {"build": build} if build else {}), progress)

    def _last_state(
        self, state: dict[str, Any], progress: Callable[[int, int], None] | None
    ) -> dict[str, Any]:
        """Wait until a move has ended; returns its last state."""
        try:
            while state["state"] not in ("done", "failed", "none"):
                if progress:
                    progress(state["round"], state["rounds"])
                time.sleep(MOVE_POLL)
                state = self.get("move")
        except (KeyboardInterrupt, SystemExit) as error:
            error.add_note("the controller goes on with the move; polarfab status shows it")
            raise
        return state

    def ask(self, path: str, data: bytes | None = None) -> bytes:
        """Send a request, and return the body of the answer.

        Args:
            path: follows /api/.
            data: the body of a POST request; None for a GET request.

        Raises:
            InputError: the controller does not answer, or refuses.
        """
        request = Request(f"{self.url}/api/{path}", data)  # noqa: S310 - `to` has checked the scheme
        request.add_header("Content-Type", "application/octet-stream")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            secure = self.url.startswith("https:")
            context = ssl.create_default_context(cafile=self.authority) if secure else None
            # No proxy of the environment: it would be sent the token.
            opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
            with opener.open(request, timeout=HTTP_PATIENCE) as answer:
                text: bytes = answer.read()
                return text
        except HTTPError as error:
            text = error.read()
            # The state of a fabric that is not complete comes with the code 503. It is told from
            # a refusal, which has the code 503 too, by its key "complete".
            if error.code == 503 and b'"complete"' in text:
                return bytes(text)
            raise self._refused(error.code, text) from error
        except (OSError, HTTPException, ValueError) as error:
            raise InputError.of(
                key=self.key,
                required="a controller that answers",
                given=f"{self.url}: {_reason(error)}",
                todo="start one: polarfab controller BUILD --token-file FILE, or name another with "
                "`to URL`",
            ) from error

    def _refused(self, code: int, text: bytes) -> InputError:
        """The error for an answer that is a refusal.

        Args:
            code: the HTTP status code.
            text: the body of the answer.
        """
        try:
            reason = str(json.loads(text)["error"])
        except (ValueError, KeyError, TypeError):
            reason = f"an answer that is not from polarfab (HTTP {code})"
        if code == 401:
            sent = "one that it does not know" if self.token else "none"
            todo = "name the file of tokens that the controller was started with"
            required = "a file that begins with a token that the controller accepts"
            return InputError.of(required, sent, todo, key="token_file")
        if "required " in reason:  # a message of polarfab, which says what to do
            return InputError.of("", reason)
        return InputError.of("a request that the controller accepts", reason, key=self.key)


def _reason(error: Exception) -> str:
    """Why there was no answer, without the numbers of the operating system."""
    reason = getattr(error, "reason", None) or error
    return str(getattr(reason, "strerror", None) or reason)
