"""Events of a running fabric: one class per kind, as JSON for programs and as a line for people."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from time import time
from typing import Any, ClassVar, Literal, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Event:
    """An event, with its time in seconds since the epoch (UTC); every kind is a frozen dataclass.

    A kind has a name and templates that are filled from its fields: subject, the object of the
    event; detail, further text; line, the event for people. The reporter counts kinds without a
    line.
    """

    kind: ClassVar[str]
    subject: ClassVar[str] = ""
    detail: ClassVar[str] = ""
    line: ClassVar[str] = ""

    at: float = field(default_factory=time, kw_only=True, compare=False)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    @property
    def node(self) -> str:
        """The object of the event: a switch, a link, a build or an address."""
        return self.subject.format_map(vars(self))

    @property
    def text(self) -> str:
        """The details as text; may be empty."""
        return self.detail.format_map(vars(self))

    def __str__(self) -> str:
        return self.line.format_map(vars(self) | {"node": self.node, "text": self.text})

    def record(self) -> dict[str, Any]:
        """The event as JSON: `event`, `at`, `node`, `text` and the fields of its kind."""
        head = {"event": self.kind, "at": round(self.at, 3), "node": self.node, "text": self.text}
        own = (one.name for one in fields(self) if one.name != "at")
        return head | {name: getattr(self, name) for name in own}


# Switches


class SwitchEvent(Event):
    """An event of a switch, which has the name of its node."""

    subject = "{switch}"

    switch: str


class StateEvent(SwitchEvent):
    """A switch is in another state from now on."""


class SwitchConnected(StateEvent):
    """A switch of the build has connected, or is read again because a build was loaded."""

    kind = "connected"

    datapath_id: str
    peer: str


class SwitchProgrammed(StateEvent):
    """A switch holds its program; seconds since it connected, null if it was only read again."""

    kind = "programmed"

    seconds: float | None


class FaultReport(SwitchEvent):
    """An error reported by a switch.

    error_type and error_code: of the first OpenFlow error, null if there is none. entry: the
    program entry that it answers. errors: the number of errors.
    """

    detail = "{reason}"

    reason: str
    error_type: int | None = None
    error_code: int | None = None
    entry: str = ""
    errors: int = 0


class ProgramRefused(FaultReport, StateEvent):
    """A switch has refused its program and keeps what it had; it gets no transit."""

    kind = "refused"
    line = "switch {node} refused its program and keeps what it had: {text}"


class ProfileLowered(SwitchEvent):
    """A switch can do less than was known, and gets a program of another profile."""

    kind = "profile"
    detail = "{profile}: {lacks}"
    line = "switch {node} has OpenFlow profile {text}"

    profile: str
    lacks: str


class ProgrammedFault(FaultReport):
    """A switch reports an error after it was programmed."""

    kind = "error"
    line = "switch {node} reports an error after it was programmed: {text}"


class BundleGivenUp(SwitchEvent):
    """A busy switch has given up a bundle whose next message came late; it gets it again."""

    kind = "given-up"
    line = "switch {node} has given up a bundle, and gets it again"


class RowsShadowed(SwitchEvent):
    """Rows of others take packets that our rows are for; table and priority of one of them."""

    kind = "shadowed"
    detail = "rows of others over its program: {rows}, one in table {table}, priority {priority}"
    line = "switch {node} does not forward as compiled: {text}"

    rows: int
    table: int
    priority: int


class DriftFound(StateEvent):
    """A switch in sync no longer holds its program, and gets it again: rows and groups that were
    missing, altered, or too many.
    """

    kind = "drift"
    detail = "{added} rows and groups missing, {changed} altered, {removed} too many"
    line = "switch {node} has drifted, and gets its program again: {text}"

    added: int
    changed: int
    removed: int


class ProgramForgotten(StateEvent):
    """A switch confirms its program and, as it was read so many times in a row, does not hold it:
    it gets no transit until it does. Rows and groups that were missing, altered, or too many.
    """

    kind = "forgotten"
    detail = (
        "confirms its program and does not keep it, as it was read {times} times in a row: "
        "{added} rows and groups missing, {changed} altered, {removed} too many"
    )
    line = "switch {node} {text}; it gets no transit"

    times: int
    added: int
    changed: int
    removed: int


class SwitchLeft(StateEvent):
    """The connection of a switch has ended."""

    kind = "left"
    line = "switch {node} left"


class SwitchSilent(SwitchEvent):
    """A switch has not answered for this many seconds; its connection is closed."""

    kind = "silent"
    line = "switch {node} does not answer and is disconnected"

    seconds: float


class MalformedMessage(SwitchEvent):
    """A switch has sent malformed data; its connection is closed."""

    kind = "malformed"
    detail = "{reason}"
    line = "switch {node} is disconnected for malformed data: {text}"

    reason: str


class DuplicateDatapath(SwitchEvent):
    """Two switches use the same datapath id: the address of the one that stays, which answers, and
    of the one that is turned away.
    """

    kind = "duplicate"
    detail = (
        "connected twice under one datapath id, from {peers[0]}, which stays, and from {peers[1]}; "
        "give each switch a datapath id of its own"
    )
    line = "switch {node} {text}"

    datapath_id: str
    peers: tuple[str, str]


class UnknownDatapath(Event):
    """A switch has connected with a datapath id that is not in the build."""

    kind = "unknown"
    subject = "{datapath_id}"
    line = "datapath id {node} is not in this build and gets no program"

    datapath_id: str
    peer: str


class PeerEvent(Event):
    """A peer was turned away, so many times since the last report."""

    subject = "{host}"

    host: str
    reason: str
    times: int

    @property
    def text(self) -> str:
        """The reason, and how often where that was more than once."""
        return self.reason + (f", {self.times} times since" if self.times > 1 else "")


class UnnamedPeer(PeerEvent):
    """A peer did not identify itself as an OpenFlow 1.3 switch."""

    kind = "stranger"
    line = "a peer on {node} did not identify itself as an OpenFlow 1.3 switch: {text}"


class PeerRejected(PeerEvent):
    """A peer failed the TLS handshake."""

    kind = "barred"
    line = "a peer on {node} failed the TLS handshake: {text}"


class PeerMisnamed(PeerEvent):
    """A certificate does not name the switch whose datapath id the peer has, or is revoked."""

    kind = "misnamed"
    line = "a peer on {node} is turned away: {text}"


class TokenRefused(PeerEvent):
    """A client of the API has sent a token that is not known."""

    kind = "token-refused"
    line = "a client on {node} is refused: {text}"


# The controller itself


class FileEvent(Event):
    """An event of a file."""

    subject = "{file}"

    file: str


class FileFault(FileEvent):
    """A file cannot be used."""

    detail = "{reason}"

    reason: str


class TokensLoaded(FileEvent):
    """The token file was read again, and has so many tokens."""

    kind = "tokens"
    detail = "{tokens}"
    line = "tokens were read again, {text} in {node}"

    tokens: int


class TokensKept(FileFault):
    """The token file was read again and cannot be used: the tokens before stay."""

    kind = "tokens-kept"
    line = "the tokens known stay, the file cannot be used: {text}"


class ControllerEnded(Event):
    """The controller ends because of this signal; switches keep what they hold."""

    kind = "ended"
    subject = "{signal}"
    line = "ended by {node}; switches keep what they hold"

    signal: str


class BugFound(Event):
    """A step of the controller's loops has failed, which is an internal error; it goes on."""

    kind = "bug"
    subject = "{step}"
    detail = "{reason}"
    line = "internal error in: {node}: {text}"

    step: str
    reason: str


