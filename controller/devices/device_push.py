"""A push to routers: read, add what is missing, take away what is stale, prove, save.

Switches are done in batches. All of a batch have what is new before the first loses what is old.
From a known build all switches go together, in the rounds that `plan` proves: each is done when
the tables of every switch say so. A switch is saved once its own tables are those of the build: one
that goes wrong takes the last change back, or is itself again after a reboot. What is typed is the
plan that was made when the switch was read; one that has nothing to do is read only.
"""

from __future__ import annotations

import os
import shlex
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from getpass import getuser
from importlib.util import find_spec
from ipaddress import ip_network
from itertools import count, product
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np

from compilers.audit.route_differences import RouteDifference
from compilers.audit.route_lines import Remediation, remediation
from compilers.audit.route_report import SwitchRoutes
from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.tables.build import Build
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.control_plane import ROUTING, weighs
from compilers.targets.routed.p2p_links import P2pTarget
from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.system_names import SystemNames, hostname
from compilers.targets.target import Progress
from compilers.targets.target_lookup import target
from controller.devices.configured_device import ConfiguredDevice
from controller.devices.device_shell import SSH, DeviceError, DeviceShell
from controller.devices.frr_device import FrrDevice
from controller.devices.napalm_device import EosDevice, JunosDevice, NapalmSession, NxosDevice
from controller.devices.network_linux import SonicDevice
from controller.devices.push_report import MOST_NAMED, PushedSwitch, PushReport, named
from controller.devices.push_rounds import BEFORE, PushRounds
from controller.devices.router_device import NAMES, DevicePlan, LinuxDevice, RouterDevice
from inventory.problems import InputError, Problem, few, install_extra
from inventory.route_tables.held_routes import DISCARD, MAIN, Choices, RouteTables

AROUND = "go around what is shut or drained"
VARIABLE = "POLARFAB_PASSWORD"
"""The environment variable with the password for NAPALM's drivers."""
AT_ONCE = 20
"""Switches that are spoken to at the same time."""
PROOF_PATIENCE, PROOF_POLL = 10.0, 0.25
"""Seconds until a daemon has handed its routes on, and between two looks."""
MOST_FAILED = 1
"""The failures after which a push in rounds ends: the next round needs every switch of this one."""
ROUTER_DEVICES: dict[str, type[RouterDevice]] = {
    "frr": FrrDevice,
    "linux": LinuxDevice,
    "sonic": SonicDevice,
    "eos": EosDevice,
    "nxos": NxosDevice,
    "junos": JunosDevice,
}
"""The systems that a push can configure, by target."""
Task = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PushSettings:
    """How a push goes about it.

    run: the words that reach a device's shell, with {node} and {address}. etc: the folder for
    configuration there, with {node}. batch: switches at a time, 0 for one and then the others.
    stop_on: failures after which no switch begins a change, 0 for never. dry: read only.
    overrule: what others did that does not stay, PORTS_SHUT, LINES or NAMES, which are host names
    that are none of the fabric's. options: of NAPALM's drivers, `username` with them; the password
    is in the environment variable VARIABLE.
    """

    run: str = SSH
    etc: str = "/etc"
    batch: int = 0
    stop_on: int = 1
    dry: bool = False
    overrule: frozenset[str] = frozenset()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def names_by_ssh(self) -> bool:
        """Whether ssh is given the name of a switch that has no address."""
        words = self.run.split()
        return "ssh" in words and ("{address}" in self.run or words[-1].endswith("{node}"))


