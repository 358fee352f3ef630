"""Events of a running fabric, and the table of their kinds: JSON for programs, lines for people.

A part of the controller makes an event by calling its kind, as in `SwitchLeft("n1")`, and passes it
to `LiveFabric.tell`. The reporter prints events, the API serves them, and the manual lists the
kinds (`KINDS`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from time import time
from typing import Any, Generic, TypeVar

Form = str | Callable[[Mapping[str, Any]], str]
"""A template that an event's fields fill, or a function of them."""
EventForm = TypeVar("EventForm")
"""The form in which events are kept: as a record, or as a line of JSON."""
KINDS: list[Kind] = []
"""All kinds, in the order of the code."""
EVENTS_KEPT = 1000
"""Events that are kept for clients of the API."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of event. Called with a value for each field it gives an event."""

    name: str
    """The kind's name in JSON and in metrics. Clients know it, so it stays where the name in Python
    has come to say more: `status` is a `FileUnwritable`."""
    fields: str
    """The name and JSON type of each field, with semicolons between them; one without a type is
    text.
    """
    about: str
    """What has happened, for the manual."""
    line: str = ""
    """The line for people, with {node} and {text}. The reporter only counts kinds without one."""
    text: Form = ""
    """The details in the line; by default the reason."""
    node: Form = ""
    """The object in the line; by default the first field."""

    def __post_init__(self) -> None:
        KINDS.append(self)

    def __call__(self, *values: Any, at: float | None = None, **named: Any) -> Event:
        """An event at this time, by default now."""
        fields = dict(zip(self.types, values, strict=False)) | named
        if [*fields] != [*self.types] or len(values) + len(named) != len(fields):
            raise TypeError(f"{self.name}: required {', '.join(self.types)}")
        return Event(self, fields, time() if at is None else at)

    @cached_property
    def types(self) -> dict[str, str]:
        """The JSON type of each field."""
        parts = (part.split(maxsplit=1) for part in self.fields.split(";") if part)
        return {name: rest[0] if rest else "text" for name, *rest in parts}


@dataclass(frozen=True)
class Event:
    """Something that has happened. Its fields are attributes, too."""

    type: Kind
    """The kind of event."""
    fields: Mapping[str, Any]
    """The values of the fields."""
    at: float = field(compare=False)
    """When it happened, in seconds since the epoch (UTC)."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def kind(self) -> str:
        """The name of the kind."""
        return self.type.name

    @property
    def node(self) -> str:
        """The object of the event: a switch, a link, a build or an address."""
        first = next(iter(self.fields.values()), "")
        return self._filled(self.type.node) if self.type.node else str(first)

    @property
    def text(self) -> str:
        """The details as text; may be empty."""
        return (
            self._filled(self.type.text) if self.type.text else str(self.fields.get("reason", ""))
        )

    def __str__(self) -> str:
        return self.type.line.format(node=self.node, text=self.text)

    def record(self) -> dict[str, Any]:
        """The event as JSON: `event`, `at`, `node`, `text` and the fields of its kind."""
        head = {"event": self.kind, "at": round(self.at, 3), "node": self.node, "text": self.text}
        return {**head, **self.fields}

    def _filled(self, form: Form) -> str:
        """A form with the event's fields."""
        return form(self.fields) if callable(form) else form.format_map(self.fields)


class KeptEvents(Generic[EventForm]):
    """The latest events, at most `EVENTS_KEPT`, in any form.

    When there are too many, the kind that has most loses its oldest one. So a peer that causes
    thousands of one kind does not wash the others away.
    """

    def __init__(self) -> None:
        self._by_kind: dict[str, deque[tuple[int, EventForm]]] = {}
        """The events of each kind with their numbers, the oldest first, by the kind's name."""
        self._count = 0
        """How many there are."""

    def add(self, number: int, kind: str, event: EventForm) -> None:
        """Add an event.

        Args:
            number: higher than those of all earlier events.
            kind: the name of its kind.
            event: the event.
        """
        self._by_kind.setdefault(kind, deque()).append((number, event))
        self._count += 1
        if self._count > EVENTS_KEPT:
            max(self._by_kind.values(), key=len).popleft()
            self._count -= 1

    def after(self, number: int) -> list[EventForm]:
        """The events with a higher number, in order."""
        events = [
            (event_number, event)
            for events_of_kind in self._by_kind.values()
            for event_number, event in events_of_kind
            if event_number > number
        ]
        return [event for _, event in sorted(events, key=itemgetter(0))]


