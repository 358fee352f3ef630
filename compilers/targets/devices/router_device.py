"""The base of devices that `push` configures: it plans lines, types, confirms and saves them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from compilers.targets.devices.device_shell import DeviceShell, HeldLock
from compilers.targets.devices.route_differences import RouteDifference

Compare = Callable[[str], Iterable[RouteDifference]]
MOST_NAMED = 3
"""How many routes, lines or switches a message names."""
PORTS_SHUT, LINES, NAMES = "ports", "lines", "names"
"""What a push may overrule: ports that somebody has shut, lines of others in the fabric's sections,
host names that are no node's."""


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """Everything that a push types on a device, in the order of the fields.

    A dry run prints it.
    """

    links: tuple[str, ...] = ()
    """Lines about interfaces: on all switches before any switch gets other routes."""
    add: tuple[str, ...] = ()
    """Other lines that add something."""
    remove: tuple[str, ...] = ()
    """Lines that take something away."""
    kept: tuple[str, ...] = ()
    """Lines of others, which stay."""
    shut: frozenset[str] = frozenset()
    """The ports that somebody has shut."""
    drained: bool = False
    """Whether the switch is drained."""
    save: tuple[str, ...] = ()
    """Lines that save, after the proof; () where a reboot leads to the running configuration
    already, or a driver of NAPALM saves with the commit."""

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines except those of `save`."""
        return (*self.links, *self.add, *self.remove)


@dataclass
class RouterDevice(ABC):
    """A router, and the rendered files that it is to have.

    All methods that ask it raise a DeviceError where it does not answer, refuses, or cannot be
    read.
    """

    shell: Any
    """Reaches it: a `DeviceShell` or a session of NAPALM."""
    files: Path
    """The folder of the rendered files."""
    etc: str
    """The folder for configuration on the device."""
    pools: tuple[str, ...]
    """The networks of the fabric's addresses."""
    vrf: str = ""
    """The VRF of hosts, "" on systems without one."""
    overrule: frozenset[str] = frozenset()
    """What of others does not stay: PORTS_SHUT, LINES."""
    bgp: bool = False
    """Whether it speaks BGP."""
    pending: str = field(default="", init=False)
    """The name of a change that is not confirmed yet."""
    held_lock: HeldLock | None = field(default=None, init=False)
    """Keeps other pushes away."""
    compares: ClassVar[bool] = True
    """Whether it shows lines as they were typed, so that a missing line is certain."""
    overrules: ClassVar[frozenset[str]] = frozenset({PORTS_SHUT})
    """The possible members of `overrule`."""
    apart: ClassVar[str] = ""
    """Why it cannot have routes of two builds at once; "" where it can."""
    driver: ClassVar[str] = ""
    """The driver of NAPALM that reaches it, "" for a shell."""

    @property
    def opens(self) -> bool:
        """Whether a push opens ports that somebody has shut."""
        return PORTS_SHUT in self.overrule

    def lock(self, owner: str) -> None:
        """Keep other pushes away until `unlock`, where a shell reaches the device.

        Args:
            owner: what another push says of this one.
        """
        if isinstance(self.shell, DeviceShell):
            self.held_lock = self.shell.lock(f"{self.etc}/polarfab", owner)

    def unlock(self) -> None:
        """Let other pushes in again."""
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
            DeviceError: they would take away something that others did.
        """

    @abstractmethod
    def type(self, lines: Sequence[str]) -> None:
        """Type lines of a plan, as a change to be confirmed."""

    @abstractmethod
    def tables(self) -> str:
        """Its routing tables, in a form that `compilers.audit.route_report` reads."""

    def save(self, lines: Sequence[str]) -> None:
        """Type the `save` of a plan."""
        self.shell.script(*lines)

    @abstractmethod
    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """The routes of others in the fabric's pools, which a push would leave.

        Args:
            tables: the device's routing tables; see `tables`.
            compare: compares such tables with those of the build.
        """

    def confirm(self) -> None:
        """Confirm the last change, which the device would take back otherwise."""
        self.pending = ""

    def undo(self) -> bool:
        """Take the last change back; False: the device cannot, or there is none."""
        self.pending = ""
        return False

    def text(self, name: str) -> str:
        """The text of a rendered file."""
        return (self.files / name).read_text()
