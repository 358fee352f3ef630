"""Events of several controllers: changes of leader, and obstacles to a leader."""

from __future__ import annotations

from controller.switches.events import Event


class LeaderEvent(Event):
    """An event of this instance as the leader."""

    subject = "{instance}"

    instance: str


class LeaderChanged(Event):
    """The leader has changed; an empty leader is nobody. Terms only grow."""

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


class LeadershipLost(LeaderEvent):
    """The lease of this instance, which led, has ended; its process restarts."""

    kind = "deposed"
    line = more = "{node} no longer leads and restarts"


class LeaderWaits(LeaderEvent):
    """An instance leads but cannot begin yet."""

    kind = "not-ready"
    detail = "{reason}"
    line = more = "{node} leads but cannot begin: {text}"

    reason: str


class StoreChanged(Event):
    """The store fails, or answers again (an empty trouble)."""

    kind = "store"
    line = "the store: {node}"
    more = "{count} more messages about the store"

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
    more = "{count} more datapath ids do not accept this controller as their master"

    datapath_id: str