# Switches

SwitchConnected = Kind(
    "connected",
    "switch; datapath_id; peer",
    "A switch of the build has connected, or is read again because a build was loaded. peer: the "
    "address of the switch.",
)
SwitchProgrammed = Kind(
    "programmed",
    "switch; seconds number or null",
    "A switch holds its program. seconds: the time since it connected; null if the switch was "
    "already connected and was only read again.",
)
FAULT = (
    "switch; reason; error_type integer or null; error_code integer or null; entry; errors integer"
)
"""The fields of events of an OpenFlow error."""
ProgramRefused = Kind(
    "refused",
    FAULT,
    "A switch has refused its program and keeps its old tables. Traffic between other switches "
    "avoids it.",
    line="switch {node} refused its program and keeps what it had: {text}",
)
ProfileLowered = Kind(
    "profile",
    "switch; profile; lacks",
    "A switch lacks a feature of its OpenFlow profile, and gets the program for another profile. "
    "lacks: the feature.",
    line="switch {node} has OpenFlow profile {text}",
    text="{profile}: {lacks}",
)
ProgrammedFault = Kind(
    "error",
    FAULT,
    "A switch reports an error after it was programmed.",
    line="switch {node} reports an error after it was programmed: {text}",
)
BundleGivenUp = Kind(
    "given-up",
    "switch",
    "A busy switch has discarded a bundle because the next message of the bundle came too late. "
    "The controller sends the bundle again.",
    line="switch {node} has given up a bundle, and gets it again",
)
RowsShadowed = Kind(
    "shadowed",
    "switch; rows integer; table integer; priority integer",
    "Foreign rows take packets away from the rows of the program. rows: how many foreign rows. "
    "table, priority: those of one foreign row.",
    line="switch {node} does not forward as compiled: {text}",
    text="foreign rows over its program ({rows}), one in table {table}, priority {priority}",
)
GroupsBorrowed = Kind(
    "borrowed",
    "switch; groups integer; numbers",
    "Foreign rows send packets to groups with numbers of polarfab (1 to 2,048). The controller "
    "keeps the rows and the groups. But the next program may use the number for another group.",
    line="rows of others at switch {node} use group numbers that are ours: {text}",
    text="{numbers}",
)
DriftFound = Kind(
    "drift",
    "switch; added integer; changed integer; removed integer",
    "A switch that was in sync no longer holds its program, and gets it again. added, changed, "
    "removed: how many rows and groups were missing, were altered, or were too many.",
    line="switch {node} has drifted, and gets its program again: {text}",
    text="{added} rows and groups missing, {changed} altered, {removed} too many",
)
ProgramForgotten = Kind(
    "forgotten",
    "switch; times integer; added integer; changed integer; removed integer",
    "A switch confirms its program, but several readings in a row show that it does not hold it. "
    "Traffic between other switches avoids it until it does. times: how many readings. added, "
    "changed, removed: how many rows and groups were missing, were altered, or were too many.",
    line="switch {node} {text}; it gets no transit",
    text="confirms its program and does not keep it, as it was read {times} times in a row: "
    "{added} rows and groups missing, {changed} altered, {removed} too many",
)
SwitchLeft = Kind(
    "left", "switch", "The connection of a switch has ended.", line="switch {node} left"
)
SwitchSilent = Kind(
    "silent",
    "switch; seconds number",
    "A switch has not answered for this many seconds. The controller closes its connection.",
    line="switch {node} does not answer and is disconnected",
)
MalformedMessage = Kind(
    "malformed",
    "switch; reason",
    "A switch has sent malformed data. The controller closes its connection.",
    line="switch {node} is disconnected for malformed data: {text}",
)
DuplicateDatapath = Kind(
    "duplicate",
    "switch; datapath_id; peers list of text",
    "Two switches use the same datapath id. The switch that answers stays connected. peers: the "
    "address of this switch, and the address of the switch that is disconnected.",
    line="switch {node} {text}",
    text="connected twice under one datapath id, from {peers[0]}, which stays, and from "
    "{peers[1]}; give each switch a datapath id of its own",
)
SwitchReaddressed = Kind(
    "readdressed",
    "switch; peer; before",
    "A switch connects from another host than before. Without TLS the controller cannot tell "
    "whether it is the switch, or another machine with the datapath id of the switch. peer: its "
    "address. before: the host that the switch connected from last.",
    line="switch {node} connects from another host: {text}",
    text="{peer}, before {before}; without TLS it may be another machine",
)
UnknownDatapath = Kind(
    "unknown",
    "datapath_id; peer",
    "A switch has connected with a datapath id that is not in the build.",
    line="datapath id {node} is not in this build and gets no program",
)


