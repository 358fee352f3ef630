"""One connected switch: it waits for admission, is read, and is reconciled. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from compilers.targets.openflow.flow_tables import generation_of
from compilers.targets.openflow.profiles import OVS, Profile
from compilers.targets.openflow.protocol import Multipart
from controller.openflow.abilities import asks_too_much, lowered
from controller.openflow.multipart import flows_wanted
from controller.openflow.switch_features import Limits, features, is_open_vswitch
from controller.settings import ForeignRows
from controller.switches import reconcile
from controller.switches.conversation import Conversation
from controller.switches.current import Current
from controller.switches.events import Event
from controller.switches.fault_reports import profile_report
from controller.switches.transaction import Outcome

CONTENT = {Multipart.FLOW: flows_wanted(), Multipart.GROUP_DESC: b""}
"""Requests for what a switch holds."""
FEATURES = {Multipart.GROUP_FEATURES: b"", Multipart.TABLE_FEATURES: b""}
FEATURES_PATIENCE = 10.0
"""Seconds after which features that a switch has not told count as refused."""
MOST_TIMEOUTS = 5
"""Bundles that a switch may let time out, one after the other, before that is a refusal."""

Replies = Mapping[Multipart, bytes | None]


class Owner(Protocol):
    """The fabric that a switch belongs to."""

    current: Current
    foreign: ForeignRows

    def ask_turn(self, switch: Switch) -> None:
        """Call `read` once the switch is admitted."""

    def turn_over(self, switch: Switch) -> None:
        """The switch needs no admission any more."""

    def described(self, switch: Switch, ports: bytes) -> None:
        """The switch has described its ports."""

    def compared(self, switch: Switch, found: reconcile.Difference, corrects: bool) -> None:
        """The switch has been read; if `corrects`, it gets the difference now."""

    def synced(self, switch: Switch) -> None:
        """The switch holds its program."""

    def tell(self, event: Event) -> None:
        """Report an event."""

    def refused(self, switch: Switch, outcome: Outcome | None) -> None:
        """The switch has refused its program; None if it could not be read."""


@dataclass(slots=True, eq=False)
class Switch:
    """A connected switch: its vertex (None if not in this build), address and state.

    certificate: the nodes that its certificate names; None without TLS.
    foreign: rows and groups of others in the switch. shadowing: rows of others over ours.
    compared: when it was last compared with its program, by the fabric's clock. again: read it once
    more afterwards. generation: of the class and group numbers in its program. told: its silence
    was reported.
    """

    key: Hashable
    datapath_id: int
    peer: str
    talk: Conversation
    owner: Owner
    certificate: frozenset[str] | None = None
    vertex: int | None = None
    state: Literal["waiting", "reading", "changing", "programmed", "refused"] = "waiting"
    foreign: int = 0
    shadowing: int = 0
    compared: float | None = None
    again: bool = False
    generation: int = 0
    told: bool = False
    gone: bool = False
    able: Profile = OVS
    _known: bool = False
    _timeouts: int = 0
    _limits: Limits | None = None
    _before: reconcile.Held | None = None

    def wait(self) -> None:
        """Queue the switch for reading; if it is being read, read it once more afterwards."""
        if self.state in ("reading", "changing"):
            self.again = True
            return
        self.state = "waiting"
        self.owner.ask_turn(self)

    def read(self) -> None:
        """Request its ports and content; ports first: the program may depend on them.

        At first, also who made it: what is not Open vSwitch tells its features before it gets rows.
        """
        self.state, self.again = "reading", False
        self.talk.ask(Multipart.PORT_DESC, b"", self._told_ports)
        first = {} if self._known else {Multipart.DESC: b""}
        self.talk.ask_all(first | CONTENT, self._told)

    def compare(self, done: Callable[[reconcile.Difference | None], None]) -> None:
        """Read the switch and compare it with its program, but change nothing.

        done gets the difference; None if the switch does not say what it holds or is being changed.
        """

        def told(replies: Replies) -> None:
            found: reconcile.Difference | None = None
            unmoved = self.vertex is not None and self.state == "programmed" and not self.talk.busy
            try:
                if unmoved and (held := _held(replies)) is not None:
                    found = self._difference(held)
                    self.owner.compared(self, found, corrects=False)
            finally:
                done(found)

        self.talk.ask_all(CONTENT, told)

    def lost(self) -> None:
        """The connection has ended."""
        self.gone = True
        self.owner.turn_over(self)
        self.talk.lost()

    def _told_ports(self, body: bytes | None) -> None:
        if body is not None and not self.gone:
            self.owner.described(self, body)

    def _told(self, replies: Replies) -> None:
        """All replies have arrived, or refusals (None): reconcile."""
        if self.gone:
            return
        if self.vertex is None or self.again:
            self._end_turn()
            return
        held, vertex = _held(replies), self.vertex
        if held is None:
            self._refuse(None)
        elif self._known or is_open_vswitch(replies[Multipart.DESC]):
            self._known = True
            self._put_right(vertex, held)
        else:
            self._learn()

    def _learn(self) -> None:
        """Ask the switch for its features, and read it again: it may take time to tell them."""

        def told(replies: Replies) -> None:
            if self.gone:
                return
            self._known = True
            able, self._limits = features(*(replies[kind] for kind in FEATURES))
            self.able = self.able.within(able)
            if self.vertex is None:
                self._end_turn()
            else:
                self._lower(self.vertex, able)
                self.read()

        self.talk.ask_all(FEATURES, told, FEATURES_PATIENCE)

    def _lower(self, vertex: int, able: Profile) -> None:
        """The switch can do no more than this, and gets the program of another profile for it."""
        programs = self.owner.current.programs
        before = programs.profile(vertex)
        self.able = self.able.within(able)
        programs.told(vertex, self.able)
        if (now := programs.profile(vertex)) != before:
            self.owner.tell(profile_report(self.owner.current, vertex, now))

    def _difference(self, held: reconcile.Held) -> reconcile.Difference:
        """The difference to the program that it is to hold now."""
        if self.vertex is None:
            raise ValueError("a switch that is not in this build")
        self.generation = generation_of(held.marker)
        programs = self.owner.current.programs
        programs.told(self.vertex, self.able)
        self.talk.bundles = programs.profile(self.vertex).bundles
        program = programs.program(self.vertex, self.generation)
        return reconcile.difference(program, held, self.owner.foreign)

    def _put_right(self, vertex: int, held: reconcile.Held) -> None:
        found = self._difference(held)
        self.owner.compared(self, found, corrects=True)
        if not found.parts:
            self._sync()
            return
        self._before = held if self._before is None else self._before
        if self._limits is not None:
            program = self.owner.current.programs.program(vertex, self.generation)
            if text := self._limits.exceeded(program):
                self._fail(Outcome(committed=False, text=text))
                return
        self.state = "changing"
        self.talk.bundle(found.parts, self._changed)

    def _changed(self, outcome: Outcome) -> None:
        if outcome.lost:
            return
        if outcome.committed:
            self._sync()
        elif outcome.timed_out and self._timeouts < MOST_TIMEOUTS:
            self._timeouts += 1
            self.again = True
            self._end_turn()
        elif self.vertex is None or not self._try_less(self.vertex, outcome):
            self._fail(outcome)

    def _try_less(self, vertex: int, refusal: Outcome) -> bool:
        """Whether a refusal says that the switch can do less, so that it is read for less."""
        profile = self.owner.current.programs.profile(vertex)
        less = lowered(profile, refusal.kinds)
        told = self._limits is not None
        if less == profile and (told or not asks_too_much(refusal.kinds)):
            return False
        self._lower(vertex, less)
        if told:
            self.read()
        else:
            self._learn()
        return True

    def _fail(self, refusal: Outcome) -> None:
        """The switch stays with what it had, or gets it back."""
        if self.talk.bundles:
            self._refuse(refusal)
        else:
            self._take_back(refusal)

    def _take_back(self, refusal: Outcome) -> None:
        """Undo what a switch without bundles has carried out of a change before it refused."""

        def refuse(outcome: Outcome) -> None:
            if not outcome.lost:
                self._refuse(refusal)

        def told(replies: Replies) -> None:
            if self.gone:
                return
            now = _held(replies)
            if now is None or self._before is None:
                self._refuse(refusal)
            else:
                self.talk.bundle(reconcile.restored(self._before, now), refuse)

        self.talk.ask_all(CONTENT, told)

    def _sync(self) -> None:
        self.state, self._before, self._timeouts = "programmed", None, 0
        if not self.again:
            self.owner.synced(self)
        self._end_turn()

    def _refuse(self, outcome: Outcome | None) -> None:
        self.state, self._before, self._timeouts = "refused", None, 0
        self.owner.refused(self, outcome)
        self._end_turn()

    def _end_turn(self) -> None:
        if self.state not in ("programmed", "refused"):
            self.state = "waiting"
        self.owner.turn_over(self)
        if self.again and self.vertex is not None:
            self.again = False
            self.wait()


def _held(replies: Replies) -> reconcile.Held | None:
    """What a switch says that it holds; None if it does not say.

    Raises:
        Malformed: it cannot be read.
    """
    flows, groups = (replies[kind] for kind in CONTENT)
    return None if flows is None or groups is None else reconcile.held(flows, groups)
