"""Events of several controllers: who leads, and what stands in a leader's way."""

from __future__ import annotations

from dataclasses import dataclass

from controller.switches.events import BuildEvent, Event


@dataclass(frozen=True, slots=True)
class LeaderEvent(Event):
    """Something that happened to this instance as the leader."""

    subject = "{instance}"

    instance: str


@dataclass(frozen=True, slots=True)
class LeaderChanged(Event):
    """Another instance leads, or nobody (an empty leader); terms only grow."""

    kind = "leader"
    detail = "{term}"
    line = "{node} leads"
    more = "{count} more leaders, the first of them {node}"

    leader: str
    term: int

    @property
    def node(self) -> str:
        """The leader's name."""
        return self.leader or "nobody"


@dataclass(frozen=True, slots=True)
class LeadershipLost(LeaderEvent):
    """The lease of this instance, which led, is over; its process starts anew."""

    kind = "deposed"
    line = more = "{node} leads no more, and starts anew"


@dataclass(frozen=True, slots=True)
class LeaderWaits(LeaderEvent):
    """The leader is this instance, and it cannot begin yet."""

    kind = "not-ready"
    detail = "{reason}"
    line = more = "{node} leads and cannot begin: {text}"

    reason: str


@dataclass(frozen=True, slots=True)
class StoreChanged(Event):
    """The store has begun to fail, or answers again (an empty trouble)."""

    kind = "store"
    line = "the store: {node}"
    more = "{count} more messages of the store"

    trouble: str

    @property
    def node(self) -> str:
        """The trouble, or that there is none."""
        return self.trouble or "answers"


@dataclass(frozen=True, slots=True)
class RoleContested(Event):
    """A switch does not take this controller as its master."""

    kind = "contested"
    subject = "{datapath_id}"
    line = "datapath id {node} does not take us as its master"
    more = "{count} more datapath ids do not take us as their master"

    datapath_id: str


@dataclass(frozen=True, slots=True)
class BuildInherited(BuildEvent):
    """The fabric holds a build of the leader before, and the folder has another one."""

    kind = "inherited"
    detail = "{folder_build}"
    line = more = "the fabric holds build {node}, not {text} of the folder; SIGHUP moves it there"

    folder_build: str
