"""The controller's half of the management API: makes the pages and carries out the changes.

The other half runs in the HTTP process (`controller.management.site`): it checks tokens, answers
reads from the pages that it was sent last, and passes on the requests that change something.
`controller.management.http_supervisor` calls `Api` for both. docs/how-to/management.md says what
each path does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import ceil
from time import monotonic
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import Metric

from compilers.tables.build import Build
from controller.management.action_log import ActionLog, Actor
from controller.management.metrics import Metrics
from controller.management.site import READ, Answer, Refusal, refused
from controller.management.tokens import ROLES, Role, Tokens
from controller.rollout.build_archive import identity_in, most_archive
from controller.rollout.fabric_record import IDENTITY
from controller.rollout.mover import Mover
from controller.state import Overview
from controller.switches.events import Event, TokenRefused, TokensKept, TokensLoaded
from controller.upkeep.background import Start, in_thread
from inventory.problems import InputError
from templates import TEMPLATES

RECORD_PATIENCE, RECORD_POLL = 5.0, 0.01
"""Most seconds that an answer waits until the record is written, and seconds between checks."""
SAMPLES_AT_ONCE, HEADER_LINES = 250, 2
"""Samples of a metric that are printed before other work goes on, and lines before the first."""
PACKING_POLL = 0.01
"""Seconds between two checks whether a build is packed."""
LONGEST_TRIAL = 7 * 86400
"""Most seconds that a build may be on trial."""
LONGEST_NAME = 1000
"""Most characters of a name in a request."""


@dataclass(frozen=True, slots=True)
class PassedRequest:
    """A request that the HTTP process has passed on, with an accepted token."""

    method: str
    """The HTTP method."""
    path: str
    """The path."""
    query: Mapping[str, str]
    """The query, of each key the last value."""
    actor: Actor
    """Who sends the request."""
    secret: bytes
    """The characters of the token."""
    body: bytes
    """The bytes of the body."""


@dataclass(slots=True)
class BuildPage:
    """A page about the current build, which a thread makes once, however many requests need it."""

    identity: str = ""
    """The identity of the build that `page` is about."""
    page: Future[bytes] | None = None
    """The page, which may be in the making; None to make it at the next request."""

    def of(self, identity: str, start: Start, make: Callable[[], bytes]) -> Future[bytes]:
        """The page about a build; begins to make it where that has not begun.

        Args:
            identity: the identity of the build.
            start: runs a function in a thread.
            make: makes the page.
        """
        if self.page is None or identity != self.identity:
            self.identity, self.page = identity, start(make)
        return self.page


@dataclass(slots=True)
class Api:
    """Makes pages for readers, and carries out their changes."""

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
    report_bug: Callable[[str, Exception], None]
    """Reports an exception that is being handled, and what the controller was doing."""
    pause: Callable[..., None] = lambda *_: None
    """Sleeps for so many seconds, or for a turn of the loop, while the controller's other work goes
    on. Called during a long change."""
    start: Start = in_thread
    """Runs a function in a thread."""
    slices: Callable[[], None] = lambda: None
    """Yields to the controller's other work if a slice of processor time is over (`Slices`). Called
    often while pages are made."""
    _last_event: int = field(default=0, init=False)
    """The number of the last event that the HTTP process was sent."""
    _floor_plan: BuildPage = field(default_factory=BuildPage, init=False)
    """The floor plan of the current build, as JSON."""
    _packed: BuildPage = field(default_factory=BuildPage, init=False)
    """The current build as a ZIP archive."""
    _history: Future[list[dict[str, Any]]] | None = field(default=None, init=False)
    """The builds that the fabric ran earlier, while a thread reads them; None between."""
    _token_reading: Future[None] | None = field(default=None, init=False)
    """The reading of the token file, while a thread reads it; None between."""
    _sent: dict[str, bytes] = field(default_factory=dict, init=False)
    """The pages that the HTTP process was sent last, by name."""

    def happened(self, event: Event) -> None:
        """Record an event in the overview and in the metrics."""
        self.overview.happened(event)
        self.metrics.happened(event)

    # What readers get

    def changed_pages(self) -> dict[str, bytes]:
        """The pages that have changed since the last call, by name, and the new events.

        `health` is always there: without it the controller's loop counts as stuck. Other work goes
        on between two pages (`slices`); the caller has to lock out another call meanwhile.
        """
        state = self.overview.current_state()
        # All pages are of this one moment: a move may end while other work goes on.
        health = self.overview.health(state)
        is_healthy = health["alive"] and (health["complete"] or health["role"] == "follower")
        pages = {
            "health": _json(health),
            "health_status": b"200" if is_healthy else b"503",
            "move": _json(self.mover.progress()),
            **self._history_page(),
            "tokens": _json(
                [(token.name, token.role, token.secret.decode()) for token in self.tokens.accepted]
            ),
            "most_build": str(most_archive(self.mover.most_switches)).encode(),
            **self._floor_page(state.build),
        }
        self.slices()
        pages["state"] = _json(self.overview.state_for_page(state, self.slices))
        self.slices()
        changed = {name: page for name, page in pages.items() if self._sent.get(name) != page}
        changed["health"] = pages["health"]
        self._sent |= changed
        return changed | self._events_page()

    def all_pages(self) -> dict[str, bytes]:
        """All pages, for an HTTP process that has just been started, except the metrics."""
        self._sent.clear()
        self._last_event = 0
        # Pages with a / in their name are files of `templates`; `changed_pages` makes the others.
        files = [name for name, _ in READ.values() if "/" in name]
        pages = {name: (TEMPLATES / name).read_bytes() for name in files}
        return pages | self.changed_pages()

    def exposition(self) -> Iterator[bytes]:
        """Metrics in Prometheus' text format, `SAMPLES_AT_ONCE` samples of a metric at a time."""
        for metric in self.metrics.registry.collect():
            samples = metric.samples
            for first in range(0, max(len(samples), 1), SAMPLES_AT_ONCE):
                metric.samples = samples[first : first + SAMPLES_AT_ONCE]
                text = generate_latest(_RegistryOfOne(metric))
                yield text.split(b"\n", HEADER_LINES)[-1] if first else text

    def _events_page(self) -> dict[str, bytes]:
        """The events that the HTTP process was not sent yet, a line of JSON each."""
        events = self.overview.events(self._last_event)
        if not events:
            return {}
        self._last_event = events[-1]["number"]
        return {"events": b"".join(map(_json, events))}

    def _history_page(self) -> dict[str, bytes]:
        """The builds that the fabric ran earlier, once a thread has read them from the disk.

        No page while the thread reads, or where the disk fails: readers keep the page that they
        have.
        """
        reading = self._history or self.start(self.mover.history.entries_as_data)
        self._history = None if reading.done() else reading
        if not reading.done():
            return {}
        try:
            return {"history": _json(reading.result())}
        except OSError:
            return {} if "history" in self._sent else {"history": _json([])}

    def _floor_page(self, build: Build) -> dict[str, bytes]:
        """The floor plan of this build, once a thread has made it."""
        floor_plan = self._floor_plan.of(
            build.identity, self.start, lambda: _json(self.overview.topology_for_page(build))
        )
        return {"floor": floor_plan.result()} if floor_plan.done() else {}

    # What requests change

    def answer(self, request: PassedRequest, needs: Role) -> Answer:
        """Carry out a request; errors become answers, too.

        Args:
            request: the request.
            needs: the least role whose token may send it.
        """
        try:
            self._authorise(request, needs)
            if request.method == "GET":
                return self._build()
            cluster_role = self.overview.current_state().role
            if cluster_role["role"] != "leader":
                text = f"send changes to the controller that leads: {cluster_role['leader']}"
                raise Refusal(409, text)
            return _CHANGES[request.path](self, request)
        except InputError as error:
            return refused(400, str(error))
        except Refusal as refusal:
            return refusal.answer
        except Exception as error:
            self.failed(f"{request.method} {request.path}", error)
            return refused(500, "an internal error: the controller's log has it")

    def failed(self, request: str, error: Exception, times: int = 1) -> None:
        """Count and report an exception in answering a request.

        Args:
            request: the request, or what else failed.
            error: the exception.
            times: for how many such exceptions it stands.
        """
        self.metrics.http["errors"] += times
        self.report_bug(request, error)

    def wrong_token(self, host: str) -> None:
        """Count an unknown token that a client on this host has sent."""
        self.mover.fabric.rejected.add(TokenRefused, host, "a token that is not known")

    def _authorise(self, request: PassedRequest, needs: Role) -> None:
        """Refuse a request whose token's role is too low, and log that as an action.

        Raises:
            Refusal: the role is too low, or the token was withdrawn while the body arrived. One
                that was only renamed was not; by default its name is its line in the file.
        """
        actor = request.actor
        sent = actor.role, request.secret
        if all((token.role, token.secret) != sent for token in self.tokens.accepted):
            text = "required a token that is accepted, given one that was withdrawn meanwhile"
            raise Refusal(401, text, WWW_Authenticate="Bearer")
        if ROLES.index(actor.role) < ROLES.index(needs):
            outcome = f"refused: needs the role {needs}"
            self.actions.write(actor, request.method, request.path, outcome)
            raise Refusal(403, f"required a token of the role {needs}, given one of {actor.role}")

    def _reconcile(self, request: PassedRequest) -> Answer:
        """Read switches again and undo changes that others made."""
        fabric, body = self.mover.fabric, _body(request)
        node = _name(body, "node", "the name of a switch") if body.get("node") is not None else None
        if node is not None and node not in fabric.names:
            raise Refusal(404, f"node: there is no node {node!r}")
        chosen = [
            vertex for vertex in sorted(fabric.present) if node in (None, fabric.names[vertex])
        ]
        if node is not None and not chosen:
            raise Refusal(503, f"switch {node} is not connected")
        self._require_room(request.actor)
        with self.actions.recording(request.actor, "reconcile", node or "every switch"):
            # Some may have disconnected while the action was logged.
            chosen = [vertex for vertex in chosen if vertex in fabric.present]
            for vertex in chosen:
                fabric.present[vertex].request_reading()
        return Answer(202, _json({"switches": len(chosen)}))

    def _drain(self, request: PassedRequest) -> Answer:
        """Drain a node, a link or a group, that is, route around it; or end such a drain."""
        undrains = request.path == "/api/undrain"
        required = "a node, a link or a group, such as module:NODE/MODULE"
        name = _name(_body(request), "what", required)
        self.mover.keeper.named_group(name, undrains)  # a name that is not known is not logged
        self._require_room(request.actor)
        with self.actions.recording(request.actor, "undrain" if undrains else "drain", name):
            answer = self.mover.keeper.drain(name, undrains, self.pause)
        self._wait_for_record()
        return Answer(202, _json(answer))

    def _require_room(self, actor: Actor) -> None:
        """Pass if the action log has room for requests of this token, which cannot fill the disk.

        Raises:
            Refusal: there were too many.
        """
        seconds = self.actions.seconds_until_room(actor)
        if seconds > 0:
            text = "too many requests with this token: they would fill the action log"
            raise Refusal(429, text, Retry_After=str(ceil(seconds)))

    def _wait_for_record(self) -> None:
        """Wait until the fabric's record has what was drained or confirmed.

        A controller that takes over reads it there: else it would use again what is drained, or
        roll back the build that was confirmed.

        Raises:
            Refusal: the record was not written in time.
        """
        until = monotonic() + RECORD_PATIENCE
        while not self.mover.records_links():
            if monotonic() > until:
                cause = "the store or the disk does not take it"
                if self.mover.fabric.survey is not None:
                    cause = "too few switches have said yet which build they hold"
                raise Refusal(
                    503,
                    f"it is done, but not written down: {cause}, and the next controller would"
                    " not know of it; this one goes on trying",
                )
            self.pause(RECORD_POLL)

    def _build(self) -> Answer:
        """The running build as a ZIP archive."""
        identity = self.mover.fabric.identity
        archive = self._packed.of(identity, self.start, lambda: self.mover.packed(identity))
        while not archive.done():
            self.pause(PACKING_POLL)
        if archive.exception() and archive is self._packed.page:
            self._packed.page = None  # the build's folder may be complete by the next request
        return Answer(200, archive.result(), "application/zip")

    def _apply(self, request: PassedRequest) -> Answer:
        """Move to the build in the body, round by round."""
        accept_loss = request.query.get("accept_loss") == "1"
        unverified = request.query.get("unverified") == "1"
        within = _seconds(request.query.get("confirm_within", "0"))
        with self.actions.recording(request.actor, "apply", identity_in(request.body)):
            target = self.mover.receive(request.body, unverified, self.pause)
            self.mover.prepare(target, self.pause)
            self.mover.move(target, accept_loss, request.actor.name, within)
        return Answer(202, _json(self.mover.progress()))

    def _confirm(self, request: PassedRequest) -> Answer:
        """Keep the build that is on trial."""
        with self.actions.recording(request.actor, "confirm", self.mover.fabric.identity):
            self.mover.confirm()
        self._wait_for_record()
        return Answer(200, _json(self.mover.progress()))

    def _rollback(self, request: PassedRequest) -> Answer:
        """Move to an earlier build, round by round."""
        body = _body(request)
        identity = _name(body, "build", "the identity of a build") if body.get("build") else ""
        if not IDENTITY.fullmatch(identity):
            raise Refusal(400, f"build: required the identity of a build, given {identity!r:.100}")
        target = identity or "to the build before"
        with self.actions.recording(request.actor, "rollback", target, returns=True):
            self.mover.settle(self.pause)
            self.mover.roll_back(identity, request.actor.name)
        return Answer(202, _json(self.mover.progress()))

    def read_tokens_again(self) -> None:
        """Begin to use the token file as it is now; one that cannot be used changes nothing.

        A thread reads it, since its disk may hang.
        """
        if self.tokens.file is not None:
            self._token_reading = self.start(self.tokens.read_again)
            self.report_tokens()

    def report_tokens(self) -> None:
        """Report whether the token file that was read since the last call is in use."""
        reading = self._token_reading
        if reading is None or not reading.done():
            return
        self._token_reading = None
        tell, name = self.mover.fabric.tell, str(self.tokens.file)
        try:
            reading.result()
        except InputError as error:
            tell(TokensKept(name, str(error)))
        else:
            tell(TokensLoaded(name, len(self.tokens.accepted)))


