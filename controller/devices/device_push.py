"""A push to routers: read, add what is missing, take away what is stale, prove, save.

Switches are done in batches. All of a batch have what is new before the first loses what is old. A
switch is saved once its own tables are those of the build: one that goes wrong is itself again
after a reboot. Nornir holds the switches and the threads.
"""

from __future__ import annotations

import shlex
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from compilers.audit.route_differences import RouteDifference
from compilers.audit.route_remediation import TYPED, typed
from compilers.audit.route_report import RouteReport
from compilers.tables.build import Build
from compilers.targets.options import Chosen
from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.target import Progress
from compilers.targets.target_lookup import target
from controller.devices.device_shell import SSH, DeviceError, DeviceShell
from controller.devices.router_device import ROUTER_DEVICES, RouterDevice
from inventory.problems import InputError, Problem, few

AT_ONCE = 20
"""Switches that are spoken to at the same time."""
PROOF_PATIENCE, PROOF_POLL = 10.0, 0.25
"""Seconds until a daemon has handed its routes on, and between two looks."""
MOST_NAMED = 3
"""Routes that a message names."""
State = Literal["as built", "to do", "pushed", "failed", "not tried"]
Task = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PushWay:
    """How a push goes about it.

    run: the words that reach a device's shell, with {node} and {address}. etc: the folder for
    configuration there, with {node}. batch: switches at a time, 0 for all. stop_on: failures after
    which no further batch begins, 0 for never. dry: read only.
    """

    run: str = SSH
    etc: str = "/etc"
    batch: int = 0
    stop_on: int = 1
    dry: bool = False

    @property
    def by_ssh(self) -> bool:
        """Whether ssh is what runs here."""
        return self.run.split()[:1] == ["ssh"]

    @property
    def names_by_ssh(self) -> bool:
        """Whether ssh is given the name of a switch that has no address."""
        words = self.run.split()
        return "ssh" in words and ("{address}" in self.run or words[-1].endswith("{node}"))


@dataclass(slots=True)
class PushedSwitch:
    """A switch, and how far it has come.

    differences: what its own tables still have other than the build.
    """

    node: str
    state: State = "not tried"
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    differences: tuple[RouteDifference, ...] = ()
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"differences": [one.as_dict() for one in self.differences]}


