"""The HTTP API, a WSGI application: anyone who can connect may read; changes need a token.

| method and path | what |
|---|---|
| GET / | the status page of `templates/status_page/` |
| GET /api/health | the fabric in a few numbers; 503 if a switch of a leader lacks its program |
| GET /api/state | each switch, and links that are dead or loaded |
| GET /api/floor | racks, switches and links, which do not change |
| GET /api/events?after=N | the events after event N |
| GET /api/drift | foreign rows, and how many rows were corrected |
| GET /api/paths?from=A&to=B | the paths between two switches or hosts |
| POST /api/reconcile | read all switches again, or only {"node": name}; needs a token |
| GET /api/build | the running build, a ZIP file of its folder; needs a token |
| POST /api/apply | move to the build in the body, a ZIP file; needs a token |
| GET /api/move | the progress of the last move |
| GET /metrics | for Prometheus |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from werkzeug.exceptions import (
    BadRequest,
    Conflict,
    Forbidden,
    HTTPException,
    NotFound,
    ServiceUnavailable,
    Unauthorized,
)
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from controller.management.metrics import Metrics
from controller.management.moves import Moves
from controller.management.overview import Overview
from controller.management.tokens import Tokens
from controller.rollout.build_archive import MOST_BUILD
from inventory.problems import InputError
from templates import TEMPLATES

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
MOST_BODY = 64 * 1024
"""Most bytes of a request's body."""


class _Request(Request):
    max_content_length = MOST_BODY
    max_form_memory_size = MOST_BODY


@dataclass(frozen=True, slots=True)
class Api:
    """The application. `flush` sends the contents of the fabric's outbox."""

    overview: Overview
    metrics: Metrics
    tokens: Tokens
    flush: Callable[[], None]
    moves: Moves | None = None

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer a request; errors become responses, too."""
        request = _Request(environ)
        try:
            (method, *words), _ = _ROUTES.bind_to_environ(environ).match()
            response: Response = getattr(self, method)(request, *words)
        except InputError as error:
            response = _json({"error": str(error)}, 400)
        except HTTPException as error:
            response = _json({"error": error.description or error.name}, error.code or 500)
            if isinstance(error, Unauthorized):
                response.headers["WWW-Authenticate"] = "Bearer"
            if allowed := getattr(error, "valid_methods", None):
                response.headers["Allow"] = ", ".join(allowed)
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"
        return response(environ, start)

    def page(self, _: _Request, name: str, kind: str) -> Response:
        """The status page, its script or its style sheet."""
        text = (TEMPLATES / "status_page" / name).read_bytes()
        response = Response(text, content_type=f"{kind}; charset=utf-8")
        response.headers["Content-Security-Policy"] = POLICY
        return response

    def health(self, _: _Request) -> Response:
        """The fabric in a few numbers."""
        health = self.overview.health()
        good = health["complete"] or health["role"] == "follower"
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

    def paths(self, request: _Request) -> Response:
        """The paths between two switches or hosts, as `polarfab explain` shows them."""
        from compilers.proof.explanation import explain, find_switch

        build = self.overview.build
        if missing := [word for word in ("from", "to") if word not in request.args]:
            raise BadRequest(f"{', '.join(missing)}: required a node, a host or an address")
        source, destination = (find_switch(build, request.args[word]) for word in ("from", "to"))
        found = explain(build, source, destination)
        names = build.wiring.names
        return _json(
            {
                "source": names[found.source],
                "destination": names[found.destination],
                "minimal": [names[v] for v in found.minimal],
                "alternates": [[names[v] for v in path] for path in found.alternates],
                "weights": list(found.weights),
            }
        )

    def reconcile(self, request: _Request) -> Response:
        """Read switches again and undo changes that others made."""
        self._authorise(request)
        self._lead()
        fabric, node = self.overview.fabric, _body(request).get("node")
        if node is not None and node not in fabric.names:
            raise NotFound(f"node: there is no node {node!r}")
        chosen = [v for v in sorted(fabric.connections) if node in (None, fabric.names[v])]
        if node is not None and not chosen:
            raise ServiceUnavailable(f"switch {node} is not connected")
        for vertex in chosen:
            fabric.reconcile(vertex)
        self.flush()
        return _json({"switches": len(chosen)}, 202)

    def build(self, request: _Request) -> Response:
        """The running build, packed."""
        self._authorise(request)
        return Response(self._moves.running(), content_type="application/zip")

    def apply(self, request: _Request) -> Response:
        """Move to the build in the body, round by round."""
        self._authorise(request)
        self._lead()
        request.max_content_length = MOST_BUILD
        accept_loss, unverified = (
            request.args.get(word) == "1" for word in ("accept_loss", "unverified")
        )
        answer = self._moves.apply(request.get_data(), accept_loss, unverified, "", 0.0)
        self.flush()
        return _json(answer, 202)

    def move(self, _: _Request) -> Response:
        """The progress of the last move."""
        return _json(self._moves.status())

    @property
    def _moves(self) -> Moves:
        if self.moves is None:
            raise ServiceUnavailable("this controller was started without a folder for builds")
        return self.moves

    def exposition(self, _: _Request) -> Response:
        """Metrics in Prometheus' text format."""
        return Response(generate_latest(self.metrics.registry), content_type=CONTENT_TYPE_LATEST)

    def _lead(self) -> None:
        """Leave changes to the leader."""
        found = self.overview.leading()
        if found["role"] != "leader":
            raise Conflict(f"send changes to the controller that leads: {found['leader']}")

    def _authorise(self, request: _Request) -> None:
        if not self.tokens.known:
            raise Forbidden(
                "this controller was started without --token-file and accepts no changes"
            )
        if not self.tokens.accept(request.headers.get("Authorization")):
            raise Unauthorized("required a token: Authorization: Bearer TOKEN")


_GET = {
    "/": ("page", "page.html", "text/html"),
    "/page.js": ("page", "page.js", "text/javascript"),
    "/page.css": ("page", "page.css", "text/css"),
    "/metrics": ("exposition",),
    **{f"/api/{what}": ("overview_of", what) for what in ("state", "floor", "drift")},
    **{f"/api/{name}": (name,) for name in ("health", "events", "paths", "build", "move")},
}
_POST = {f"/api/{name}": (name,) for name in ("reconcile", "apply")}
_ROUTES = Map(
    [
        *(Rule(path, endpoint=words, methods=["GET"]) for path, words in _GET.items()),
        *(Rule(path, endpoint=words, methods=["POST"]) for path, words in _POST.items()),
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


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value) + "\n", status, content_type="application/json")
