"""Routers: what one has is read, what to type is planned, typed, confirmed, saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from compilers.targets.devices.route_differences import RouteDifference

Compare = Callable[[str], Iterable[RouteDifference]]
MOST_NAMED = 3
"""Routes, lines or switches that a message names."""
PORTS_SHUT, LINES, NAMES = "ports", "lines", "names"
"""What may be overruled: ports that are shut by hand, others' lines in the fabric's sections, host
names that are no node's."""


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """All that a push types on a device, in this order: what a dry run prints is what is typed.

    links: about interfaces, on all switches before any has another route. add: the rest that
    comes. remove: lines that take away. kept: what else others did, and what stays so. shut: the
    ports that are shut by hand. drained: whether the switch is. save: what is typed last, after the
    proof, unless a reboot leads to what runs already; drivers of NAPALM save their commits.
    """

    links: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    shut: frozenset[str] = frozenset()
    drained: bool = False
    save: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All but `save`."""
        return (*self.links, *self.add, *self.remove)


@dataclass
class RouterDevice(ABC):
    """A router and the rendered files that it is to have.

    shell: what reaches it, a shell or a session of NAPALM. etc: the folder for configuration
    there. pools: the addresses of the fabric. vrf: that of the hosts, "" on systems without one.
    overrule: what others did that does not stay: PORTS_SHUT, LINES. bgp: whether it speaks BGP.
    pending: the name of the change that is not confirmed yet.

    Whatever asks it raises a DeviceError where it does not answer, refuses, or cannot be read.
    """

    shell: Any
    files: Path
    etc: str
    pools: tuple[str, ...]
    vrf: str = ""
    overrule: frozenset[str] = frozenset()
    bgp: bool = False
    pending: str = field(default="", init=False)
    compares: ClassVar[bool] = True
    """Whether what it lacks is sure: others may show a line in another form than typed."""
    overrules: ClassVar[frozenset[str]] = frozenset({PORTS_SHUT})
    """What `overrule` may have: other systems have no lines in sections."""
    apart: ClassVar[str] = ""
    """Why it cannot have routes of two builds at once; "" where it can."""
    driver: ClassVar[str] = ""
    """The driver of NAPALM that reaches it, "" for a shell."""

    @property
    def opens(self) -> bool:
        """Whether ports that are shut by hand are opened."""
        return PORTS_SHUT in self.overrule

    @abstractmethod
    def name(self) -> str:
        """The name that it says, "" if it has none."""

    @abstractmethod
    def plan(self) -> DevicePlan:
        """What is to be typed; refused where that would take away what others did."""

    @abstractmethod
    def type(self, lines: Sequence[str]) -> None:
        """Type lines of a plan; not confirmed."""

    @abstractmethod
    def tables(self) -> str:
        """Its routing tables, as `compilers.audit.route_report` reads them."""

    def save(self, lines: Sequence[str]) -> None:
        """Type a plan's `save`."""
        self.shell.script(*lines)

    @abstractmethod
    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """The routes in the fabric's pools that a push would leave where they are.

        Args:
            tables: those of the device, see there.
            compare: tells such tables from those of the build.
        """

    def confirm(self) -> None:
        """Have the last change stay, where the device would else take it back."""
        self.pending = ""

    def undo(self) -> bool:
        """Take the last change back, where the device can; whether it was."""
        self.pending = ""
        return False

    def text(self, name: str) -> str:
        """A rendered file."""
        return (self.files / name).read_text()
