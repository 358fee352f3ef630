"""One connected switch: it waits for admission, is read, is reconciled, and is read back. No I/O.

A switch is *in sync* when what it says that it holds is its program. After a commit its rows are
counted and its groups read; the rolling audit then reads it in full.

The states of a switch (`Switch.state`), and where each leads:

    waiting     admitted: reading
    reading     holds its program: in sync; differs: changing; does not say what it holds: unknown;
                differs again and again from what it has confirmed: drifting
    changing    confirms: checking; refuses or lacks capacity: refused, or reading for a program
                that asks for less; has timed out: waiting
    checking    the counts are those of its program: in sync; they are not: reading
    in sync     the audit finds a difference: waiting, or drifting
    refused, unknown, drifting      after a growing delay: waiting
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
from controller.openflow.multipart import flows_body
from controller.openflow.switch_features import (
    Limits,
    asks_too_much,
    features,
    is_open_vswitch,
    lowered_profile,
)
from controller.settings import ForeignRows
from controller.switches import reconcile
from controller.switches.connections.sending import SendPriority
from controller.switches.conversation import ChangeOutcome, Conversation
from controller.switches.current import Current, Upkeep
from controller.switches.events import Event, ProfileLowered

PROBE = message(MessageType.ECHO_REQUEST, SessionXid.PROBE)
"""Asks a switch whether it is alive."""
CONTENT_REQUESTS = {Multipart.FLOW: flows_body(), Multipart.GROUP_DESC: b""}
"""The requests for all that a switch holds: type and body."""
COUNT_REQUESTS = {Multipart.AGGREGATE: reconcile.COUNT_REQUEST, Multipart.GROUP_DESC: b""}
"""The requests for the number of our rows, and for all groups: type and body."""
FEATURE_REQUESTS = {Multipart.GROUP_FEATURES: b"", Multipart.TABLE_FEATURES: b""}
"""The requests for the features of a switch's groups and tables: type and body."""
FEATURES_PATIENCE = 10.0
"""Seconds after which features that a switch has not reported count as refused."""
MOST_TIMEOUTS = 5
"""Bundles that a switch may let time out, one after the other, before that is a refusal."""
MOST_DRIFTS = 3
"""Readings in a row that find another content than the switch has confirmed, until the switch is
treated as drifting."""
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
"""Seconds until a switch that is not in sync is read again, at first and at most."""
ROWS_RESENT = 150
"""Rows a second: a large program that a switch refuses is not sent again faster than this."""
MOST_DOUBLINGS = 20
"""How often the delay before the next reading doubles; this bounds the power of two."""

