"""One connected switch: it waits for admission, is read, is reconciled, and is read back. No I/O.

A switch is *in sync* when what it says that it holds is its program. After a commit its rows are
counted and its groups read; the rolling audit then reads it in full.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal, Protocol

from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.flow_tables import generation_of
from compilers.targets.openflow.profiles import OVS, Profile
from compilers.targets.openflow.protocol import MessageType, Multipart, message
from controller.openflow.messages import SessionXid
from controller.openflow.multipart import flows_wanted
from controller.openflow.switch_features import (
    Limits,
    asks_too_much,
    features,
    is_open_vswitch,
    lowered,
)
from controller.settings import ForeignRows
from controller.switches import reconcile
from controller.switches.connections.sending import SendPriority
from controller.switches.conversation import Conversation, TransactionOutcome
from controller.switches.current import Current, Upkeep
from controller.switches.events import Event, ProfileLowered

PROBE = message(MessageType.ECHO_REQUEST, SessionXid.PROBE)
"""Asks a switch whether it is alive."""
CONTENT = {Multipart.FLOW: flows_wanted(), Multipart.GROUP_DESC: b""}
"""Requests for what a switch holds."""
TOTAL = {Multipart.AGGREGATE: reconcile.COUNTED, Multipart.GROUP_DESC: b""}
"""Requests for the number of our rows, and for all groups."""
FEATURES = {Multipart.GROUP_FEATURES: b"", Multipart.TABLE_FEATURES: b""}
"""Requests for what a switch can do."""
FEATURES_PATIENCE = 10.0
"""Seconds after which features that a switch has not reported count as refused."""
MOST_TIMEOUTS = 5
"""Bundles that a switch may let time out, one after the other, before that is a refusal."""
MOST_DRIFTS = 3
"""Readings in a row that find another content than the switch has confirmed, before it is taken not
to keep what it is given."""
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
"""Seconds until a switch that is not in sync is read again, at first and at most."""
ROWS_RESENT, MOST_DOUBLED = 150, 20
"""Rows a second: a large program that a switch refuses is sent again no faster than that; and how
often waits double."""

SWITCHES_AT_ONCE, ADMITTED_ROWS = 1024, 1_200_000
"""Switches that are read and programmed at the same time, and about how many rows they hold.