class CertificatesLoaded(FileEvent):
    """TLS files have changed and are used for new connections."""

    kind = "certificates"
    line = "new certificates are in use: {node}"


class CertificatesKept(FileFault):
    """TLS files have changed and cannot be used: the ones before stay in use."""

    kind = "certificates-kept"
    line = "the certificates in use stay, the new ones cannot be used: {text}"


# Builds and moves between them


class BuildEvent(Event):
    """An event of a build, which is named by its identity."""

    subject = "{build}"

    build: str


class FabricComplete(BuildEvent):
    """All switches hold their programs; seconds since the first of them connected."""

    kind = "complete"

    switches: int
    seconds: float


class BuildLoaded(BuildEvent):
    """A build is loaded: switches are read again and programmed with it.

    proved: what verification proved of it.
    """

    kind = "loaded"
    detail = "proved: {proved}"
    line = "build {node} is loaded; {text}"

    proved: str


class BuildKept(BuildEvent):
    """Another build cannot be used, or a move to it was undone: this build stays."""

    kind = "kept"
    detail = "{reason}"
    line = "build {node} stays, the new one cannot be used: {text}"

    reason: str


class RoundStarted(BuildEvent):
    """A round of a move begins; rounds count from 1."""

    kind = "round"
    subject = "{round} of {rounds}"
    line = "round {node}"

    round: int
    rounds: int


class MoveFinished(BuildEvent):
    """All switches hold the target build of the move."""

    kind = "moved"
    line = "all switches hold build {node}; they are read again"


class BuildInherited(BuildEvent):
    """The fabric holds the build of an earlier controller, not the one in our folder."""

    kind = "inherited"
    detail = "{folder_build}"
    line = "the fabric holds build {node}, the folder {text}; SIGHUP moves the fabric there"

    folder_build: str


class JournalDamaged(FileFault):
    """The record of the fabric cannot be read: the switches are read, and it is put aside then."""

    kind = "journal-damaged"
    line = "{node} is damaged ({text}); switches are read, nothing is changed"


class BuildSurveyed(BuildEvent):
    """So many of the switches that were read name this build: it is the fabric's."""

    kind = "surveyed"
    detail = "{switches} of {read} switches hold it"
    line = "the fabric has build {node}: {text}"

    switches: int
    read: int


class TrialOver(BuildEvent):
    """A build that was applied for a trial was not confirmed: the fabric goes back."""

    kind = "unconfirmed"
    detail = "{before}"
    line = "build {node} was not confirmed: the fabric goes back to build {text}"

    before: str


