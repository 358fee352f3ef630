"""Events of links: failures, repairs, misplaced cables, weights that follow the load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controller.switches.events import Event, SwitchEvent


@dataclass(frozen=True, slots=True)
class LinkEvent(Event):
    """Something that happened to a link, known by the node and the port's name at both ends."""

    subject = "{switch} {port} to {far_switch} {far_port}"

    switch: str
    port: str
    far_switch: str
    far_port: str


@dataclass(frozen=True, slots=True)
class LinkDown(LinkEvent):
    """A link carries no packets: `port down` at an end, or `not seen` by discovery."""

    kind = "link-down"
    detail = "{reason}"
    line = "link {node} is down: {text}"
    more = "{count} more links are down, the first of them {node}: {text}"

    reason: str


@dataclass(frozen=True, slots=True)
class LinkUp(LinkEvent):
    """A link carries packets again."""

    kind = "link-up"
    line = "link {node} is up"
    more = "{count} more links are up"


@dataclass(frozen=True, slots=True)
class LinkSuppressed(LinkEvent):
    """A link flaps, and is not used for so many seconds."""

    kind = "suppressed"
    detail = "for {seconds:.0f} s, longer if it flaps again"
    line = "link {node} flaps and is not used {text}"
    more = "{count} more links flap and are not used"

    seconds: float


@dataclass(frozen=True, slots=True)
class LinkReused(LinkEvent):
    """A link no longer flaps, and is used again if it is up."""

    kind = "reused"
    line = "link {node} is calm and is used again, if it is up"
    more = "{count} more links are calm and are used again"


@dataclass(frozen=True, slots=True)
class SwitchDrained(SwitchEvent):
    """A switch has been gone for so many seconds, and traffic goes around it."""

    kind = "drained"
    detail = "{seconds:g} s"
    line = "switch {node} is gone for {text}: traffic goes around it"
    more = "{count} more switches are gone: traffic goes around them"

    seconds: float


@dataclass(frozen=True, slots=True)
class SwitchReturned(SwitchEvent):
    """A switch that was gone is back, and traffic passes it again."""

    kind = "back"
    line = "switch {node} is back: traffic passes it again"
    more = "{count} more switches are back"


@dataclass(frozen=True, slots=True)
class TablesRepaired(Event):
    """Switches hold tables that go around what is dead.

    rows, classes and switches are those that differ from the build; cut_off_pairs is how many pairs
    of switches have no path left; computed is how many seconds the tables took, seconds how long it
    was from the first look at the failure until all switches held them.
    """

    kind = "repaired"
    line = "tables for {node}: {text}"
    more = "tables changed {count} more times, the first for {node}: {text}"

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
        """How much is dead, in words."""
        words = f"{self.dead_links} dead link{'s' * (self.dead_links != 1)}"
        if n := self.drained_switches:
            words += f" and {n} drained switch{'es' * (n != 1)}"
        return words

    @property
    def text(self) -> str:
        """How much has changed, in words."""
        lost = f"; {self.cut_off_pairs} pairs of switches have no path left"
        return (
            f"{self.rows} rows and {self.classes} classes at {self.switches} switches differ from "
            f"the build, computed in {self.computed * 1e3:.0f} ms{lost * bool(self.cut_off_pairs)}"
            f", in place after {self.seconds * 1e3:.0f} ms"
        )


@dataclass(frozen=True, slots=True)
class CableMisplaced(Event):
    """Cables are not where the plan has them: one of the moves that restore it.

    misplaced is how many cables are wrong in all; action (swap, move, add or remove) is what to do
    with the plugs at the two ports.
    """

    kind = "miswired"
    subject = "{misplaced} cables misplaced"
    detail = "{sentence}"
    line = "miswired, {node}: {text}"
    more = "{count} more moves, the first of them {node}: {text}"

    misplaced: int
    sentence: str
    action: Literal["swap", "move", "add", "remove"]
    switch: str
    port: str
    far_switch: str
    far_port: str


@dataclass(frozen=True, slots=True)
class CablesRight(Event):
    """No cable is misplaced any more, of those that are seen."""

    kind = "wired"
    line = more = "all cables that are seen are as planned"


@dataclass(frozen=True, slots=True)
class ClassShift:
    """Parts of 64 of an egress class that go by alternates instead of its minimal port."""

    egress_class: int
    port: str
    parts: int


@dataclass(frozen=True, slots=True)
class WeightsShifted(SwitchEvent):
    """Weights follow the load: of each class, how many parts of 64 now go by alternates."""

    kind = "shifted"
    line = "weights moved at {node}: {text}"
    more = "weights moved {count} more times"

    shifts: tuple[ClassShift, ...]

    @property
    def text(self) -> str:
        """What has moved away from which port."""
        return ", ".join(f"{shift.parts}/64 from {shift.port}" for shift in self.shifts)