# Peers that were turned away, so many times since the last report

PEER = "host; reason; times integer"
"""The fields of events about rejected peers."""


def _times(peer: Mapping[str, Any]) -> str:
    """The reason, and how often it was since the last report."""
    times = f", {peer['times']} times since" if peer["times"] > 1 else ""
    return f"{peer['reason']}{times}"


UnnamedPeer = Kind(
    "stranger",
    PEER,
    "A peer connected, but did not identify itself as an OpenFlow 1.3 switch. times: how often "
    "since the last report.",
    line="a peer on {node} did not identify itself as an OpenFlow 1.3 switch: {text}",
    text=_times,
)
PeerRejected = Kind(
    "barred",
    PEER,
    "A peer failed the TLS handshake. times: how often since the last report.",
    line="a peer on {node} failed the TLS handshake: {text}",
    text=_times,
)
PeerMisnamed = Kind(
    "misnamed",
    PEER,
    "The certificate of a peer is revoked, or does not name the switch that has the peer's "
    "datapath id.",
    line="a peer on {node} is turned away: {text}",
    text=_times,
)
TokenRefused = Kind(
    "token-refused",
    PEER,
    "A client of the API has sent a token that is not in the token file.",
    line="a client on {node} is refused: {text}",
    text=_times,
)


# The controller itself

TokensLoaded = Kind(
    "tokens",
    "file; tokens integer",
    "The token file was read again. tokens: how many tokens it has.",
    line="tokens were read again, {text} in {node}",
    text="{tokens}",
)
TokensKept = Kind(
    "tokens-kept",
    "file; reason",
    "The token file was read again, but has a mistake. The old tokens stay valid.",
    line="the tokens known stay, the file cannot be used: {text}",
)
ControllerEnded = Kind(
    "ended",
    "signal",
    "The controller ends because of this signal. The switches keep their tables.",
    line="ended by {node}; switches keep what they hold",
)
BugFound = Kind(
    "bug",
    "step; reason",
    "A step of the controller has failed because of a bug in polarfab. The controller goes on.",
    line="internal error in: {node}: {text}",
)
CertificatesLoaded = Kind(
    "certificates",
    "file",
    "TLS files have changed and are used for new connections.",
    line="new certificates are in use: {node}",
)
CertificatesKept = Kind(
    "certificates-kept",
    "file; reason",
    "TLS files have changed, but cannot be used, or are worse than the old ones. The old files "
    "stay in use.",
    line="the certificates in use stay, the new ones cannot be used: {text}",
)
CertificatesFaulty = Kind(
    "certificates-faulty",
    "file; reason",
    "The TLS files in use have a fault, because of which peers refuse the controller, or the "
    "controller refuses peers: a certificate or a revocation list has expired, is not valid yet, "
    "is of another authority, or is damaged.",
    line="the certificates in use have a fault: {text}",
)


# Builds and moves between them