class ApiOpened(Event):
    """The management API and the status page are served; what clients may do."""

    kind = "api"
    subject = "{url}"
    detail = "{access}"
    line = "API and status page at {node}: {text}"

    url: str
    access: str


class ApiClosed(Event):
    """The management API cannot be served at its usual address; the controller runs without."""

    kind = "api-closed"
    subject = "{address}"
    detail = "{reason}"
    line = "no API at {node}: {text}"

    address: str
    reason: str


class FileUnwritable(FileFault):
    """A file or folder of the controller cannot be written."""

    kind = "status"
    line = "cannot write {node}: {text}"


class LinkEvent(Event):
    """An event of a link, which is named by the node and port at both ends."""

    subject = "{switch} {port} to {far_switch} {far_port}"

    switch: str
    port: str
    far_switch: str
    far_port: str


class LinkDown(LinkEvent):
    """A link is dead: `port down` at an end, or `not seen` by discovery."""

    kind = "link-down"
    detail = "{reason}"
    line = "link {node} is down: {text}"

    reason: str


class LinkUp(LinkEvent):
    """A link carries packets again."""

    kind = "link-up"
    line = "link {node} is up"


class LinkSuppressed(LinkEvent):
    """A link flaps, and is not used for this many seconds."""

    kind = "suppressed"
    detail = "for {seconds:.0f} s, or longer if it flaps again"
    line = "link {node} flaps and is not used {text}"

    seconds: float


class LinkReused(LinkEvent):
    """A link no longer flaps; it is used again if it is up."""

    kind = "reused"
    line = "link {node} is stable and is used again if it is up"


class SwitchDrained(SwitchEvent):
    """Traffic is routed around a switch: it is disconnected, or does not hold its program."""

    kind = "drained"
    detail = "{reason}"
    line = "switch {node} {text}: traffic is routed around it"

    reason: str


class SwitchReturned(SwitchEvent):
    """A switch was read to hold its program again; traffic is routed through it."""

    kind = "back"
    line = "switch {node} is back: traffic is routed through it again"


class TablesRepaired(Event):
    """Switches hold tables that route around failures.

    rows, classes and switches: how many differ from the build. cut_off_pairs: pairs of switches
    without a path. computed: seconds to compute the tables. seconds: from detecting the failure
    until all switches hold the tables.
    """

    kind = "repaired"
    line = "tables for {node}: {text}"

    dead_links: int
    drained_switches: int
    rows: int
    classes: int
    switches: int
    cut_off_pairs: int
    computed: float
    seconds: float

    @property
    def node(self) -> str:
        """The number of dead links and drained switches, as text."""
        words = f"{self.dead_links} dead link{'s' * (self.dead_links != 1)}"
        if n := self.drained_switches:
            words += f" and {n} drained switch{'es' * (n != 1)}"
        return words

    @property
    def text(self) -> str:
        """The extent of the change, as text."""
        lost = f"; {self.cut_off_pairs} pairs of switches have no path left"
        return (
            f"{self.rows} rows and {self.classes} classes at {self.switches} switches differ from "
            f"the build, computed in {self.computed * 1e3:.0f} ms{lost * bool(self.cut_off_pairs)}"
            f", in place after {self.seconds * 1e3:.0f} ms"
        )


class CableMisplaced(Event):
    """Cables are not as planned: one of the moves that restore the plan.

    misplaced: the number of wrong cables in all. action: swap, move, add or remove the plugs at the
    two ports.
    """

    kind = "miswired"
    subject = "{misplaced} cables misplaced"
    detail = "{sentence}"
    line = "miswired, {node}: {text}"

    misplaced: int
    sentence: str
    action: Literal["swap", "move", "add", "remove"]
    switch: str
    port: str
    far_switch: str
    far_port: str


class CablesRight(Event):
    """All cables that are seen are as planned again."""

    kind = "wired"
    line = "all cables that are seen are as planned"


class LeaderEvent(Event):
    """An event of this instance as the leader."""

    subject = "{instance}"

    instance: str


class LeaderChanged(Event):
    """The leader has changed; an empty leader is nobody. Terms only grow."""

    kind = "leader"
    detail = "{term}"
    line = "{node} leads"

    leader: str
    term: int

    @property
    def node(self) -> str:
        """The leader's name."""
        return self.leader or "nobody"


class LeadershipLost(LeaderEvent):
    """The lease of this instance, which led, has ended; its process restarts."""

    kind = "deposed"
    line = "{node} no longer leads and restarts"


class LeaderWaits(LeaderEvent):
    """An instance leads but cannot begin yet."""

    kind = "not-ready"
    detail = "{reason}"
    line = "{node} leads but cannot begin: {text}"

    reason: str


class StoreChanged(Event):
    """The store fails, or answers again (an empty trouble)."""

    kind = "store"
    line = "the store: {node}"

    trouble: str

    @property
    def node(self) -> str:
        """The trouble, or `answers`."""
        return self.trouble or "answers"


class RoleContested(Event):
    """A switch does not accept this controller as its master."""

    kind = "contested"
    subject = "{datapath_id}"
    line = "datapath id {node} does not accept this controller as its master"

    datapath_id: str