Both bound the memory used, and how long the answer of one waits behind those of others. Not fewer
switches: one ovs-vswitchd with a thousand bridges takes at most 50 messages of a connection in each
iteration, and an iteration costs the same for one bridge as for all.
"""
State = Literal[
    "waiting", "reading", "changing", "checking", "in sync", "refused", "unknown", "drifting"
]
"""refused: it refuses its program. unknown: it does not say what it holds. drifting: it confirms
its program and does not keep it. These three are read again with growing waits."""
AMISS: frozenset[State] = frozenset({"refused", "unknown", "drifting"})
"""The states of switches that do not hold their program, as far as is known."""
Replies = Mapping[Multipart, bytes | None]
"""The replies of a switch by the type of request; None where it has refused."""


class _Owner(Protocol):
    """What a switch needs of its fabric (`controller.switches.session.LiveFabric`)."""

    current: Current
    """The build that switches are programmed with."""
    foreign: ForeignRows
    """The treatment of foreign rows."""
    upkeep: Upkeep
    """Repairs the tables and finds the links."""
    admission: Admission
    """Whose turn it is to be read and programmed."""
    survey: dict[int, int | None] | None
    """The cookies of markers that were read, while nothing is to be changed; else None."""

    def tell(self, event: Event) -> None:
        """Report an event."""

    def compared(self, switch: Switch, difference: reconcile.Difference, corrects: bool) -> None:
        """A switch has been read; if `corrects`, it gets the difference now."""

    def synced(self, switch: Switch) -> None:
        """A switch holds its program, as it was read to do."""

    def refused(self, switch: Switch, outcome: TransactionOutcome | None) -> None:
        """A switch has refused its program; None if it could not be read."""

    def forgets(self, switch: Switch, difference: reconcile.Difference) -> None:
        """A switch confirms its program and, as it was read, does not keep it."""


@dataclass(slots=True, eq=False)
class Switch:
    """A connected switch."""

    key: Hashable
    """The connection."""
    datapath_id: int
    """The switch's OpenFlow datapath id."""
    peer: str
    """The address that it connects from."""
    talk: Conversation
    """The requests and changes under way."""
    owner: _Owner
    """The fabric."""
    certificate: frozenset[str] | None = None
    """The nodes that its certificate names; None without TLS."""
    vertex: int | None = None
    """The switch's vertex. None if it is not in the build, if another connection has its place, or
    if its own has ended.
    """
    state: State = "waiting"
    """How far the switch has come."""
    foreign: int = 0
    """How many rows and groups of others it holds."""
    shadowing: int = 0
    """How many rows of others are over ours."""
    borrowed: tuple[int, ...] = ()
    """The numbers of groups in our range that rows of others lead to."""
    compared: float | None = None
    """When it was last read in full, by the fabric's clock."""
    unread: bool = False
    """Whether it has confirmed changes since it was read."""
    holds: tuple[int, int] | None = None
    """How many rows and groups it held when it was read in full."""
    drifts: int = 0
    """How many readings in a row found something else than the switch had confirmed."""
    tries: int = 0
    """How often it was read again without success."""
    again: bool = False
    """Whether it is read once more after the current reading."""
    generation: int = 0
    """The generation of class and group numbers in its program."""
    heard: float = 0.0
    """When it said something last."""
    asked: float | None = None
    """Since when it leaves a probe unanswered; None while it answers."""
    slow: bool = False
    """Whether it has left a probe unanswered for long."""
    placed: float | None = None
    """When it got its place, until it holds its program."""
    retry: float = inf
    """When it is read again, while it is amiss."""
    duplicate: str = ""
    """The address of another connection with its datapath id; "" without one."""
    doubled: float = -inf
    """When that connection came last."""
    able: Profile = OVS
    """What the switch's OpenFlow can do."""
    _sent: int = 0
    """How many rows and groups the last change had."""
    _known: bool = False
    """Whether it is known what the switch's OpenFlow can do."""
    _timeouts: int = 0
    """How many bundles it has let time out, one after the other."""
    _limits: Limits | None = None
    """What it can hold at most; None before it was asked."""
    _asked: bool = False
    """Whether its rows are being counted."""
    _before: reconcile.SwitchContent | None = None
    """What it held before the changes that go on; None before the first."""
    _total: reconcile.Total | None = None
    """What it tells if it holds what it has confirmed; None if it has confirmed nothing."""

    def wait(self) -> None:
        """Queue the switch for reading; if it is being read, read it once more afterwards.

        One that is not in sync is read anew: what it can hold may be another now.
        """
        self._total = None
        if self.state in AMISS:
            self._known, self._limits = False, None
        if self.state in ("reading", "changing", "checking"):
            self.again = True
            return
        self.state, self.retry = "waiting", inf
        self.owner.admission.ask(self)

    @property
    def rest(self) -> float:
        """Seconds until it is read again: each time twice as long."""
        longest = max(LAST_RETRY, self._sent / ROWS_RESENT)
        return min(FIRST_RETRY * 2.0 ** min(self.tries, MOST_DOUBLED), longest)

    def read(self) -> None:
        """Request its ports and content; ports first: the program may depend on them.

        At first, also who made it: what is not Open vSwitch tells its features before it gets rows.
        """
        self.state, self.again = "reading", False
        self.talk.ask(Multipart.PORT_DESC, b"", self._told_ports)
        first = {} if self._known else {Multipart.DESC: b""}
        self.talk.ask_all(first | CONTENT, self._told)

    @property
    def host(self) -> str:
        """The host that it connects from."""
        return self.peer.rpartition(":")[0]

    def may_be(self, other: Switch) -> bool:
        """Whether it may well be the same switch as another of its datapath id: it has shown a
        certificate, or comes from the same host.
        """
        return self.certificate is not None or self.host == other.host

    def probe(self) -> None:
        """Ask whether it is alive, unless it is asked already."""
        if self.asked is None:
            self.asked = self.talk.clock()
            self.talk.send(SendPriority.URGENT, PROBE)

    def touched(self) -> None:
        """Note that the switch gets a change: a reading in progress is out of date."""
        self.again |= self.state in ("reading", "checking")
        self.unread = True

    def due(self, before: float) -> bool:
        """Whether it has confirmed changes and is to be read in full; one that had drifted is left
        alone if it was read after this time.
        """
        return self.unread and (not self.drifts or self.compared is None or self.compared <= before)

    def compare(self, done: Callable[[reconcile.Difference | None], None]) -> None:
        """Read the switch and compare it with its program, but change nothing.

        Args:
            done: gets the difference; None if the switch does not say what it holds or is being
                changed.
        """

        def told(replies: Replies) -> None:
            """Compare what the switch has said."""
            difference: reconcile.Difference | None = None
            is_still = (
                self.vertex is not None and self.state == "in sync" and not self.talk.changing
            )
            try:
                held = _held(replies) if is_still else None
                if held is not None:
                    _, difference = self._difference(held)
                    self.owner.compared(self, difference, corrects=False)
                    if not difference.parts:
                        self.unread, self.drifts, self.tries = False, 0, 0
            finally:
                done(difference)

        self.talk.ask_all(CONTENT, told)

    def _told_ports(self, body: bytes | None) -> None:
        """The switch has described its ports."""
        if body is not None and self.vertex is not None:
            self.owner.upkeep.described(self.vertex, body)

    def _told(self, replies: Replies) -> None:
        """All replies have arrived, or refusals (None): reconcile."""
        if self.vertex is None or self.again:
            self._end_turn()
            return
        held = _held(replies)
        if held is None:
            self._refuse(None)
        elif self._known or is_open_vswitch(replies[Multipart.DESC]):
            self._known = True
            self._correct(self.vertex, held)
        else:
            self._learn()

    def _learn(self) -> None:
        """Ask the switch for its features, and read it again: it may take time to tell them."""

        def told(replies: Replies) -> None:
            """Take the features."""
            if self.vertex is None:
                self._end_turn()
                return
            self._known = True
            able, self._limits = features(*(replies[kind] for kind in FEATURES))
            self._lower(self.vertex, able)
            self.read()

        self.talk.ask_all(FEATURES, told, FEATURES_PATIENCE)

    def _lower(self, vertex: int, able: Profile) -> None:
        """The switch can do no more than this, and gets the program of another profile for it."""
        programs = self.owner.current.programs
        before = programs.profile(vertex)
        self.able = self.able.within(able)
        programs.restrict(vertex, self.able)
        lowered_to = programs.profile(vertex)
        if lowered_to != before:
            build, name = self.owner.current.build, self.owner.current.names[vertex]
            lacks = "; ".join(lowered_to.lacks(build)) if build else ""
            text = lacks or "it does all that this build asks for"
            self.owner.tell(ProfileLowered(name, lowered_to.name, text))

    def _difference(
        self, held: reconcile.SwitchContent
    ) -> tuple[FlowProgram, reconcile.Difference]:
        """The program that the switch is to hold now, and the difference to that."""
        if self.vertex is None:
            raise ValueError("a switch that is not in this build")
        self.generation = generation_of(held.marker)
        programs = self.owner.current.programs
        programs.restrict(self.vertex, self.able)
        self.talk.bundles = programs.profile(self.vertex).bundles
        program = programs.program(self.vertex, self.generation)
        self.holds = sum(map(len, held.blocks)) + len(held.foreign), len(held.groups)
        return program, reconcile.difference(program, held, self.owner.foreign)

    def _correct(self, vertex: int, held: reconcile.SwitchContent) -> None:
        """Give the switch the difference to its program; during a survey, nothing."""
        if self.owner.survey is not None:
            self.owner.survey[vertex] = held.marker
            self._end_turn()
            return
        program, difference = self._difference(held)
        self.owner.compared(self, difference, corrects=True)
        if not difference.parts:
            self.drifts, self.unread = 0, False
            self._sync()
            return
        if self._total is not None and self.drifted():
            self.forget(difference)
            return
        self._before = held if self._before is None else self._before
        self._sent = 0
        exceeded = self._limits.exceeded(program) if self._limits is not None else ""
        if exceeded:
            self._fail(TransactionOutcome(committed=False, text=exceeded))
            return
        self.state, self._total = "changing", reconcile.Total.of(program)
        self._sent = difference.added + difference.changed
        self._asked = False
        self.talk.change(difference.parts, self._changed, self._ask)

    def drifted(self) -> bool:
        """A reading has found something else than was confirmed; whether that is too often."""
        self.drifts += 1
        return self.drifts >= MOST_DRIFTS

    def _changed(self, outcome: TransactionOutcome) -> None:
        """The change has ended: it is checked, tried again with less, or has failed."""
        if outcome.lost:
            return
        if outcome.committed and self.again:
            self._end_turn()
            return
        if outcome.committed:
            self.state, self.unread = "checking", True
            if not self._asked:
                self._ask()
            return
        self._total = None
        if outcome.timed_out and self._timeouts < MOST_TIMEOUTS:
            self._timeouts += 1
            self.again = True
            self._end_turn()
        elif self.vertex is None or not self._try_less(self.vertex, outcome):
            self._fail(outcome)

    def _try_less(self, vertex: int, refusal: TransactionOutcome) -> bool:
        """Whether a refusal says that the switch can do less, so that it is read for less."""
        programs = self.owner.current.programs
        profile = programs.profile(vertex)
        less = lowered(profile, refusal.kinds)
        if self._limits is None:
            if less == profile and not asks_too_much(refusal.kinds):
                return False
            self._lower(vertex, less)
            self._learn()
            return True
        self._lower(vertex, less)
        if programs.profile(vertex) == profile:
            return False  # also where the program of this build has no simpler form
        self.read()
        return True

    def _fail(self, refusal: TransactionOutcome) -> None:
        """The switch stays with what it had, or gets it back."""
        if self.talk.bundles:
            self._refuse(refusal)
        else:
            self._take_back(refusal)

    def _take_back(self, refusal: TransactionOutcome) -> None:
        """Undo what a switch without bundles has carried out of a change before it refused."""

        def refuse(outcome: TransactionOutcome) -> None:
            """What was done is taken back."""
            if not outcome.lost:
                self._refuse(refusal)

        def told(replies: Replies) -> None:
            """Bring the switch from what it holds to what it held."""
            held = _held(replies)
            if held is None or self._before is None:
                self._refuse(refusal)
            else:
                self.talk.change(reconcile.restored(self._before, held), refuse)

        self.talk.ask_all(CONTENT, told)

    def _ask(self) -> None:
        """Count its rows and read its groups: that it confirms a change proves nothing. Asked with
        the commit, as it answers in order.
        """
        self._asked = True
        self.talk.ask_all(TOTAL, self._counted, priority=SendPriority.BULK)

    def _counted(self, replies: Replies) -> None:
        """The rows are counted: the switch is in sync if it tells what it has confirmed."""
        self._asked = self.state != "changing"  # else it does not answer in order: asked again
        if self.state != "checking":
            return
        if self.vertex is None or self.again:
            self._end_turn()
            return
        counted, groups = (replies[kind] for kind in TOTAL)
        reported = counted is not None and groups is not None
        if not reported or reconcile.Total.read(counted or b"", groups or b"") != self._total:
            self.read()
        elif self.drifts >= MOST_DRIFTS:
            self.forget()
        else:
            self._sync()

    def _sync(self) -> None:
        """The switch holds its program."""
        self._over("in sync")
        if not self.again:
            self.owner.synced(self)
        self._end_turn()

    def forget(self, difference: reconcile.Difference | None = None) -> None:
        """Take the switch not to keep its program, until a later reading finds it untouched."""
        self._over("drifting")
        if difference:
            self.owner.forgets(self, difference)
        self._end_turn()

    def _refuse(self, outcome: TransactionOutcome | None) -> None:
        """The switch refuses its program; None if it does not say what it holds."""
        self._over("unknown" if outcome is None else "refused")
        self.owner.refused(self, outcome)
        self._end_turn()

    def _over(self, state: State) -> None:
        """End what was begun with the switch, in this state."""
        self.state, self._before, self._total, self._timeouts = state, None, None, 0

    def _end_turn(self) -> None:
        """Another switch may be read; this one is read again after a while if it is amiss."""
        if self.state in AMISS:
            self.retry = self.talk.clock() + self.rest
            self.tries += 1
        elif self.state != "in sync":
            self.state = "waiting"
        self.owner.admission.end(self)
        if self.again and self.vertex is not None:
            self.again = False
            self.wait()