FabricComplete = Kind(
    "complete",
    "build; switches integer; seconds number",
    "All switches hold their programs. seconds: the time since the first of them connected.",
)
BuildLoaded = Kind(
    "loaded",
    "build; proved",
    "A build is loaded. The controller reads the switches again, and programs them with this "
    "build. proved: what `verify` proved of the build.",
    line="build {node} is loaded; {text}",
    text="proved: {proved}",
)
BuildKept = Kind(
    "kept",
    "build; reason",
    "A new build cannot be used, or the move to it was undone. The old build stays. build: the old "
    "build.",
    line="build {node} stays, the new one cannot be used: {text}",
)
NothingLoaded = Kind(
    "nothing-loaded",
    "build; reason",
    "SIGHUP loads no build, and nothing is wrong: of several controllers, this one does not lead, "
    "or the folder of the leader has no new build. build: the build that stays.",
    line="build {node} stays, nothing is loaded: {text}",
)
RoundStarted = Kind(
    "round",
    "build; round integer; rounds integer",
    "A round of a move begins. The first round is 1.",
    line="round {node}",
    node="{round} of {rounds}",
)
MoveWaits = Kind(
    "move-waits",
    "build; waits_for; round integer; rounds integer",
    "A move has waited for more than 5 s. Its next step cannot be written down, as the disk or the "
    "store does not answer; or a switch that is absent or refuses its rows still marks packets, or "
    "gives them an intermediate, which the next step forgets; or a switch that is absent, or was "
    "not read since it returned, may hold a later round than the next step allows. Meanwhile dead "
    "links are repaired. round: the round that was begun last.",
    line="the move to build {node} waits for {text}",
    text="{waits_for} after round {round} of {rounds}; repairs go on",
)
MoveFinished = Kind(
    "moved",
    "build",
    "All connected switches hold the target build of the move. The others get it when they return.",
    line="all connected switches hold build {node}; they are read again",
)
BuildInherited = Kind(
    "inherited",
    "build; folder_build",
    "The fabric holds the build of an earlier controller, not the build in the folder of this "
    "controller.",
    line="the fabric holds build {node}, the folder {text}",
    text="{folder_build}",
)
FolderFollowed = Kind(
    "folder-followed",
    "build; before",
    "A build was put into the controller's folder while no controller ran. The fabric moves to it. "
    "before: the build that the fabric holds.",
    line="the fabric moves to build {node} of the folder, from build {text}",
    text="{before}",
)
JournalDamaged = Kind(
    "journal-damaged",
    "file; reason",
    "The journal cannot be read, or differs from its digest. The controller asks the switches "
    "which build they hold, and then renames the journal. A trial and drains end.",
    line="{node} is damaged ({text}); switches are read, nothing is changed",
)
HistoryDamaged = Kind(
    "history-damaged",
    "file; reason",
    "The list of the builds that the fabric held cannot be read. The controller removes no build "
    "that is kept, renames the list, and begins another one.",
    line="{node} cannot be read ({text}); all builds that are kept stay",
)
CopyDamaged = Kind(
    "copy-damaged",
    "file; reason",
    "The history had a damaged copy of a build that the fabric holds or moves to. The controller "
    "has written the copy again. Check the disk.",
    line="{node} was damaged ({text}); the copy of this build is written again",
)
BuildSurveyed = Kind(
    "surveyed",
    "build; switches integer; read integer",
    "The controller has asked the switches which build they hold, and takes this build for the "
    "build of the fabric. read: how many switches answered. switches: how many of these hold it.",
    line="the fabric has build {node}: {text}",
    text="{switches} of {read} switches hold it",
)


def _requested(change: Mapping[str, Any]) -> str:
    """What was requested, and the role and address of the client if it was one."""
    client = f"{change['role']} {change['address']}".strip()
    parts = change["action"], change["what"], f"({client})" if client else ""
    return " ".join(filter(None, parts))


ActionTaken = Kind(
    "action",
    "who; role; address; action; what; outcome",
    "A client requested a change. outcome: `asked`, or the reason why the change was refused.",
    line="{node}: {text}",
    text=lambda event: f"{_requested(event)}: {event['outcome']}",
)
TrialOver = Kind(
    "unconfirmed",
    "build; before",
    "Nobody confirmed a build on trial, so the fabric moves back. before: the build to which it "
    "moves back.",
    line="build {node} was not confirmed: the fabric goes back to build {text}",
    text="{before}",
)
ReturnRefused = Kind(
    "cannot-return",
    "build; before; reason",
    "Nobody confirmed a build on trial, but the fabric cannot move back to the build before. The "
    "controller tries again every 30 s, and tells only a new reason. build: the build on trial, "
    "which stays meanwhile. before: the build to which the fabric cannot move back.",
    line="build {node} was not confirmed, but stays: the fabric cannot go back to {text}",
    text="build {before}: {reason}",
)
ApiOpened = Kind(
    "api",
    "url; access",
    "The controller serves the management API and the status page. access: what clients may do.",
    line="API and status page at {node}: {text}",
    text="{access}",
)
ApiClosed = Kind(
    "api-closed",
    "address; reason",
    "The management API cannot be served at its default address. The controller runs without the "
    "API.",
    line="no API at {node}: {text}",
)
ApiRestarted = Kind(
    "api-restarted",
    "reason; seconds number",
    "The process that serves the management API has ended. The controller starts it again after "
    "this many seconds. Repairs do not wait for it.",
    line="the process of the API has ended ({text}); it is started again in {node} s",
    text="{reason}",
    node="{seconds:.0f}",
)
FileUnwritable = Kind(
    "status",
    "file; reason",
    "A file or folder of the controller cannot be written.",
    line="cannot write {node}: {text}",
)


