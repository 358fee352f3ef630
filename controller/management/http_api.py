"""The management API, as far as it is in the controller: what readers get, and what they change.

The HTTP process (`controller.management.site`) has the paths, and knows who may do what; it passes
on what changes something. docs/how-to/management.md says what each path does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import Metric

from compilers.tables.build import Build
from controller.management.action_log import ActionLog, Actor
from controller.management.metrics import Metrics
from controller.management.site import READ, Answer, Refusal, refused
from controller.management.tokens import ROLES, Role, Tokens
from controller.rollout.build_archive import identity_in
from controller.rollout.mover import Mover
from controller.state import Overview
from controller.switches.events import Event, TokenRefused, TokensKept, TokensLoaded
from controller.upkeep.background import Start, in_thread
from inventory.problems import InputError
from templates import TEMPLATES

MOST_WRITING, WRITING_POLL = 5.0, 0.01
"""Seconds that an answer waits at most until the record is written, and between two looks."""
SAMPLES_AT_ONCE, HEADER_LINES = 250, 2
"""Samples of a metric that are printed before other work goes on, and lines before the first."""
PACKING_POLL = 0.01
"""Seconds between two looks whether a build is packed."""
LONGEST_TRIAL = 7 * 86400
"""Most seconds that a build may be on trial."""
MOST_WORD = 1000
"""Most characters of a name in a request."""
IDENTITY = re.compile(r"[0-9a-f]{0,64}")
"""The identity of a build, or none."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A request that the HTTP process has passed on, from somebody whose token is accepted."""

    method: str
    """The HTTP method."""
    path: str
    """The path."""
    query: Mapping[str, str]
    """The query, of each key the last value."""
    actor: Actor
    """Who asks."""
    body: bytes
    """The bytes of the body."""


@dataclass(slots=True)
class MadeOnce:
    """Bytes about a build, which a thread makes once, however many ask for them."""

    identity: str = ""
    """The build that they are about."""
    made: Future[bytes] | None = None
    """The bytes, or that they are being made; None before the first request, or to begin anew."""

    def of(self, identity: str, start: Start, make: Callable[[], bytes]) -> Future[bytes]:
        """Begin to make them unless that has begun for this build.

        Args:
            identity: the build.
            start: starts the thread.
            make: makes them.
        """
        if self.made is None or identity != self.identity:
            self.identity, self.made = identity, start(make)
        return self.made