SWITCHES_AT_ONCE, ADMITTED_ROWS = 1024, 1_200_000
"""Switches that are read and programmed at the same time, and about how many rows they hold.

Both bound the memory used, and how long the answer of a switch waits behind other answers. Fewer
switches would be slower: one ovs-vswitchd with a thousand bridges takes at most 50 messages of a
connection in each iteration, and an iteration costs the same for one bridge as for all.
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


class _SwitchOwner(Protocol):
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
        """A switch was read, and holds its program."""

    def refused(self, switch: Switch, outcome: ChangeOutcome | None) -> None:
        """A switch has refused its program; None if it could not be read."""

    def forgets(self, switch: Switch, difference: reconcile.Difference) -> None:
        """A switch has confirmed its program, but was then read not to hold it."""


@dataclass(slots=True)
class ConnectionFacts:
    """The fabric's notes on a connection: its signs of life, and claims of its vertex by others.

    All times are by `LiveFabric.listening_clock`, but for `owns_vertex_since`, by `clock`.
    """

    last_message_at: float = 0.0
    """When the switch sent its last message."""
    probe_sent_at: float | None = None
    """When the probe was sent that the switch leaves unanswered; None while it answers."""
    is_slow: bool = False
    """Whether it has left a probe unanswered for long."""
    owns_vertex_since: float | None = None
    """When the vertex was assigned to the connection; None once the switch holds its program."""
    duplicate_text: str = ""
    """A message about another connection with the same datapath id; "" without one."""
    duplicate_seen_at: float = -inf
    """When that connection came last."""


@dataclass(slots=True)
class ForeignEntries:
    """The rows and groups in a switch that are not ours."""

    count: int = 0
    """How many rows and groups there are."""
    shadowing_rows: int = 0
    """How many foreign rows take precedence over ours."""
    borrowed_groups: tuple[int, ...] = ()
    """The numbers of groups in our range that foreign rows lead to."""


@dataclass(slots=True, eq=False)
class Switch:
    """A connected switch."""

    key: Hashable
    """The connection's key in its fabric."""
    datapath_id: int
    """The switch's OpenFlow datapath id."""
    peer: str
    """The address that it connects from."""
    talk: Conversation
    """The requests and changes under way."""
    owner: _SwitchOwner
    """The fabric."""
    certificate: frozenset[str] | None = None
    """The nodes that its certificate names; None without TLS."""
    vertex: int | None = None
    """The switch's vertex. None if it is not in the build, if another connection has its place, or
    if its own has ended.
    """
    state: State = "waiting"
    """How far the switch has come."""
    connection: ConnectionFacts = field(default_factory=ConnectionFacts)
    """When the connection was last alive, and whether another one has its datapath id."""
    foreign: ForeignEntries = field(default_factory=ForeignEntries)
    """The foreign rows and groups, as the last full reading found them."""
    last_read_at: float | None = None
    """When it was last read in full, by the fabric's clock."""
    has_unread_changes: bool = False
    """Whether it has confirmed changes since it was read."""
    holds: tuple[int, int] | None = None
    """How many rows and groups it held when it was read in full."""
    drifts: int = 0
    """How many readings in a row found something else than the switch had confirmed."""
    retries: int = 0
    """How often it was read again without success."""
    reread_requested: bool = False
    """Whether it is read once more after the current reading."""
    generation: int = 0
    """The generation of class and group numbers in its program."""
    retry_at: float = inf
    """When it is read again, while its state is one of AMISS."""
    shown_profile: Profile = OVS
    """The profile without all that its features or its errors have shown that it lacks."""
    _entries_sent: int = 0
    """How many rows and groups the last change had."""
    _profile_known: bool = False
    """Whether the switch is Open vSwitch, or has been asked for its features."""
    _timeouts: int = 0
    """How many bundles it has let time out, one after the other."""
    _limits: Limits | None = None
    """What it can hold at most; None before it was asked."""
    _count_requested: bool = False
    """Whether its rows are being counted after the commit."""
    _content_before: reconcile.SwitchContent | None = None
    """Its content before the present attempt to change it; None before the first change."""
    _confirmed_total: reconcile.Fingerprint | None = None
    """The summary of the program that it was sent last; None if it has confirmed no program."""

    def request_reading(self) -> None:
        """Have the switch read once it is admitted; if it is being read, once more afterwards.

        A switch that is amiss is asked for its features again: its capacity may have changed.
        """
        self._confirmed_total = None
        if self.state in AMISS:
            self._profile_known, self._limits = False, None
        if self.state in ("reading", "changing", "checking"):
            self.reread_requested = True
            return
        self.state, self.retry_at = "waiting", inf
        self.owner.admission.ask(self)

    @property
    def retry_delay(self) -> float:
        """Seconds until it is read again: doubled by each retry, up to the longest delay."""
        longest = max(LAST_RETRY, self._entries_sent / ROWS_RESENT)
        return min(FIRST_RETRY * 2.0 ** min(self.retries, MOST_DOUBLINGS), longest)

    def read(self) -> None:
        """Request its ports and content; ports first: the program may depend on them.

        The first time, request its description, too: a switch that is not Open vSwitch is asked for
        its features before it gets rows.
        """
        self.state, self.reread_requested = "reading", False
        self.talk.once_idle(self._request_content)

    def _request_content(self) -> None:
        """Request what `read` reads."""
        self.talk.ask(Multipart.PORT_DESC, b"", self._ports_described)
        description = {} if self._profile_known else {Multipart.DESC: b""}
        self.talk.ask_all(description | CONTENT_REQUESTS, self._reconcile)

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
        """Ask whether it is alive, unless a probe is unanswered."""
        if self.connection.probe_sent_at is None:
            self.connection.probe_sent_at = self.talk.clock()
            self.talk.send(SendPriority.URGENT, PROBE)

    def note_change(self) -> None:
        """Note that the switch is sent a change: a reading in progress is out of date."""
        self.reread_requested |= self.state in ("reading", "checking")
        self.has_unread_changes = True

    def due(self, before: float) -> bool:
        """Whether it has confirmed changes since it was read, and is to be read in full.

        Args:
            before: a switch that has drifted is not read again if it was read after this time.
        """
        read_lately = self.last_read_at is not None and self.last_read_at > before
        return self.has_unread_changes and not (self.drifts and read_lately)

    def compare(self, done: Callable[[reconcile.Difference | None], None]) -> None:
        """Read the switch and compare it with its program, but change nothing.

        Args:
            done: gets the difference; None if the switch does not say what it holds or is being
                changed.
        """

        def compare_replies(replies: Replies) -> None:
            """Compare what the switch has said."""
            difference: reconcile.Difference | None = None
            is_unchanged = (
                self.vertex is not None and self.state == "in sync" and not self.talk.running_bytes
            )
            try:
                content = _content_of(replies) if is_unchanged else None
                if content is not None:
                    _, difference = self._difference(content)
                    self.owner.compared(self, difference, corrects=False)
                    if not difference.parts:
                        self.has_unread_changes, self.drifts, self.retries = False, 0, 0
            finally:
                done(difference)

        self.talk.ask_all(CONTENT_REQUESTS, compare_replies)

    def _ports_described(self, body: bytes | None) -> None:
        """Pass on the ports that the switch has described; None if it has not."""
        if body is not None and self.vertex is not None:
            self.owner.upkeep.described(self.vertex, body)

    def _reconcile(self, replies: Replies) -> None:
        """Reconcile the switch, whose replies have all arrived."""
        if self.vertex is None or self.reread_requested:
            self._end_turn()
            return
        content = _content_of(replies)
        if content is None:
            self._refuse(None)
        elif self._profile_known or is_open_vswitch(replies[Multipart.DESC]):
            self._profile_known = True
            self._send_difference(self.vertex, content)
        else:
            self._learn_features()

    def _learn_features(self) -> None:
        """Ask the switch for its features, and read it again: it may take time to tell them."""

        def take_features(replies: Replies) -> None:
            """Lower the profile to the features, and read the switch."""
            if self.vertex is None:
                self._end_turn()
                return
            self._profile_known = True
            able, self._limits = features(*(replies[kind] for kind in FEATURE_REQUESTS))
            self._lower_profile(self.vertex, able)
            self.read()

        self.talk.ask_all(FEATURE_REQUESTS, take_features, FEATURES_PATIENCE)

    def _lower_profile(self, vertex: int, able: Profile) -> bool:
        """Note that the switch can do no more than this.

        Returns:
            Whether the profile of its program has changed. It has not if that program asks for no
            more, nor if the program of this build has no simpler form.
        """
        programs = self.owner.current.programs
        before = programs.profile(vertex)
        self.shown_profile = self.shown_profile.within(able)
        programs.restrict(vertex, self.shown_profile)
        lowered_to = programs.profile(vertex)
        if lowered_to == before:
            return False
        build, name = self.owner.current.build, self.owner.current.names[vertex]
        deviations = "; ".join(lowered_to.deviations(build)) if build else ""
        text = deviations or "it does all that this build asks for"
        self.owner.tell(ProfileLowered(name, lowered_to.name, text))
        return True

    def _difference(
        self, content: reconcile.SwitchContent
    ) -> tuple[FlowProgram, reconcile.Difference]:
        """The program that the switch is to hold now, and the difference to that."""
        if self.vertex is None:
            raise ValueError("a switch that is not in this build")
        self.generation = generation_of(content.marker)
        programs = self.owner.current.programs
        programs.restrict(self.vertex, self.shown_profile)
        self.talk.bundles = programs.profile(self.vertex).bundles
        program = programs.program(self.vertex, self.generation)
        self.holds = sum(map(len, content.blocks)) + len(content.foreign), len(content.groups)
        return program, reconcile.difference(program, content, self.owner.foreign)

    def _send_difference(self, vertex: int, content: reconcile.SwitchContent) -> None:
        """Send the switch the difference to its program; during a survey, nothing."""
        if self.owner.survey is not None:
            self.owner.survey[vertex] = content.marker
            self._end_turn()
            return
        program, difference = self._difference(content)
        if difference.parts and self.owner.upkeep.leaves_unchanged(vertex, program, content):
            self._end_turn()
            return
        self.owner.compared(self, difference, corrects=True)
        if not difference.parts:
            self.drifts, self.has_unread_changes = 0, False
            self._confirm_in_sync()
            return
        if self._confirmed_total is not None and self.record_drift():
            self.mark_drifting(difference)
            return
        self._content_before = content if self._content_before is None else self._content_before
        self._entries_sent = 0
        exceeded = self._limits.exceeded(program) if self._limits is not None else ""
        if exceeded:
            self._fail(ChangeOutcome(committed=False, text=exceeded))
            return
        self.state, self._confirmed_total = "changing", reconcile.Fingerprint.of(program)
        self._entries_sent = difference.added + difference.changed
        self._count_requested = False
        self.talk.change(difference.parts, self._take_outcome, self._request_counts)

    def record_drift(self) -> bool:
        """Count a reading that found something else than was confirmed.

        Returns:
            Whether there were `MOST_DRIFTS` such readings in a row.
        """
        self.drifts += 1
        return self.drifts >= MOST_DRIFTS

    def _take_outcome(self, outcome: ChangeOutcome) -> None:
        """Take the outcome of a change."""
        if outcome.lost:
            return
        if not outcome.committed:
            self._confirmed_total = None
            self._take_refusal(outcome)
        elif self.reread_requested:
            self._end_turn()
        else:
            self.state, self.has_unread_changes = "checking", True
            if not self._count_requested:
                self._request_counts()

    def _take_refusal(self, refusal: ChangeOutcome) -> None:
        """Try a refused change again: as it is, or with a program that asks for less; or fail."""
        if refusal.timed_out and self._timeouts < MOST_TIMEOUTS:
            self._timeouts += 1
            self.reread_requested = True
            self._end_turn()
        elif self.vertex is None:
            self._fail(refusal)
        elif self._limits is None:
            self._explain_by_features(self.vertex, refusal)
        elif self._lower_profile(self.vertex, self._profile_after(self.vertex, refusal)):
            self.read()
        else:
            self._fail(refusal)

    def _explain_by_features(self, vertex: int, refusal: ChangeOutcome) -> None:
        """Ask a switch for its features that was not asked yet, if they may explain a refusal.

        They may if the refusal shows that the switch can do less than its profile says, or that it
        is full.
        """
        able = self._profile_after(vertex, refusal)
        shows_less = able != self.owner.current.programs.profile(vertex)
        if shows_less or asks_too_much(refusal.first_errors):
            self._lower_profile(vertex, able)
            self._learn_features()
        else:
            self._fail(refusal)

    def _profile_after(self, vertex: int, refusal: ChangeOutcome) -> Profile:
        """The profile of the switch's program without what a refusal shows that it cannot do."""
        return lowered_profile(self.owner.current.programs.profile(vertex), refusal.first_errors)

    def _fail(self, refusal: ChangeOutcome) -> None:
        """Give a change up: the switch keeps what it had, or gets it back."""
        if self.talk.bundles:
            self._refuse(refusal)
        else:
            self._take_back(refusal)

    def _take_back(self, refusal: ChangeOutcome) -> None:
        """Undo what a switch without bundles has carried out of a change before it refused."""

        def refuse(outcome: ChangeOutcome) -> None:
            """Note the refusal, now that the change is undone."""
            if not outcome.lost:
                self._refuse(refusal)

        def restore(replies: Replies) -> None:
            """Bring the switch from what it holds to what it held."""
            content = _content_of(replies)
            if content is None or self._content_before is None:
                self._refuse(refusal)
            else:
                messages = reconcile.restoring_messages(self._content_before, content)
                self.talk.change(messages, refuse)

        self.talk.ask_all(CONTENT_REQUESTS, restore)

    def _request_counts(self) -> None:
        """Count its rows and read its groups: that it confirms a change proves nothing.

        The requests are sent with the commit, as a switch answers in order.
        """
        self._count_requested = True
        self.talk.ask_all(COUNT_REQUESTS, self._compare_counts, priority=SendPriority.BULK)

    def _compare_counts(self, replies: Replies) -> None:
        """Take the counts that have arrived: the switch is in sync if they are its program's."""
        # A switch that counts before it has confirmed the change does not answer in order. Then it
        # is asked again after the confirmation.
        self._count_requested = self.state != "changing"
        if self.state != "checking":
            return
        if self.vertex is None or self.reread_requested:
            self._end_turn()
            return
        row_count, groups = (replies[kind] for kind in COUNT_REQUESTS)
        is_reported = row_count is not None and groups is not None
        if not is_reported or (
            reconcile.Fingerprint.read(row_count or b"", groups or b"") != self._confirmed_total
        ):
            self.read()
        elif self.drifts >= MOST_DRIFTS:
            self.mark_drifting()
        else:
            self._confirm_in_sync()

    def _confirm_in_sync(self) -> None:
        """Note that the switch holds its program."""
        self._conclude("in sync")
        if not self.reread_requested:
            self.owner.synced(self)
        self._end_turn()

    def mark_drifting(self, difference: reconcile.Difference | None = None) -> None:
        """Treat the switch as losing its program, until a reading finds it in sync."""
        self._conclude("drifting")
        if difference:
            self.owner.forgets(self, difference)
        self._end_turn()

    def _refuse(self, outcome: ChangeOutcome | None) -> None:
        """Note that the switch refuses its program; None if it does not say what it holds."""
        self._conclude("unknown" if outcome is None else "refused")
        self.owner.refused(self, outcome)
        self._end_turn()

    def _conclude(self, state: State) -> None:
        """Enter a state that ends the current attempt, and forget what the attempt has kept."""
        self.state, self._timeouts = state, 0
        self._content_before = self._confirmed_total = None

    def _end_turn(self) -> None:
        """Let another switch be read; if this one is amiss, it is read again after a while."""
        if self.state in AMISS:
            self.retry_at = self.talk.clock() + self.retry_delay
            self.retries += 1
        elif self.state != "in sync":
            self.state = "waiting"
        self.owner.admission.end(self)
        if self.reread_requested and self.vertex is not None:
            self.reread_requested = False
            self.request_reading()


def most_at_once(switches: int) -> int:
    """How many switches of a fabric may be read at the same time.

    A switch has about one row for each switch of the fabric.
    """
    return min(SWITCHES_AT_ONCE, 1 + ADMITTED_ROWS // max(switches, 1))


@dataclass(slots=True)
class Admission:
    """Admission to reading and programming: first come, first served.

    A program is computed when its switch is admitted, so memory holds only a few programs, and the
    first switches are ready early.
    """

    capacity: int
    """How many switches are admitted at once."""
    _admitted: set[Switch] = field(default_factory=set)
    """The switches that are admitted."""
    _waiting: dict[Switch, None] = field(default_factory=dict)
    """The switches that wait, in order of their requests; the values are unused."""

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
        """Admit waiting switches up to the capacity."""
        while self._waiting and len(self._admitted) < self.capacity:
            switch = next(iter(self._waiting))
            del self._waiting[switch]
            self._admitted.add(switch)
            switch.read()


def _content_of(replies: Replies) -> reconcile.SwitchContent | None:
    """What a switch says that it holds; None if it does not say."""
    flows, groups = (replies[kind] for kind in CONTENT_REQUESTS)
    return None if flows is None or groups is None else reconcile.read_content(flows, groups)