# Links and what traffic avoids

LINK, ENDS = "switch; port; far_switch; far_port", "{switch} {port} to {far_switch} {far_port}"
"""The fields that name a link, and the link in a line."""
LinkDown = Kind(
    "link-down",
    f"{LINK}; reason",
    "Traffic avoids a link. reason: `port down` if the port at one end is down, `port set to` and "
    "what it is set to if that port drops packets, `not seen` if LLDP frames do not pass the link "
    "or the cable leads elsewhere, `drained` if the link is drained by request.",
    line="link {node} is down: {text}",
    node=ENDS,
)
LinkUp = Kind("link-up", LINK, "A link carries packets again.", line="link {node} is up", node=ENDS)
LinkSuppressed = Kind(
    "suppressed",
    f"{LINK}; seconds number",
    "A link goes down and up again too often, so traffic avoids it for this many seconds.",
    line="link {node} flaps and is not used {text}",
    text="for {seconds:.0f} s, or longer if it flaps again",
    node=ENDS,
)
LinkReused = Kind(
    "reused",
    LINK,
    "A suppressed link has been stable for long enough. Traffic uses it again if it is up.",
    line="link {node} is stable and is used again if it is up",
    node=ENDS,
)
SwitchDrained = Kind(
    "drained",
    "switch; reason",
    "Traffic is routed around a switch, because the switch is disconnected, does not hold its "
    "program, flaps, or is drained by request.",
    line="switch {node} {text}: traffic is routed around it",
)
SwitchReturned = Kind(
    "back",
    "switch",
    "A switch is not avoided any more: the controller has read that it holds its program, and it "
    "neither flaps nor is drained by request. Traffic is routed through it again.",
    line="switch {node} is back: traffic is routed through it again",
)


def _failures(repair: Mapping[str, Any]) -> str:
    """How many links and switches tables lead around."""
    links, switches = repair["dead_links"], repair["drained_switches"]
    words = f"{links} dead {'link' if links == 1 else 'links'}"
    if not switches:
        return words
    return f"{words} and {switches} drained {'switch' if switches == 1 else 'switches'}"


def _extent(repair: Mapping[str, Any]) -> str:
    """How much of the tables differs from the build, and how long that took."""
    lost = (
        "; {cut_off_pairs} pairs of switches have no path left" if repair["cut_off_pairs"] else ""
    )
    return (
        "{rows} rows and {classes} classes at {switches} switches differ from the build, "
        f"computed in {repair['computed'] * 1e3:.0f} ms{lost}, "
        f"in place after {repair['seconds'] * 1e3:.0f} ms"
    ).format_map(repair)