_CHANGES: Mapping[str, Callable[[Api, PassedRequest], Answer]] = {
    "/api/reconcile": Api._reconcile,
    "/api/drain": Api._drain,
    "/api/undrain": Api._drain,
    "/api/apply": Api._apply,
    "/api/confirm": Api._confirm,
    "/api/rollback": Api._rollback,
}
"""By path, the method that carries out its requests."""


@dataclass(frozen=True, slots=True)
class _RegistryOfOne:
    """A registry of one metric: each is printed by itself, so that other work goes on between."""

    metric: Metric
    """The metric."""

    def collect(self) -> Iterator[Metric]:
        """The metric."""
        yield self.metric


def _body(request: PassedRequest) -> dict[str, Any]:
    """The JSON object in the body of a request; an empty one without a body."""
    try:
        body = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        raise Refusal(400, "required a body in JSON") from None
    if not isinstance(body, dict):
        raise Refusal(400, "required a JSON object")
    return body


def _name(body: Mapping[str, Any], key: str, required: str) -> str:
    """The name under a key: printable, so that no log line is forged, and not too long for one.

    Args:
        body: the object in the body of a request.
        key: the key.
        required: what has to be named there, for the message of a refusal.
    """
    name = body.get(key)
    if not isinstance(name, str):
        raise Refusal(400, f"{key}: required {required}")
    if len(name) > LONGEST_NAME:
        most = f"of at most {LONGEST_NAME:,} characters"
        raise Refusal(400, f"{key}: required {required}, {most}, given one of {len(name):,}")
    if not name.isprintable():
        given = f"in printable characters, given {name!a:.100}"
        raise Refusal(400, f"{key}: required {required}, {given}")
    return name


def _seconds(text: str) -> float:
    """The length of a trial in the query of a request, in seconds."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= LONGEST_TRIAL):
        raise Refusal(400, f"confirm_within: required seconds, at most {LONGEST_TRIAL:,}")
    return float(text)


def _json(value: Any) -> bytes:
    """A value as JSON, on a line."""
    return json.dumps(value).encode() + b"\n"