@dataclass(frozen=True, slots=True)
class PushReport:
    """What a push did.

    unread: in a dry run from tables, switches without a file.
    """

    target: str
    switches: tuple[PushedSwitch, ...]
    unread: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether every switch is as built; in a dry run, whether it was read."""
        return all(one.state in ("as built", "pushed", "to do") for one in self.switches)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        switches = [one.as_dict() for one in self.switches]
        return {"target": self.target, "switches": switches, "unread": list(self.unread)}


@dataclass(slots=True)
class DevicePush:
    """The push of a build to its switches.

    Args:
        build: what they are to hold.
        target: one of ROUTER_DEVICES.
        options: those that `rendered` was made with.
        rendered: the folder that it was rendered in.
        way: how.
        progress: called with (rounds on a switch done, all rounds), from several threads.
    """

    build: Build
    target: str
    options: Chosen
    rendered: Path
    way: PushWay
    progress: Progress = None
    devices: dict[str, RouterDevice] = field(default_factory=dict)
    found: dict[str, PushedSwitch] = field(default_factory=dict)
    steps: Iterator[int] = field(default_factory=lambda: count(1))

    def run(self, only: Sequence[str] = ()) -> PushReport:
        """Push to these switches, or to all.

        Raises:
            InputError: there is no such target or switch, no Nornir or ssh, or ssh would take the
                name of a switch for another address.
        """
        kind = _kind(self.target)
        pools = tuple(fabric_pools(self.build.addressing))
        w = self.build.wiring
        names = [w.names[v] for v in np.flatnonzero(self.build.topology.present).tolist()]
        if unknown := [name for name in only if name not in names]:
            required = "the name of a switch"
            raise InputError([Problem(required, repr(name), key="--node") for name in unknown])
        wanted = [name for name in names if not only or name in only]
        unreachable: list[Problem] = []
        for name, address in zip(w.names, w.management, strict=True):
            known = {"node": name, "address": address or name}
            shell = DeviceShell(tuple(_filled("--run", self.way.run, known)))
            if name in wanted and not address and self.way.names_by_ssh:
                unreachable += _shorthand(name)
            (etc,) = _filled("--etc", shlex.quote(self.way.etc), known)
            self.devices[name] = kind(shell, self.rendered / name, etc, pools)
        if unreachable:
            raise InputError(few(unreachable))
        if self.way.by_ssh and not which("ssh"):
            raise InputError.of("ssh (Debian: openssh-client)", "none")
        self.found = {name: PushedSwitch(name) for name in wanted}
        size = self.way.batch or len(wanted)
        for first in range(0, len(wanted), size):
            failed = sum(one.state == "failed" for one in self.found.values())
            if self.way.stop_on and failed >= self.way.stop_on:
                break
            self._batch(wanted[first : first + size])
        return PushReport(self.target, tuple(self.found.values()))

    @property
    def _rounds(self) -> list[Task]:
        return [self._read] if self.way.dry else [self._read, self._load, self._remove, self._end]

    def _batch(self, names: Sequence[str]) -> None:
        """Every round on all switches of the batch before the next one begins."""
        for task in self._rounds:
            left = [name for name in names if self.found[name].state != "failed"]
            self._each(left, task)

    def _each(self, names: Sequence[str], task: Task) -> None:
        """Do something on several switches; what fails there is noted."""
        from nornir.core import Nornir
        from nornir.core.inventory import Host, Hosts, Inventory
        from nornir.plugins.runners import ThreadedRunner

        if not names:
            return
        hosts = Hosts({name: Host(name=name) for name in names})
        nornir = Nornir(Inventory(hosts=hosts), runner=ThreadedRunner(num_workers=AT_ONCE))
        nornir.run(lambda one: self._try(one.host.name, task)).raise_on_error()

    def _try(self, name: str, task: Task) -> None:
        try:
            task(name)
        except (DeviceError, InputError) as error:
            self.found[name].state, self.found[name].error = "failed", str(error)
        if self.progress:
            self.progress(next(self.steps), len(self.found) * len(self._rounds))

    def _read(self, name: str) -> None:
        device, found = self.devices[name], self.found[name]
        rules = device.rules().values()
        every = [device.routes(), *rules]
        found.add = tuple(line for one in every for line in one.add)
        found.remove = tuple(line for one in every for line in one.remove)
        if shown := device.foreign():
            found.differences = tuple(one for one in self._differences(name, shown) if one.found)
        if found.differences:
            raise DeviceError(
                f"required no routes of others (protocol not 80) in the fabric's address pools, "
                f"given {_named(found.differences)}; take them away first, a push does not"
            )
        found.state = "to do" if found.add or found.remove else "as built"

    def _load(self, name: str) -> None:
        self.devices[name].load(self.devices[name].routes())

    def _remove(self, name: str) -> None:
        self.devices[name].remove(self.devices[name].routes())

    def _end(self, name: str) -> None:
        """Prove from the switch's own tables, and save."""
        found, limit = self.found[name], time.monotonic() + PROOF_PATIENCE
        while differences := self._differences(name, self.devices[name].tables()):
            if time.monotonic() > limit:
                found.differences = differences
                found.state = "failed"
                routes = f"{len(differences):,} routes are not the build's"
                found.error = f"{routes} ({_named(differences)}); it is not saved"
                return
            time.sleep(PROOF_POLL)
        self.devices[name].save()
        found.state = "pushed" if found.state == "to do" else found.state

    def _differences(self, name: str, tables: str) -> tuple[RouteDifference, ...]:
        """What tables of a switch have other than the build."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.txt"
            file.write_text(tables)
            return RouteReport.of(self.build, [file], self.target, self.options).differences


def typed_push(report: RouteReport) -> PushReport:
    """A dry run from routing tables: what a person types on each switch.

    Raises:
        InputError: the target is none that people type on.
    """
    if report.target not in TYPED:
        required = f"one of {', '.join(TYPED)}"
        raise InputError.of(required, report.target, "leave --from out", key="--target")
    by_switch: dict[str, list[RouteDifference]] = {}
    for one in report.differences:
        by_switch.setdefault(one.switch, []).append(one)
    found = []
    hosts = getattr(target(report.target), "vrf", "")
    for node, differences in by_switch.items():
        lines = typed(report.target, differences, hosts)
        found.append(PushedSwitch(node, "to do", lines.add, lines.remove, tuple(differences)))
    return PushReport(report.target, tuple(found), report.unread)


def _named(differences: Sequence[RouteDifference]) -> str:
    """The first prefixes, as a message names them."""
    names = [f"{one.prefix} in table {one.table}" for one in differences[:MOST_NAMED]]
    return ", ".join(names) + ", …" * (len(differences) > MOST_NAMED)


def _shorthand(name: str) -> Iterator[Problem]:
    """A problem if programs take this name for an IPv4 address: 0, 0x7f000001, 10.1 (inet(3))."""
    try:
        address = socket.inet_ntoa(socket.inet_aton(name))
    except OSError:
        return
    if address != name:
        required = "`management: ADDRESS` in the inventory for a node whose name is a number"
        yield Problem(required, f"none for node {name}", f"ssh takes {name} for {address}")


def _filled(option: str, template: str, known: Mapping[str, str]) -> Iterator[str]:
    """The words of a template.

    Raises:
        InputError: it has other names in braces than these, or quotes without an end.
    """
    try:
        yield from [word.format(**known) for word in shlex.split(template)]
    except (LookupError, ValueError) as error:
        required = f"words with {' and '.join(f'{{{name}}}' for name in known)} only"
        raise InputError.of(required, repr(template), str(error), key=option) from error


def _kind(target: str) -> type[RouterDevice]:
    from importlib.util import find_spec

    if target not in ROUTER_DEVICES:
        required = f"one of {', '.join(ROUTER_DEVICES)}, or --dry-run with --from FILES"
        todo = "for others, render --target ansible writes a playbook that pushes"
        raise InputError.of(required, target, todo, key="--target")
    if not find_spec("nornir"):
        raise InputError.of("Nornir", "none", "pip install 'polarfab[push]'")
    return ROUTER_DEVICES[target]