TablesRepaired = Kind(
    "repaired",
    "dead_links integer; drained_switches integer; rows integer; classes integer; "
    "switches integer; cut_off_pairs integer; computed number; seconds number",
    "The switches hold tables that route around the present failures. rows, classes, switches: how "
    "many differ from the build. cut_off_pairs: how many pairs of switches have no path. computed: "
    "seconds to compute the tables. seconds: the time from the detection of the failure until all "
    "switches hold the tables.",
    line="tables for {node}: {text}",
    text=_extent,
    node=_failures,
)
SwitchesKept = Kind(
    "not-drained",
    "switches integer; sentence",
    "Some switches are disconnected, flap, do not hold their program, or are drained by request. "
    "But traffic still goes through them, because without them other switches would have no path. "
    "They may still forward packets. switches: how many.",
    line="{node} cannot be drained: {text}",
    text="without {sentence}, other switches would have no path",
    node=lambda event: f"{event['switches']} {'switch' if event['switches'] == 1 else 'switches'}",
)
ChangeWaits = Kind(
    "change-waits",
    "switches integer; sentence",
    "A change of tables waits: something that forwards is to be avoided, or something is back. "
    "Switches that traffic goes through are disconnected, or not read yet. They could not follow "
    "the change, so packets could loop. It is made once they are read, or drained. switches: how "
    "many.",
    line="a change of tables waits for {node}: {text}",
    text="{sentence} cannot follow it before they are connected and read",
    node=lambda event: f"{event['switches']} {'switch' if event['switches'] == 1 else 'switches'}",
)
LinksKept = Kind(
    "not-suppressed",
    "links integer; sentence",
    "Some links go down and up again too often, are drained by request, or were down before a "
    "restart and may be up again. But traffic uses them whenever they are up, because without them "
    "switches would have no path to others. links: how many.",
    line="{node} cannot be avoided: {text}",
    text="without {sentence}, switches would have no path to others",
    node=lambda event: f"{event['links']} {'link' if event['links'] == 1 else 'links'}",
)
LinksDoubtful = Kind(
    "doubtful",
    "links integer; sentence",
    "LLDP frames are missing on some links. The links stay in use, because it is not certain that "
    "they are dead: many links fell silent at once, one end sees none of its links, or packets "
    "still arrive. links: how many.",
    line="{node} missed by discovery, and in use all the same: {text}",
    text="{sentence}",
    node=lambda event: f"{event['links']} {'link' if event['links'] == 1 else 'links'}",
)
LinksCertain = Kind(
    "certain",
    "",
    "No link is doubtful any more. On each link LLDP frames arrive again, or the link is known to "
    "be dead.",
    line="no link is doubtful any more",
)
CableMisplaced = Kind(
    "miswired",
    f"misplaced integer; sentence; action; {LINK}",
    "Cables are not as planned. Each event has one step that helps to restore the plan. misplaced: "
    "the number of wrong cables in all. action: swap, move, add or remove the plugs at the two "
    "ports.",
    line="miswired, {node}: {text}",
    text="{sentence}",
    node="{misplaced} cables misplaced",
)
CablesRight = Kind(
    "wired",
    "",
    "All cables that the controller sees are as planned again.",
    line="all cables that are seen are as planned",
)


# Several controllers

LeaderChanged = Kind(
    "leader",
    "leader; term integer",
    "Another controller leads now. leader: its name; empty if none leads. term: a number that "
    "grows with each new leader.",
    line="{node} leads",
    text="{term}",
    node=lambda event: event["leader"] or "nobody",
)
LeadershipLost = Kind(
    "deposed",
    "instance",
    "This controller was the leader, but its lease has ended. Its process restarts.",
    line="{node} no longer leads and restarts",
)
LeaderWaits = Kind(
    "not-ready",
    "instance; reason",
    "A controller is the leader, but cannot begin yet.",
    line="{node} leads but cannot begin: {text}",
)
StoreChanged = Kind(
    "store",
    "trouble",
    "The store fails, or answers again. Until it does, each fault is reported once, and at most "
    "four. trouble: what fails; empty if the store answers again.",
    line="the store: {node}",
    node=lambda event: event["trouble"] or "answers",
)
JournalRetired = Kind(
    "journal-retired",
    "file; reason",
    "The folder has a journal of a time in which the controller ran without a store. The "
    "controller has renamed it, and does not read it again. file: its new name. reason: whether "
    "the store got what the journal says.",
    line="the journal of a time without a store is called {node} now: {text}",
)
RoleContested = Kind(
    "contested",
    "datapath_id",
    "A switch does not accept this controller as its master.",
    line="datapath id {node} does not accept this controller as its master",
)

OF_A_SWITCH = (
    SwitchConnected,
    SwitchProgrammed,
    ProgramRefused,
    DriftFound,
    ProgramForgotten,
    SwitchLeft,
)
"""The kinds of events that put a switch into another state."""
OF_A_LINK = (LinkDown, LinkUp)
"""The kinds of events that say whether a link is down, and why. A link that flaps may be down or
up while traffic avoids it."""