@dataclass(slots=True)
class DevicePush:
    """The push of a build to its switches.

    Args:
        build: what they are to hold.
        target: one of ROUTER_DEVICES.
        options: those that `rendered` was made with.
        rendered: the folder that it was rendered in.
        settings: how.
        progress: called with (rounds on a switch done, all rounds), from several threads.
        old: the build that they hold now and the folder that it was rendered in, if that is known.
    """

    build: Build
    target: str
    options: Chosen
    rendered: Path
    settings: PushSettings
    progress: Progress = None
    old: tuple[Build, Path] | None = None
    devices: dict[str, RouterDevice] = field(default_factory=dict)
    found: dict[str, PushedSwitch] = field(default_factory=dict)
    plans: dict[str, DevicePlan] = field(default_factory=dict)
    steps: Iterator[int] = field(default_factory=lambda: count(1))
    rounds: PushRounds | None = None
    standing: dict[str, int] = field(default_factory=dict)
    ports: dict[str, frozenset[str]] = field(default_factory=dict)
    shut: set[tuple[str, str]] = field(default_factory=set)
    drained: bool = False
    named: Build | None = None
    converges: bool = False
    pools: tuple[str, ...] = ()
    names: SystemNames | None = None
    chosen: Chosen = field(default_factory=dict)
    outcome: tuple[frozenset[tuple[str, str]], Mapping[str, Mapping[str, frozenset[str]]]] = (
        frozenset(),
        {},
    )
    wanted: Callable[[int], RouteTables] | None = None
    over: bool = False
    busy: dict[str, Lock] = field(default_factory=dict)

    def run(self, only: Sequence[str] = ()) -> PushReport:
        """Push to these switches, or to all; Ctrl-C has what was begun end, and begins no more.

        Raises:
            InputError: there is no such target or switch, no NAPALM or ssh, or ssh would take the
                name of a switch for another address; or the move from the old build has no rounds.
        """
        kind, system = device_kind(self.target), target(self.target)
        known = sorted({*kind.overrules, NAMES})
        if none := sorted(self.settings.overrule.difference(known)):
            todo = f"target {self.target} keeps what others set there: take it away by hand"
            raise InputError.of(", ".join(known), none[0], todo, key="overrule")
        if self.build.marks and isinstance(system, P2pTarget):
            required = "another balance: push configures no VRF for each link"
            todo = "load the rendered files (docs/how-to/push.md#ansible)"
            raise InputError.of(required, self.build.balance, todo, key="routing.balance")
        builds = (self.build, *(self.old or ())[:1])
        pools = [pool for build in builds for pool in fabric_pools(build.addressing)]
        self.pools = tuple(dict.fromkeys(pools))
        w, self.names = self.build.wiring, system.names(self.build)
        names = [w.names[v] for v in np.flatnonzero(self.build.topology.present).tolist()]
        if unknown := [name for name in only if name not in names]:
            required = "the name of a switch"
            raise InputError([Problem(required, repr(name), key="node") for name in unknown])
        wanted = [name for name in names if not only or name in only]
        self._reach(kind, wanted, getattr(system, "vrf", ""))
        self.named, self.chosen = build, chosen = system.check(self.build, self.options)
        self.wanted = system.routes_held(build, chosen)
        self.converges = chosen.get(ROUTING) == "bgp"
        if self.old:
            if only:
                raise InputError.of("all switches with `from`", f"{len(only)}", key="node")
            self.rounds = PushRounds.of(system, *self.old, build, chosen)
        self.found = {name: PushedSwitch(name) for name in wanted}
        self.busy = {name: Lock() for name in wanted}
        interrupted = False
        try:
            for task, batch in self._order(wanted):
                if self._stopped():
                    break
                self._each(batch, task)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._settle()
        return PushReport(self.target, tuple(self.found.values()), interrupted=interrupted)

    def _order(self, wanted: Sequence[str]) -> Iterator[tuple[Task, Sequence[str]]]:
        """Who does what next. In rounds all do one before the next one begins.

        With BGP all are read: a port that is shut anywhere moves paths of others, which are proved.
        Without batches all are read, and where packets are marked all have the devices for them.
        Then one switch goes first: one that carries packets of the fabric on all its ports. The
        others go together: neighbours of switches that carry none may have no link yet.
        """
        size = self.settings.batch or len(wanted)
        batches = [wanted[first : first + size] for first in range(0, len(wanted), size)]
        if self.settings.dry or self.settings.batch or self.rounds:
            tasks = self._tasks
            together = len(tasks) if self.rounds else int(self.converges)
            yield from product(tasks[:together], batches)
            yield from ((task, names) for names in batches for task in tasks[together:])
            return
        *early, load, finish = self._tasks
        yield from ((task, wanted) for task in early)
        alone = next((name for name in wanted if self._carries(name)), None)
        first = [alone] if alone else []
        for names in (first, [name for name in wanted if name != alone]):
            yield from ((task, names) for task in (load, finish))

    def _carries(self, name: str) -> bool:
        """Whether a switch to which something is to do has routes over every port of the build."""
        to_do = self.found[name].state == "to do"
        return to_do and _ports(self._routes(name).values()) <= self.ports.get(name, frozenset())

    def _settle(self) -> None:
        """Begin nothing more, wait for what was begun, take back what is unconfirmed, close."""
        self.over = True
        for name in self.found:
            with self.busy[name]:
                if self.devices[name].pending:
                    self._failed(name, "the push ended before the last change was confirmed")
                if isinstance(session := self.devices[name].shell, NapalmSession):
                    session.close()

    def _failed(self, name: str, reason: str) -> None:
        """Note it, and take the last change back; else the device does, if it has a timer."""
        found, device = self.found[name], self.devices[name]
        found.state, found.error = "failed", reason
        pending = device.pending
        try:
            device.undo()
            found.error += "; the last change is taken back" * bool(pending)
        except DeviceError as error:
            found.error += f"; the change {pending} is not taken back from here: {error}"
            device.pending = ""

    def _reach(self, kind: type[RouterDevice], wanted: Sequence[str], vrf: str) -> None:
        """The devices, and whether anything reaches them."""
        unreachable: list[Problem] = []
        w = self.build.wiring
        for name, address in zip(w.names, w.management, strict=True):
            known = {"node": name, "address": address or name}
            shell = self._shell(kind, known)
            if name in wanted and not address and (kind.driver or self.settings.names_by_ssh):
                unreachable += _shorthand(name)
            (etc,) = _filled("etc", shlex.quote(self.settings.etc), known)
            files = self.rendered / name
            self.devices[name] = kind(shell, files, etc, self.pools, vrf, self.settings.overrule)
        if unreachable:
            raise InputError(few(unreachable))
        program = next(iter(shlex.split(self.settings.run)), "")
        if not kind.driver and not which(program):
            debian = " (Debian: openssh-client)" * (program == "ssh")
            raise InputError.of(f"{program or 'a program'}{debian}", "none", key="run")

    def _shell(self, kind: type[RouterDevice], known: Mapping[str, str]) -> Any:
        """What reaches a device."""
        words = tuple(_filled("run", self.settings.run, known))
        if not kind.driver:
            return DeviceShell(words)
        options = dict(self.settings.options)
        user, password = options.pop("username", getuser()), os.environ.get(VARIABLE, "")
        return NapalmSession(kind.driver, known["address"], user, password, options)

    @property
    def _tasks(self) -> list[Task]:
        if self.settings.dry:
            return [self._read]
        if self.rounds:
            steps = [partial(self._step, number) for number in range(1, self.rounds.last + 1)]
            return [self._read, self._prepare, *steps, self._end]
        early = [self._read, *[self._mark] * (self.build.marks)]
        return [*early, self._load, self._finish]

    def _stopped(self) -> bool:
        most = MOST_FAILED if self.rounds and not self.settings.dry else self.settings.stop_on
        failed = sum(one.state == "failed" for one in self.found.values())
        return bool(most) and failed >= most

    def _each(self, names: Sequence[str], task: Task) -> None:
        """Do something on several switches; what fails there is noted."""
        left = [name for name in names if self.found[name].state != "failed"]
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(lambda name: self._try(name, task), left))

    def _try(self, name: str, task: Task) -> None:
        with self.busy[name]:
            if self.over or (task != self._read and self._stopped()):
                return
            try:
                task(name)
            except (DeviceError, InputError) as error:
                self._failed(name, str(error))
            except (ValueError, LookupError) as error:
                self._failed(name, f"an answer that cannot be read: {error}")
        if self.progress:
            self.progress(next(self.steps), len(self.found) * len(self._tasks))

    def _read(self, name: str) -> None:
        device, found = self.devices[name], self.found[name]
        self._known(name)
        if lost := device.lost():
            given = f"{'; '.join(lost[:MOST_NAMED])}{'; …' * (len(lost) > MOST_NAMED)}"
            required = "no configuration of others that the saved files replace"
            raise DeviceError(f"required {required}, given {given}; take it away first")
        self.plans[name] = plan = device.plan()
        found.add, found.remove, found.kept = plan.add, plan.remove, plan.kept
        self._note_shut(name, plan.shut)
        self.drained |= plan.drained
        compare = cache(partial(self._differences, name, self._routes(name)))
        tables = device.tables()
        if tables.strip():
            # Those that cannot be read prove nothing: better seen before anything is changed.
            self.ports[name] = _held_ports(self._routes(name), compare(tables))
            found.differences = tuple(device.foreign(tables, compare))
        if found.differences:
            raise DeviceError(
                f"required no routes of others ({device.others}) in the fabric's address pools, "
                f"given {named(found.differences)}; take them away first, a push does not"
            )
        if self.rounds:
            self._stand(name)
        found.state = "to do" if plan else "as built"

    def _note_shut(self, name: str, ports: frozenset[str]) -> None:
        """Nothing is expected over ports that stay shut, at both ends of their cables."""
        w, vertex = (self.named or self.build).wiring, self._vertex(name)
        self.shut |= {(name, port) for port in ports}
        columns = (column[vertex].tolist() for column in (w.port, w.far, w.far_port))
        for port, far, far_port in zip(*columns, strict=True):
            if far >= 0 and w.port_name(vertex, port) in ports:
                self.shut.add((w.names[far], w.port_name(far, far_port)))

    def _known(self, name: str) -> None:
        """Whether the switch that answers is the one of that name.

        Raises:
            DeviceError: it says that it is another one.
        """
        names = self.devices[name].names()
        for said in filter(None, names):
            vertex = self.names.vertex(said) if self.names else None
            if vertex == self._vertex(name):
                continue
            if vertex is not None:
                node = self.build.wiring.names[vertex]
                todo = "`management` of the inventory leads to another switch"
                raise DeviceError(f"required the switch {name}, given {node}; {todo}")
            if said == names.given and NAMES not in self.settings.overrule:
                todo = "if this is the switch, push with `overrule names`"
                raise DeviceError(f"required the host name {hostname(name)}, given {said}; {todo}")

    def _stand(self, name: str) -> None:
        """See after which round a switch has the routes that it has."""
        device = self.devices[name]
        if not self.rounds or not isinstance(device, ConfiguredDevice):
            return
        after = self.rounds.lines(device, self._vertex(name))
        there = device.lines(device.running())
        for number in range(self.rounds.last, BEFORE - 1, -1):
            if not remediation(there, after(number)):
                self.standing[name] = number
                return
        required = "the routes of the build before, or of a round from it to this one"
        given = f"{len(there):,} static routes of the fabric that are neither"
        raise DeviceError(f"required {required}, given {given}; push without `from`")

    def _mark(self, name: str) -> None:
        device = self.devices[name]
        if isinstance(device, LinuxDevice):
            self.plans[name] = device.load_marked(self.plans[name])

    def _load(self, name: str) -> None:
        if self.plans[name]:
            self._add(name, self.plans[name], self._routes(name))

    def _add(self, name: str, plan: DevicePlan, wanted: RouteTables) -> None:
        """Have a switch what it lacks; it stays once routes over ports that had some are there.

        Others wait for the end: what is behind a new port may not be configured yet.
        """
        device = self.devices[name]
        device.load(plan)
        ports = frozenset() if self.converges else self.ports.get(name, frozenset())
        self._prove(name, wanted, lambda one: _lacks(one, ports))
        device.confirm()

    def _finish(self, name: str) -> None:
        """Proved and saved at once: others may take their time."""
        if self.plans[name]:
            self.devices[name].remove(self.plans[name])
        self._end(name)

    def _prepare(self, name: str) -> None:
        """Round 0: interfaces, and routes that no packet takes yet."""
        self._to(name, 0, whole=True)

    def _step(self, number: int, name: str) -> None:
        self._to(name, number)

    def _to(self, name: str, number: int, whole: bool = False) -> None:
        """Have a switch the routes of a round, unless it is further."""
        device, rounds = self.devices[name], self.rounds
        if not rounds or not isinstance(device, ConfiguredDevice):
            return
        standing, vertex = self.standing[name], self._vertex(name)
        lines = rounds.lines(device, vertex)(max(number, standing))
        change: DevicePlan | Remediation
        if whole:
            change = plan = device.plan(lines)
            if plan:
                self._add(name, plan, rounds.tables(vertex, max(number, standing)))
                device.remove(plan)
        else:
            change = device.lacking(lines)
            if standing < number:
                device.change((*change.add, *change.remove))
        # Nothing else is committed before this is confirmed, also where only lines were removed.
        due = standing < number < rounds.last and (whole or change)
        if device.pending or due:
            self._prove(name, rounds.tables(vertex, max(number, standing)))
            device.confirm()

    def _end(self, name: str) -> None:
        """Prove from the switch's own tables, and save; then nothing is left to do."""
        found, device = self.found[name], self.devices[name]
        if elsewhere := self._prove(name, self._routes(name)):
            proved = sum(self._predicted(one) is not None for one in elsewhere)
            how = f": {proved:,} proved, {len(elsewhere) - proved:,} not" * self.converges
            found.kept = (*found.kept, f"{len(elsewhere):,} routes {AROUND}{how}")
        if found.state == "as built":
            return
        device.confirm()
        device.save(self.plans[name])
        if left := device.plan():
            lines = [*left.add, *left.remove]
            more = f" and {len(lines) - 1:,} more" * (len(lines) > 1)
            said = f"it has not taken {' '.join(lines[0].split())}{more}"
            if device.compares:
                raise DeviceError(said)
            found.kept = (*found.kept, f"{said}, or shows it in another form")
        found.state = "pushed"

    def _prove(
        self, name: str, wanted: RouteTables, wrong: Callable[[RouteDifference], bool] | None = None
    ) -> list[RouteDifference]:
        """Wait until a switch's own tables are these, or differ in nothing that is wrong.

        Returns the routes that go around what is shut or drained.

        Raises:
            DeviceError: they are not.
        """
        limit = time.monotonic() + PROOF_PATIENCE
        shut = {port for node, port in self.shut if node == name}
        while True:
            every = self._differences(name, wanted, self.devices[name].tables())
            differing = [one for one in every if not self._excused(one, shut)]
            differing += self._stale(name, wanted, every)
            differences = tuple(one for one in differing if wrong is None or wrong(one))
            if not differences:
                return [one for one in every if one not in differing]
            if time.monotonic() > limit:
                self.found[name].differences = differences
                routes = f"{len(differences):,} routes are not the build's"
                unsaved = "; it is not saved" * (not self.devices[name].driver)  # NAPALM saves, too
                raise DeviceError(f"{routes} ({named(differences)}){unsaved}")
            time.sleep(PROOF_POLL)

    def _excused(self, one: RouteDifference, shut: Collection[str]) -> bool:
        """Whether only next hops over ports that stay shut are missing.

        BGP finds others, also behind the neighbours of these ports, and around drained switches.
        """
        wanted, found = (
            {hop for hops in settings for hop in hops} for settings in (one.wanted, one.found)
        )
        over = {hop for hop in wanted if hop[1] in shut}
        if (left := self._predicted(one)) is not None:  # proved, if it is that
            return {hop[1] for hop in found} == left
        if self.converges and wanted and found and (self.shut or self.drained):
            return True
        return bool(over) and (self.converges or found <= wanted <= found | over)

    def _stale(
        self, name: str, wanted: RouteTables, every: Sequence[RouteDifference]
    ) -> Iterator[RouteDifference]:
        """The routes that are still the build's, where BGP has others while ports are shut."""
        differing = {(one.table, one.prefix) for one in every}
        for prefix, choices in wanted.get(MAIN, {}).items():
            ports = frozenset(hop[1] for hops in choices for hop in hops)
            one = RouteDifference(name, "stale", MAIN, prefix, (), choices)
            if (MAIN, prefix) not in differing and self._predicted(one) not in (None, ports):
                yield one

    def _predicted(self, one: RouteDifference) -> frozenset[str] | None:
        """The ports of BGP's paths while shut ports are down; None: it is not known."""
        known = self.converges and self.shut and not self.drained and one.table == MAIN
        return self._left.get(one.switch, {}).get(one.prefix) if known else None

    @property
    def _left(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """See `_predicted`, by switch and prefix; nothing where only some switches are pushed to.

        What the others have shut is not known then.
        """
        shut = frozenset(self.shut)
        if len(self.found) < np.count_nonzero(self.build.topology.present):
            return {}
        if self.outcome[0] != shut:
            reader = target(self.target).reader(self.chosen)
            ports = reader.ports_left(self.rendered, shut) if isinstance(reader, BgpReader) else {}
            self.outcome = shut, ports
        return self.outcome[1]

    def _vertex(self, name: str) -> int:
        return self.build.wiring.names.index(name)

    def _routes(self, name: str) -> RouteTables:
        """The routes of the build."""
        return self.wanted(self._vertex(name)) if self.wanted else {}

    def _differences(
        self, name: str, wanted: RouteTables, tables: str
    ) -> tuple[RouteDifference, ...]:
        """What tables of a switch have other than these.

        Raises:
            DeviceError: they cannot be read.
        """
        pools = tuple(ip_network(pool) for pool in self.pools)
        vertex = self._vertex(name)
        with TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.txt"
            file.write_text(tables)
            routes = SwitchRoutes(
                self.build, {vertex: [file]}, lambda _: wanted, pools, weighs(self.chosen)
            )
            try:
                return routes.differences(vertex)
            except InputError as error:
                one = error.problems[0]
                said = f"its routing tables: required {one.required}, given {one.given}"
                raise DeviceError(said) from error


def _ports(tables: Iterable[Mapping[str, Choices]]) -> frozenset[str]:
    """The ports that routes lead to."""
    every = (choices for routes in tables for choices in routes.values())
    return frozenset(port for choices in every for hops in choices for _, port, _ in hops if port)


def _held_ports(wanted: RouteTables, differences: Sequence[RouteDifference]) -> frozenset[str]:
    """The ports of the routes that a switch has, by what they have other than the wanted ones."""
    other = {(one.table, one.prefix) for one in differences}
    same = (
        {prefix: choices for prefix, choices in routes.items() if (table, prefix) not in other}
        for table, routes in wanted.items()
    )
    return _ports((*same, *({one.prefix: one.found} for one in differences)))


def _lacks(one: RouteDifference, ports: frozenset[str]) -> bool:
    """Whether a next hop over these ports is missing although none that is stale hides it."""
    wanted, found = (
        {port or settings for hops in choices for settings, port, _ in hops}
        for choices in (one.wanted, one.found)
    )
    return found <= wanted and any(
        settings in ports or settings == DISCARD[0][0] for settings in wanted - found
    )


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
        why = f"no {{{error.args[0]}}} is known" if isinstance(error, LookupError) else str(error)
        raise InputError.of(required, repr(template), why, key=option) from error


def device_kind(target: str) -> type[RouterDevice]:
    """The devices of a target.

    Raises:
        InputError: they are none that a push configures, or there is no NAPALM for them.
    """
    if target not in ROUTER_DEVICES:
        required = f"one of {', '.join(ROUTER_DEVICES)}"
        todo = "a controller programs Open vSwitch, opensm InfiniBand, and Ansible srlinux and nvue"
        raise InputError.of(required, target, todo, key="target")
    kind = ROUTER_DEVICES[target]
    if kind.driver and not find_spec("napalm"):
        raise InputError.of(f"NAPALM for target {target}", "none", install_extra("push"))
    return kind