@dataclass(slots=True)
class Api:
    """What readers get, and what they change."""

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
    bug: Callable[[str, Exception], None]
    """Reports an exception that is being handled, and what was done."""
    breathe: Callable[..., None] = lambda *_: None
    """Lets other work go on, for so many seconds, while a build is proved, much is drained or a
    record is written.
    """
    start: Start = in_thread
    """Computes what takes long and never changes."""
    slices: Callable[[], None] = lambda: None
    """Lets other work go on while what readers get is made."""
    _last_event: int = field(default=0, init=False)
    """The number of the last event that readers have."""
    _floor: MadeOnce = field(default_factory=MadeOnce, init=False)
    """The floor of the current build."""
    _packed: MadeOnce = field(default_factory=MadeOnce, init=False)
    """The current build, packed."""
    _history: Future[list[dict[str, Any]]] | None = field(default=None, init=False)
    """The builds that the fabric held, while they are read; None while they are not."""
    _sent: dict[str, bytes] = field(default_factory=dict, init=False)
    """The parts that readers have."""

    def happened(self, event: Event) -> None:
        """Keep an event, and measure by it."""
        self.overview.happened(event)
        self.metrics.happened(event)

    # What readers get

    def parts(self) -> dict[str, bytes]:
        """What has changed for readers since the last call, and `health` in any case: without it
        the loop of the controller counts as stuck. Other work goes on in between, but no other call
        of this.
        """
        state = self.overview.look()
        # All of it is of one moment: a move may end while other work goes on.
        health = self.overview.health(state)
        good = health["alive"] and (health["complete"] or health["role"] == "follower")
        parts = {
            "health": _json(health),
            "health_status": b"200" if good else b"503",
            "move": _json(self.mover.progress()),
            **self._history_part(),
            "tokens": _json(
                [(token.name, token.role, token.secret.decode()) for token in self.tokens.accepted]
            ),
            **self._floor_part(state.build),
        }
        self.slices()
        parts["state"] = _json(self.overview.state(state, self.slices))
        self.slices()
        new = {name: part for name, part in parts.items() if self._sent.get(name) != part}
        new["health"] = parts["health"]
        self._sent |= new
        return new | self._events_part()

    def everything(self) -> dict[str, bytes]:
        """What readers get of a process that has just begun, but for the metrics."""
        self._sent.clear()
        self._last_event = 0
        pages = [name for name, _ in READ.values() if "/" in name]
        return {name: (TEMPLATES / name).read_bytes() for name in pages} | self.parts()

    def exposition(self) -> Iterator[bytes]:
        """Metrics in Prometheus' text format, so many samples at a time."""
        for metric in self.metrics.registry.collect():
            samples = metric.samples
            for first in range(0, max(len(samples), 1), SAMPLES_AT_ONCE):
                metric.samples = samples[first : first + SAMPLES_AT_ONCE]
                text = generate_latest(_RegistryOfOne(metric))
                yield text.split(b"\n", HEADER_LINES)[-1] if first else text

    def _events_part(self) -> dict[str, bytes]:
        """The events that readers do not have yet."""
        events = self.overview.events(self._last_event)
        if not events:
            return {}
        self._last_event = events[-1]["number"]
        return {"events": b"".join(map(_json, events))}

    def _history_part(self) -> dict[str, bytes]:
        """The builds that the fabric held, as a thread reads them: those before while it does, or
        where the disk cannot be read just now, or no more files can be opened.
        """
        reading = self._history or self.start(self.mover.history.past)
        self._history = None if reading.done() else reading
        if not reading.done():
            return {}
        try:
            return {"history": _json(reading.result())}
        except OSError:
            return {} if "history" in self._sent else {"history": _json([])}

    def _floor_part(self, build: Build) -> dict[str, bytes]:
        """The floor of this build; it takes a while where there are a thousand switches."""
        floor = self._floor.of(
            build.identity, self.start, lambda: _json(self.overview.floor(build))
        )
        return {"floor": floor.result()} if floor.done() else {}

    # What they change

    def answer(self, request: Passed, needs: Role) -> Answer:
        """Do what a request asks for; errors become answers, too."""
        try:
            self._authorise(request, needs)
            if request.method == "GET":
                return self._build()
            leading = self.overview.look().role
            if leading["role"] != "leader":
                text = f"send changes to the controller that leads: {leading['leader']}"
                raise Refusal(409, text)
            return _CHANGES[request.path](self, request)
        except InputError as error:
            return refused(400, str(error))
        except Refusal as refusal:
            return refusal.answer
        except Exception as error:
            self.failed(f"{request.method} {request.path}", error)
            return refused(500, "an internal error: the controller's log has it")

    def failed(self, what: str, error: Exception) -> None:
        """A request was answered with 500."""
        self.metrics.http["errors"] += 1
        self.bug(what, error)

    def wrong_token(self, host: str) -> None:
        """A client on this host has sent a token that is not known."""
        self.mover.fabric.rejected.add(TokenRefused, host, "a token that is not known")

    def _authorise(self, request: Passed, needs: Role) -> None:
        """Refuse who lacks a role, and write that down."""
        actor = request.actor
        if ROLES.index(actor.role) < ROLES.index(needs):
            outcome = f"refused: needs the role {needs}"
            self.actions.write(actor, request.method, request.path, outcome)
            raise Refusal(403, f"required a token of the role {needs}, given one of {actor.role}")

    def _reconcile(self, request: Passed) -> Answer:
        """Read switches again and undo changes that others made."""
        fabric, body = self.mover.fabric, _body(request)
        node = _word(body, "node", "the name of a switch") if body.get("node") is not None else None
        if node is not None and node not in fabric.names:
            raise Refusal(404, f"node: there is no node {node!r}")
        chosen = [
            vertex for vertex in sorted(fabric.present) if node in (None, fabric.names[vertex])
        ]
        if node is not None and not chosen:
            raise Refusal(503, f"switch {node} is not connected")
        with self.actions.recording(request.actor, "reconcile", node or "every switch"):
            # Some may have left meanwhile.
            chosen = [vertex for vertex in chosen if vertex in fabric.present]
            for vertex in chosen:
                fabric.present[vertex].wait()
        return Answer(202, _json({"switches": len(chosen)}))

    def _drain(self, request: Passed) -> Answer:
        """Route around a node, a link or a group, or use it again."""
        ends = request.path == "/api/undrain"
        kinds = "a node, a link or a group, such as module:NODE/MODULE"
        what = _word(_body(request), "what", kinds)
        with self.actions.recording(request.actor, "undrain" if ends else "drain", what):
            answer = self.mover.keeper.drain(what, ends, self.breathe)
        self._remember()
        return Answer(202, _json(answer))

    def _remember(self) -> None:
        """Wait until it is written down that something is drained, or a build confirmed: who takes
        over would use it again, or fall back.
        """
        until = monotonic() + MOST_WRITING
        while not self.mover.remembered():
            if monotonic() > until:
                raise Refusal(
                    503,
                    "it is done, but not written down: the store or the disk does not take it,"
                    " and the next controller would not know of it; this one goes on trying",
                )
            self.breathe(WRITING_POLL)

    def _build(self) -> Answer:
        """The running build, packed once in a thread, however many ask for it."""
        identity = self.mover.fabric.identity
        packed = self._packed.of(identity, self.start, lambda: self.mover.packed(identity))
        while not packed.done():
            self.breathe(PACKING_POLL)
        if packed.exception() and packed is self._packed.made:
            self._packed.made = None  # the folder may be whole by the next request
        return Answer(200, packed.result(), "application/zip")

    def _apply(self, request: Passed) -> Answer:
        """Move to the build in the body, round by round."""
        accept_loss = request.query.get("accept_loss") == "1"
        unverified = request.query.get("unverified") == "1"
        within = _seconds(request.query.get("confirm_within", "0"))
        with self.actions.recording(request.actor, "apply", identity_in(request.body)):
            target = self.mover.receive(request.body, unverified, self.breathe)
            self.mover.prepare(target, self.breathe)
            self.mover.move(target, accept_loss, request.actor.name, within)
        return Answer(202, _json(self.mover.progress()))

    def _confirm(self, request: Passed) -> Answer:
        """Keep the build that is on trial."""
        with self.actions.recording(request.actor, "confirm", self.mover.fabric.identity):
            self.mover.confirm()
        self._remember()
        return Answer(200, _json(self.mover.progress()))

    def _rollback(self, request: Passed) -> Answer:
        """Move to an earlier build, round by round."""
        body = _body(request)
        build = _word(body, "build", "the identity of a build") if body.get("build") else ""
        if not IDENTITY.fullmatch(build):
            raise Refusal(400, f"build: required the identity of a build, given {build!r:.100}")
        what = build or "to the build before"
        with self.actions.recording(request.actor, "rollback", what, returns=True):
            self.mover.settle(self.breathe)
            self.mover.roll_back(build, request.actor.name)
        return Answer(202, _json(self.mover.progress()))

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


