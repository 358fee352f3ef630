"""The HTTP API, a WSGI application: anyone who can connect may read; the rest needs a token.

`_GET` and `_POST` have its paths, and the roles of tokens that may post; docs/how-to/management.md
says what each does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from werkzeug.exceptions import (
    BadRequest,
    Conflict,
    Forbidden,
    HTTPException,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from controller.management.action_log import ActionLog, Actor
from controller.management.metrics import Metrics
from controller.management.tokens import Role, Tokens
from controller.rollout.build_archive import MOST_BUILD, identity_in
from controller.rollout.mover import Mover
from controller.state import Overview
from controller.switches.events import Event, TokenRefused, TokensKept, TokensLoaded
from inventory.problems import InputError
from templates import TEMPLATES

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
MOST_BODY = 64 * 1024
"""Most bytes of a request's body."""

MOST_WRITING, WRITING_POLL = 5.0, 0.01
"""Seconds that an answer waits at most until the record is written, and between two looks."""
MOST_GUESSES = 10
"""Wrong tokens that a host may send in a minute (`RETELL`)."""
LONGEST_TRIAL = 7 * 86400
"""Most seconds that a build may be on trial."""


class _Request(Request):
    max_content_length = MOST_BODY
    max_form_memory_size = MOST_BODY


@dataclass(frozen=True, slots=True)
class Api:
    """The HTTP application."""

    overview: Overview
    """The fabric's state and its latest events."""
    metrics: Metrics
    """The metrics for Prometheus."""
    tokens: Tokens
    """The tokens that are accepted."""
    actions: ActionLog
    """The log of actions."""
    mover: Mover
    """Moves the fabric to other builds."""
    private: bool = False
    """Whether reading needs a token, too. The page itself and `health` never do."""
    breathe: Callable[..., None] = lambda *_: None
    """Lets other work go on, for so many seconds, while a build is proved, much is drained or a
    record is written.
    """

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer a request; errors become responses, too."""
        request = _Request(environ)
        try:
            (method, *words), _ = _ROUTES.bind_to_environ(environ).match()
            if self.private and method not in ("page", "health"):
                self._authorise(request, "read")
            response: Response = getattr(self, method)(request, *words)
        except InputError as error:
            response = _json({"error": str(error)}, 400)
        except HTTPException as error:
            response = _json({"error": error.description or error.name}, error.code or 500)
            if rest := getattr(error, "retry_after", None):
                response.headers["Retry-After"] = str(rest)
            if isinstance(error, Unauthorized):
                response.headers["WWW-Authenticate"] = "Bearer"
            if allowed := getattr(error, "valid_methods", None):
                response.headers["Allow"] = ", ".join(allowed)
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"
        return response(environ, start)

    def happened(self, event: Event) -> None:
        """Keep an event, and measure by it."""
        self.overview.happened(event)
        self.metrics.happened(event)

    def page(self, _: _Request, name: str, kind: str) -> Response:
        """The status page, its script or a style sheet."""
        text = (TEMPLATES / name).read_bytes()
        response = Response(text, content_type=f"{kind}; charset=utf-8")
        response.headers["Content-Security-Policy"] = POLICY
        return response

    def health(self, _: _Request) -> Response:
        """The fabric in a few numbers."""
        health = self.overview.health()
        good = health["alive"] and (health["complete"] or health["role"] == "follower")
        return _json(health, 200 if good else 503)

    def overview_of(self, _: _Request, what: str) -> Response:
        """A part of the overview, by the name of its method."""
        return _json(getattr(self.overview, what)())

    def events(self, request: _Request) -> Response:
        """The events after an event."""
        after = request.args.get("after", "0")
        if not (after.isascii() and after.isdigit() and len(after) < 19):
            raise BadRequest("after: required the number of an event")
        return _json(self.overview.events(int(after)))

    def change(self, request: _Request, role: Role, method: str, *words: bool) -> Response:
        """What changes something is for who may do so, and for the leader."""
        actor = self._authorise(request, role)
        leading = self.overview.look().role
        if leading["role"] != "leader":
            raise Conflict(f"send changes to the controller that leads: {leading['leader']}")
        response: Response = getattr(self, method)(request, actor, *words)
        return response

    def reconcile(self, request: _Request, actor: Actor) -> Response:
        """Read switches again and undo changes that others made."""
        fabric, node = self.mover.fabric, _body(request).get("node")
        if node is not None and node not in fabric.names:
            raise NotFound(f"node: there is no node {node!r}")
        chosen = [v for v in sorted(fabric.present) if node in (None, fabric.names[v])]
        if node is not None and not chosen:
            raise ServiceUnavailable(f"switch {node} is not connected")
        with self.actions.recording(actor, "reconcile", node or "every switch"):
            for vertex in chosen:
                fabric.present[vertex].wait()
        return _json({"switches": len(chosen)}, 202)

    def drain(self, request: _Request, actor: Actor, ends: bool) -> Response:
        """Route around a node, a link or a group, or use it again."""
        what = _body(request).get("what")
        if not isinstance(what, str):
            raise BadRequest("what: required a node, a link or a group, such as module:NODE/MODULE")
        with self.actions.recording(actor, "undrain" if ends else "drain", what):
            answer = self.mover.keeper.drain(what, ends, self.breathe)
        self._remember()
        return _json(answer, 202)

    def _remember(self) -> None:
        """Wait until what is drained is written down: who takes over would use it again."""
        until = monotonic() + MOST_WRITING
        while not self.mover.remembered():
            if monotonic() > until:
                raise ServiceUnavailable(
                    "it is done, but not written down: the store or the disk does not take it,"
                    " and the next controller would not know of it; this one goes on trying"
                )
            self.breathe(WRITING_POLL)

    def build(self, request: _Request) -> Response:
        """The running build, packed."""
        self._authorise(request, "read")
        return Response(self.mover.running(), content_type="application/zip")

    def history(self, _: _Request) -> Response:
        """The builds that the fabric held, the newest last."""
        return _json(self.mover.history.past())

    def apply(self, request: _Request, actor: Actor) -> Response:
        """Move to the build in the body, round by round."""
        request.max_content_length = MOST_BUILD
        accept_loss, unverified = (
            request.args.get(word) == "1" for word in ("accept_loss", "unverified")
        )
        within, data = _seconds(request.args.get("confirm_within", "0")), request.get_data()
        with self.actions.recording(actor, "apply", identity_in(data)):
            target = self.mover.receive(data, unverified, self.breathe)
            self.mover.move(target, accept_loss, actor.name, within)
        return _json(self.mover.progress(), 202)

    def confirm(self, _: _Request, actor: Actor) -> Response:
        """Keep the build that is on trial."""
        with self.actions.recording(actor, "confirm", self.mover.fabric.identity):
            self.mover.confirm()
        return _json(self.mover.progress())

    def rollback(self, request: _Request, actor: Actor) -> Response:
        """Move to an earlier build, round by round."""
        build = _body(request).get("build", "")
        if not isinstance(build, str):
            raise BadRequest("build: required the identity of a build")
        what = build or "to the build before"
        with self.actions.recording(actor, "rollback", what, returns=True):
            self.mover.roll_back(build, actor.name)
        return _json(self.mover.progress(), 202)

    def move(self, _: _Request) -> Response:
        """The progress of the last move."""
        return _json(self.mover.progress())

    def exposition(self, _: _Request) -> Response:
        """Metrics in Prometheus' text format."""
        return Response(generate_latest(self.metrics.registry), content_type=CONTENT_TYPE_LATEST)

    def read_tokens_again(self) -> None:
        """Use the token file as it is now; one that cannot be used changes nothing."""
        if self.tokens.file is None:
            return
        tell, name = self.mover.fabric.tell, str(self.tokens.file)
        try:
            self.tokens.read_again()
        except InputError as error:
            tell(TokensKept(name, str(error)))
        else:
            tell(TokensLoaded(name, len(self.tokens.accepted)))

    def _authorise(self, request: _Request, role: Role) -> Actor:
        if not self.tokens.accepted:
            raise Forbidden(
                "this controller was started without `token_file` and accepts no changes"
            )
        host, given = request.remote_addr or "", request.headers.get("Authorization")
        token = self.tokens.bearer(given)
        if token is None:
            # One that is known passes always: behind a proxy all clients are one host.
            wrong = TokenRefused, host, "a token that is not known"
            times, left = self.mover.fabric.rejected.recent(*wrong)
            if times >= MOST_GUESSES:
                text = "too many wrong tokens from this host"
                raise TooManyRequests(text, retry_after=ceil(left))
            if given is not None:
                self.mover.fabric.rejected.add(*wrong)
            raise Unauthorized("required a token: Authorization: Bearer TOKEN")
        actor = Actor(token.name, token.role, request.remote_addr or "")
        if not token.may(role):
            self.actions.write(
                actor, request.method, request.path, f"refused: needs the role {role}"
            )
            raise Forbidden(f"required a token of the role {role}, given one of {token.role}")
        return actor


