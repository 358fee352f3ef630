"""The base class of devices that `push` configures.

A push (`controller.devices`) asks each device for a `DevicePlan`, the lines to type. Then it has
the device type them, reads the routing tables, and confirms and saves the change, or undoes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from compilers.targets.devices.device_shell import DeviceShell, HeldLock
from compilers.targets.devices.route_differences import RouteDifference

Compare = Callable[[str], Iterable[RouteDifference]]
"""Compares routing tables, as a device prints them, with those of the build."""
MOST_NAMED = 3
"""How many routes, lines or switches a message names."""
PORTS_SHUT = "ports"
"""Users may let a push overrule ports that somebody has shut: it opens them."""
LINES = "lines"
"""Users may let a push overrule lines of others in the fabric's sections: it removes them."""
NAMES = "names"
"""Users may let a push overrule host names that are no node's: it configures these devices."""


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """Everything that a push types on a device, in the order of the fields; a dry run prints it."""

    links: tuple[str, ...] = ()
    """Lines about interfaces, which all switches get before any gets other routes."""
    add: tuple[str, ...] = ()
    """Other lines that add something."""
    remove: tuple[str, ...] = ()
    """Lines that take something away."""
    kept: tuple[str, ...] = ()
    """Lines of others in sections of the fabric, which stay."""
    shut: frozenset[str] = frozenset()
    """The names of ports that somebody has shut, and that stay shut."""
    drained: bool = False
    """Whether the switch is drained."""
    save: tuple[str, ...] = ()
    """Lines that save the running configuration. They are typed once the routing tables are right.
    () where it is saved already, or a driver of NAPALM saves it with the commit."""

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines except those of `save`."""
        return (*self.links, *self.add, *self.remove)


@dataclass
class RouterDevice(ABC):
    """A router, and the rendered files that it is to have.

    Methods that talk to the device raise a DeviceError if it does not answer, refuses, or prints
    what cannot be read. A push calls them in this order:

    - `lock`, then `plan`, which changes nothing;
    - `type`, after which a change is `pending`. Systems with a timer take it back by themselves;
    - `tables`, to prove the change, then `confirm` or `undo`, after which none is pending;
    - `save`, then `unlock`.
    """

    shell: Any
    """What reaches the device: a `DeviceShell` or a session of NAPALM."""
    files: Path
    """The folder of the rendered files."""
    etc: str
    """The folder for configuration on the device, such as `/etc`."""
    pools: tuple[str, ...]
    """The networks of the fabric's addresses."""
    vrf: str = ""
    """The VRF of hosts, "" on systems without one."""
    overrule: frozenset[str] = frozenset()
    """What this push overrules: PORTS_SHUT, LINES, NAMES."""
    bgp: bool = False
    """Whether the router speaks BGP."""
    pending: str = field(default="", init=False)
    """The name of a change that is not confirmed yet; "" for none."""
    held_lock: HeldLock | None = field(default=None, init=False)
    """The lock that keeps other pushes away; None where none is held."""
    shows_typed_lines: ClassVar[bool] = True
    """Whether the device shows lines as they were typed. Then a line that it does not show is
    missing."""
    can_overrule: ClassVar[frozenset[str]] = frozenset({PORTS_SHUT})
    """The possible members of `overrule`."""
    no_mix_reason: ClassVar[str] = ""
    """Why the device cannot have routes of two builds at once; "" where it can."""
    driver: ClassVar[str] = ""
    """The driver of NAPALM that reaches the device; "" for a shell."""

    @property
    def opens_ports(self) -> bool:
        """Whether a push opens ports that somebody has shut."""
        return PORTS_SHUT in self.overrule

    @property
    def restart_patience(self) -> float:
        """The most seconds until routes are back where a push restarts BGP; 0 where it does not."""
        return 0.0

    def restart_reason(self) -> str:
        """Why a push restarts what routes packets here, and so loses some; "" where it does not.

        It is asked before a push in rounds, which loses none.
        """
        return ""

    def lock(self, owner: str) -> None:
        """Keep other pushes away until `unlock`, where a shell reaches the device.

        Args:
            owner: the text that another push prints about this one.
        """
        if isinstance(self.shell, DeviceShell):
            self.held_lock = self.shell.lock(f"{self.etc}/polarfab", owner)

    def unlock(self) -> None:
        """Release the lock, so that other pushes may run."""
        if self.held_lock:
            self.held_lock.release()
        self.held_lock = None

    @abstractmethod
    def name(self) -> str:
        """The device's own host name, "" where it has none."""

    @abstractmethod
    def plan(self) -> DevicePlan:
        """The lines to type.

        Raises:
            DeviceError: they would undo a change that others made.
        """

    @abstractmethod
    def type(self, lines: Sequence[str]) -> None:
        """Type lines of a plan, as a change that has to be confirmed."""

    @abstractmethod
    def tables(self) -> str:
        """The routing tables as the device prints them, for `compilers.audit.route_report`."""

    def save(self, lines: Sequence[str]) -> None:
        """Type the lines of a plan that save (`DevicePlan.save`)."""
        self.shell.script(*lines)

    @abstractmethod
    def foreign_routes(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """The routes in the fabric's pools that are of others, and that a push does not remove.

        Args:
            tables: the routing tables of the device; see `tables`.
            compare: compares them with those of the build.
        """

    def confirm(self) -> None:
        """Confirm the last change, so that the device does not take it back."""
        self.pending = ""

    def undo(self) -> bool:
        """Take the last change back; False: the device cannot, or there is no change."""
        self.pending = ""
        return False

    def text(self, name: str) -> str:
        """The text of a rendered file."""
        return (self.files / name).read_text()