def most_at_once(switches: int) -> int:
    """The switches of a fabric that are read at the same time: each has a row for about each."""
    return min(SWITCHES_AT_ONCE, 1 + ADMITTED_ROWS // max(switches, 1))


@dataclass(slots=True)
class Admission:
    """Admission to reading and programming: first come, first served.

    A program is computed when its switch is admitted, so memory holds only a few programs, and the
    first switches are ready early.
    """

    most: int
    """How many switches are admitted at once."""
    _admitted: set[Switch] = field(default_factory=set)
    """Those that are admitted."""
    _waiting: dict[Switch, None] = field(default_factory=dict)
    """Those that wait, in order."""

    def ask(self, switch: Switch) -> None:
        """Admit a switch, at once or later; a second request has no effect."""
        if switch not in self._admitted:
            self._waiting[switch] = None
            self._fill()

    def end(self, switch: Switch) -> None:
        """Release an admitted switch, or drop a waiting one."""
        self._waiting.pop(switch, None)
        self._admitted.discard(switch)
        self._fill()

    def _fill(self) -> None:
        """Admit as many as there is room for."""
        while self._waiting and len(self._admitted) < self.most:
            switch = next(iter(self._waiting))
            del self._waiting[switch]
            self._admitted.add(switch)
            switch.read()


def _held(replies: Replies) -> reconcile.SwitchContent | None:
    """What a switch says that it holds; None if it does not say."""
    flows, groups = (replies[kind] for kind in CONTENT)
    return None if flows is None or groups is None else reconcile.held(flows, groups)
