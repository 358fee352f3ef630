"""Events of links: failures, repairs, misplaced cables, weights that follow the load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controller.switches.events import Event, SwitchEvent


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
    more = "{count} more links are down, the first of them {node}: {text}"

    reason: str


class LinkUp(LinkEvent):
    """A link carries packets again."""

    kind = "link-up"
    line = "link {node} is up"
    more = "{count} more links are up"


class LinkSuppressed(LinkEvent):
    """A link flaps, and is not used for this many seconds."""

    kind = "suppressed"
    detail = "for {seconds:.0f} s, or longer if it flaps again"
    line = "link {node} flaps and is not used {text}"
    more = "{count} more links flap and are not used"

    seconds: float


class LinkReused(LinkEvent):
    """A link no longer flaps; it is used again if it is up."""

    kind = "reused"
    line = "link {node} is stable and is used again if it is up"
    more = "{count} more links are stable and are used again"


class SwitchDrained(SwitchEvent):
    """Traffic is routed around a switch: it is disconnected, or does not hold its program."""

    kind = "drained"
    detail = "{reason}"
    line = "switch {node} {text}: traffic is routed around it"
    more = "{count} more switches are gone or not fit: traffic is routed around them"

    reason: str


class SwitchReturned(SwitchEvent):
    """A switch was read to hold its program again; traffic is routed through it."""

    kind = "back"
    line = "switch {node} is back: traffic is routed through it again"
    more = "{count} more switches are back"


class TablesRepaired(Event):
    """Switches hold tables that route around failures.

    rows, classes and switches: how many differ from the build. cut_off_pairs: pairs of switches
    without a path. computed: seconds to compute the tables. seconds: from detecting the failure
    until all switches hold the tables.
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
    more = "{count} more moves, the first of them {node}: {text}"

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
    line = more = "all cables that are seen are as planned"


@dataclass(frozen=True, slots=True)
class ClassShift:
    """The parts of 64 of an egress class that use alternates instead of its minimal port.

    parts: fewer than 0 if the minimal port has got some of theirs.
    """

    egress_class: int
    port: str
    parts: int

    @property
    def text(self) -> str:
        """The parts of 64 and the port, as text."""
        return f"{abs(self.parts)}/64 {'from' if self.parts >= 0 else 'to'} {self.port}"


class WeightsShifted(SwitchEvent):
    """Weights have followed the load: the parts of 64 of each class that now use alternates."""

    kind = "shifted"
    line = "weights moved at {node}: {text}"
    more = "weights moved {count} more times"

    shifts: tuple[ClassShift, ...]

    @property
    def text(self) -> str:
        """The parts of 64 and their port, as text."""
        return ", ".join(shift.text for shift in self.shifts)