_CHANGES: Mapping[str, Callable[[Api, Passed], Answer]] = {
    "/api/reconcile": Api._reconcile,
    "/api/drain": Api._drain,
    "/api/undrain": Api._drain,
    "/api/apply": Api._apply,
    "/api/confirm": Api._confirm,
    "/api/rollback": Api._rollback,
}
"""By path, the method that does what is asked for there."""


@dataclass(frozen=True, slots=True)
class _RegistryOfOne:
    """A registry of one metric: each is printed by itself, so that other work goes on between."""

    metric: Metric
    """The metric."""

    def collect(self) -> Iterator[Metric]:
        """The metric."""
        yield self.metric


def _body(request: Passed) -> dict[str, Any]:
    """The JSON object in the body of a request; an empty one without a body."""
    try:
        body = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        raise Refusal(400, "required a body in JSON") from None
    if not isinstance(body, dict):
        raise Refusal(400, "required a JSON object")
    return body


def _word(body: Mapping[str, Any], key: str, what: str) -> str:
    """The name under a key: printable, so that no log is forged, and not too long for one."""
    word = body.get(key)
    if not isinstance(word, str):
        raise Refusal(400, f"{key}: required {what}")
    if len(word) > MOST_WORD:
        required = f"{what}, of at most {MOST_WORD:,} characters"
        raise Refusal(400, f"{key}: required {required}, given one of {len(word):,}")
    if not word.isprintable():
        raise Refusal(400, f"{key}: required {what}, in printable characters, given {word!a:.100}")
    return word


def _seconds(text: str) -> float:
    """The seconds of a trial."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= LONGEST_TRIAL):
        raise Refusal(400, f"confirm_within: required seconds, at most {LONGEST_TRIAL:,}")
    return float(text)


def _json(value: Any) -> bytes:
    """A value as JSON, on a line."""
    return json.dumps(value).encode() + b"\n"