_GET = {
    "/": ("page", "status_page/page.html", "text/html"),
    "/page.js": ("page", "status_page/page.js", "text/javascript"),
    "/page.css": ("page", "status_page/page.css", "text/css"),
    "/style.css": ("page", "pages/style.css", "text/css"),
    "/metrics": ("exposition",),
    **{f"/api/{what}": ("overview_of", what) for what in ("state", "floor")},
    **{f"/api/{name}": (name,) for name in ("health", "events", "build", "move", "history")},
}
_POST: dict[str, tuple[Any, ...]] = {
    "/api/reconcile": ("operate", "reconcile"),
    "/api/drain": ("operate", "drain", False),
    "/api/undrain": ("operate", "drain", True),
    **{f"/api/{name}": ("apply", name) for name in ("apply", "confirm", "rollback")},
}
_ROUTES = Map(
    [
        *(Rule(path, endpoint=words, methods=["GET"]) for path, words in _GET.items()),
        *(
            Rule(path, endpoint=("change", *words), methods=["POST"])
            for path, words in _POST.items()
        ),
    ],
    strict_slashes=False,
)


def _body(request: _Request) -> dict[str, Any]:
    try:
        body = json.loads(request.get_data() or b"{}")
    except (ValueError, RecursionError) as error:
        raise BadRequest("required a body in JSON") from error
    if not isinstance(body, dict):
        raise BadRequest("required a JSON object")
    return body


def _seconds(text: str) -> float:
    if not (text.isascii() and text.isdigit() and int(text) <= LONGEST_TRIAL):
        raise BadRequest(f"confirm_within: required seconds, at most {LONGEST_TRIAL:,}")
    return float(text)


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value) + "\n", status, content_type="application/json")
