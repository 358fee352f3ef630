"""A push of a build to routers: reads them, adds missing lines, removes stale ones, proves, saves.

`polarfab push` and the library's `push` make a `DevicePush` and call its `run`. First all switches
are read, and a plan of each switch's changes is made. A switch whose plan is empty is not changed.
All switches of a batch get their new lines before the first loses its old ones. From a known build
all switches change together, in the proved rounds of `controller.devices.push_rounds`: a round is
done when the tables of every switch show it.

The configuration of a switch is saved once the switch's own tables are those of the build
(`controller.devices.push_proof`). Where a step fails on a switch, its last change is undone. Where
that fails too, a reboot brings the saved configuration back.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from getpass import getuser
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from shutil import which
from socket import gethostname
from typing import Any

import numpy as np

from compilers.audit.expected_routes import ExpectedRoutes
from compilers.tables.build import Build
from compilers.targets.devices.configured_device import ConfiguredDevice
from compilers.targets.devices.device_shell import SSH, DeviceError, DeviceShell
from compilers.targets.devices.napalm_device import NapalmSession
from compilers.targets.devices.route_lines import remediation
from compilers.targets.devices.router_device import NAMES, RouterDevice
from compilers.targets.node_systems import system_target
from compilers.targets.options import Chosen
from compilers.targets.routed.p2p_target import P2pTarget
from compilers.targets.system_names import SystemNames, hostname
from compilers.targets.target import Progress, Target
from compilers.targets.target_lookup import installed_systems, target
from controller.devices.push_proof import PushProof
from controller.devices.push_report import PushedSwitch, PushReport, first_prefixes
from controller.devices.push_rounds import BEFORE, PushRounds, RenderedBuild
from inventory.problems import InputError, Problem, install_extra

DETOUR_TEXT = "go around what is shut or drained"
"""The report's words for routes that are not as built."""
PASSWORD_VARIABLE = "POLARFAB_PASSWORD"  # noqa: S105 - the name of a variable
"""The environment variable with the password for NAPALM's drivers."""
MOST_SESSIONS = 20
"""Most sessions that are used at the same time."""
MOST_FAILED = 1
"""The failures after which a push in rounds ends: the next round needs every switch of this one."""
Task = Callable[[PushedSwitch], None]
"""A step of the push on one switch."""


@dataclass(frozen=True, slots=True)
class PushSettings:
    """The settings of a push."""

    run: str = SSH
    """The words that reach a device's shell, with {node} and {address}."""
    etc: str = "/etc"
    """The folder for configuration on a device, with {node}."""
    batch: int = 0
    """How many switches are changed at a time; 0 for all."""
    stop_on: int = 1
    """The number of failures after which no switch begins a change; 0 for never."""
    dry: bool = False
    """Whether switches are only read."""
    overrule: frozenset[str] = frozenset()
    """Which changes by others are undone: PORTS_SHUT, LINES, or NAMES (host names that are not the
    fabric's).
    """
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of NAPALM's drivers, `username` among them. The password is in the environment
    variable PASSWORD_VARIABLE.
    """


@dataclass(slots=True)
class DevicePush:
    """The push of a build to its switches."""

    build: Build
    """The build that the switches are to hold."""
    target: str
    """A target whose devices a push can configure; "" for the system of each switch."""
    options: Chosen
    """The options that `rendered` was made with."""
    rendered: Path
    """The folder that the build was rendered in."""
    settings: PushSettings
    """The settings of the push."""
    progress: Progress = None
    """Called with (rounds on a switch done, all rounds), from several threads."""
    old: RenderedBuild | None = None
    """The build that the switches hold now; None where it is not known."""
    switches: tuple[PushedSwitch, ...] = ()
    """The switches that are pushed to."""
    rounds: PushRounds | None = None
    """The rounds from the old build; None without one."""
    names: SystemNames = field(init=False)
    """The names of nodes in the target's system."""
    proof: PushProof = field(init=False)
    """What the switches' tables are to be."""
    steps: Iterator[int] = field(default_factory=lambda: count(1))
    """Counts the steps that are done, from 1. A step is one task on one switch."""
    all_steps: int = 0
    """The number of steps of the whole push."""

    def run(self, only: Sequence[str] = ()) -> PushReport:
        """Push to these switches, or to all. After Ctrl-C, tasks under way end and no other begins.

        Raises:
            InputError: there is no such target or switch, no NAPALM or ssh; or the move from the
                old build has no rounds.
        """
        system = target(self.target) if self.target else system_target(self.build)
        systems = system.by_vertex(len(self.build.wiring.names))
        device_classes = {
            switch_system.name: device_class_of(switch_system.name) for switch_system in systems
        }
        self._require_possible(system, systems, device_classes)
        vertices = self._vertices(only)
        self.names = system.names(self.build)
        build, chosen = system.check(self.build, self.options)
        if self.old:
            self._require_rounds_possible(only)
        before = self.old.build if self.old else None
        expected = ExpectedRoutes.of(system, build, chosen, before)
        if self.old:
            self.rounds = PushRounds.of(system, self.old, expected, chosen, self.options)
        self.proof = PushProof(chosen, expected)
        self._open_sessions(device_classes, systems, vertices)
        was_interrupted = self._carry_out(system)
        return PushReport(system.title, self.switches, was_interrupted)

    def _require_possible(
        self,
        system: Target,
        systems: Sequence[Target],
        device_classes: Mapping[str, type[RouterDevice]],
    ) -> None:
        """Refuse settings and builds that a push to these systems cannot follow.

        Args:
            system: the target of the push.
            systems: the system of each vertex.
            device_classes: the devices of each system.
        """
        overrules = {
            name for device_class in device_classes.values() for name in device_class.can_overrule
        }
        overrules.add(NAMES)
        refused = sorted(self.settings.overrule - overrules)
        if refused:
            todo = f"target {system.title} keeps what others set there: take it away by hand"
            raise InputError.of(", ".join(sorted(overrules)), refused[0], todo, key="overrule")
        has_p2p_links = any(isinstance(switch_system, P2pTarget) for switch_system in systems)
        if self.build.forwarding.marks and has_p2p_links:
            required = "another balance: push configures no VRF for each link"
            todo = "load the rendered files (docs/how-to/push.md#ansible)"
            raise InputError.of(required, self.build.balance, todo, key="routing.balance")

    def _vertices(self, only: Sequence[str]) -> list[int]:
        """The vertices of these switches; of all switches if none is named."""
        names = self.build.wiring.names
        present = np.flatnonzero(self.build.topology.present).tolist()
        known = {names[vertex] for vertex in present}
        unknown = [name for name in only if name not in known]
        if unknown:
            required = "the name of a switch"
            raise InputError([Problem(required, repr(name), key="node") for name in unknown])
        return [vertex for vertex in present if not only or names[vertex] in only]

    def _carry_out(self, system: Target) -> bool:
        """Go through the stages of the push; returns whether Ctrl-C has ended it."""
        stages = self._stages()
        self.all_steps = sum(len(batch) for _, batch in stages)
        try:
            for number, (task, batch) in enumerate(stages):
                if number == 1:  # the first stage, 0, has read all switches
                    self.proof.note_shut(self.switches, system, self.rendered)
                if self._is_stopped():
                    break
                self._on_all(task, batch)
        except KeyboardInterrupt:
            return True
        finally:
            self._close_sessions()
        return False

    def _open_sessions(
        self,
        device_classes: Mapping[str, type[RouterDevice]],
        systems: Sequence[Target],
        vertices: Sequence[int],
    ) -> None:
        """Open a session with each switch; refuse if the program for it is missing.

        Args:
            device_classes: the devices of each system.
            systems: the system of each vertex.
            vertices: the switches.
        """
        names = self.build.wiring.names
        self.switches = tuple(
            PushedSwitch(
                names[vertex],
                vertex,
                self._device(vertex, systems[vertex], device_classes[systems[vertex].name]),
            )
            for vertex in vertices
        )
        program = next(iter(shlex.split(self.settings.run)), "")
        needs_program = any(not device_classes[systems[vertex].name].driver for vertex in vertices)
        if needs_program and not which(program):
            debian = " (Debian: openssh-client)" if program == "ssh" else ""
            raise InputError.of(f"{program or 'a program'}{debian}", "none", key="run")

    def _device(
        self, vertex: int, system: Target, device_class: type[RouterDevice]
    ) -> RouterDevice:
        """The session with a switch, over a shell or over NAPALM's driver of its system."""
        wiring, settings = self.build.wiring, self.settings
        name = wiring.names[vertex]
        values = {"node": name, "address": wiring.management[vertex] or hostname(name)}
        shell: Any = DeviceShell(tuple(_filled_words("run", settings.run, values)))
        if device_class.driver:
            options = dict(settings.options)
            user = options.pop("username", getuser())
            password = os.environ.get(PASSWORD_VARIABLE, "")
            shell = NapalmSession(device_class.driver, values["address"], user, password, options)
        (etc,) = _filled_words("etc", shlex.quote(settings.etc), values)
        overrule = settings.overrule & {*device_class.can_overrule, NAMES}
        pools, vrf = self.proof.expected.pools, getattr(system, "vrf", "")
        files = self.rendered / name
        return device_class(shell, files, etc, pools, vrf, overrule, self.proof.bgp)

    def _require_rounds_possible(self, only: Sequence[str]) -> None:
        """Require that no setting contradicts rounds, in which all switches change together.

        Raises:
            InputError: one does.
        """
        settings = self.settings
        if only:
            raise InputError.of("all switches with `from`", f"{len(only)}", key="node")
        if settings.batch:
            required = "no batches with `from`: a round changes all switches"
            raise InputError.of(required, f"{settings.batch}", key="batch")
        if settings.stop_on != MOST_FAILED:
            required = "the first failure to end a push with `from`"
            raise InputError.of(required, f"{settings.stop_on}", key="stop_on")

    def _stages(self) -> list[tuple[Task, Sequence[PushedSwitch]]]:
        """The stages of the push, in their order: each a task, and the switches that it runs on.

        First all switches are read. Then they are changed in batches, or in rounds.
        """
        switches = self.switches
        size = self.settings.batch or len(switches)
        if self.settings.dry:
            return [(self._read, switches)]
        if self.rounds:
            steps: list[Task] = [
                partial(self._carry_out_round, number)
                for number in range(self.rounds.move.last_round + 1)
            ]
            return [(task, switches) for task in (self._read, *steps, self._prove_and_save)]
        batches = [switches[first : first + size] for first in range(0, len(switches), size)]
        tasks = self._set_interfaces, self._add_lines, self._remove_lines
        return [(self._read, switches), *((task, batch) for batch in batches for task in tasks)]

    def _is_stopped(self) -> bool:
        """Whether so many switches have failed that no other begins a change."""
        most = MOST_FAILED if self.rounds and not self.settings.dry else self.settings.stop_on
        return bool(most) and sum(switch.state == "failed" for switch in self.switches) >= most

    def _on_all(self, task: Task, batch: Sequence[PushedSwitch]) -> None:
        """Run a task on several switches at once; their failures are noted."""
        working = [switch for switch in batch if switch.state != "failed"]
        threads = ThreadPoolExecutor(MOST_SESSIONS)
        try:
            list(threads.map(partial(self._try, task), working))
        finally:
            threads.shutdown(cancel_futures=True)  # tasks that have not begun are cancelled

    def _try(self, task: Task, switch: PushedSwitch) -> None:
        """Run a task on one switch; its failure is noted."""
        with switch.lock:
            if task != self._read and self._is_stopped():
                return
            try:
                task(switch)
            except (DeviceError, InputError) as error:
                self._failed(switch, str(error))
            except (ValueError, LookupError) as error:
                self._failed(switch, f"an answer that cannot be read: {error}")
        if self.progress:
            self.progress(next(self.steps), self.all_steps)

    def _failed(self, switch: PushedSwitch, reason: str) -> None:
        """Note a failure, and undo the last change.

        Where that fails, a device that commits with a timer undoes the change by itself.
        """
        switch.state, switch.error = "failed", reason
        pending = switch.device.pending
        try:
            if switch.device.undo():
                switch.error += "; the last change is taken back"
        except DeviceError as error:
            switch.error += f"; the change {pending} is not taken back from here: {error}"
            switch.device.pending = ""

    def _close_sessions(self) -> None:
        """Close the sessions, each after the task under way; undo changes that are unconfirmed."""
        for switch in self.switches:
            with switch.lock:
                if switch.device.pending:
                    self._failed(switch, "the push ended before the last change was confirmed")
                switch.device.unlock()
                shell = switch.device.shell
                if isinstance(shell, NapalmSession):
                    shell.close()

    def _read(self, switch: PushedSwitch) -> None:
        """Read a switch, and plan its changes."""
        self._identify(switch)
        device = switch.device
        if not self.settings.dry:
            device.lock(f"{getuser()} at {gethostname()}, since {datetime.now():%Y-%m-%d %H:%M:%S}")
        switch.plan = device.plan()
        self._read_routes(switch)
        self._find_round(switch)
        switch.state = "to do" if switch.plan.lines or switch.plan.save else "as built"

    def _read_routes(self, switch: PushedSwitch) -> None:
        """Note the routes that are correct already, and refuse a switch with routes of others."""
        device = switch.device
        routes, tables = self.proof.routes(switch), device.tables()
        # `foreign` compares the same text again, with or without some lines.
        compare = cache(partial(self.proof.differences, switch, routes))
        if tables.strip():
            # This also shows, before anything is changed, whether the tables can be read.
            differing = {difference.key for difference in compare(tables)}
            places = {(table, prefix) for table, choices in routes.items() for prefix in choices}
            # BGP's routes also depend on other switches, which are being changed: none is awaited.
            switch.correct_routes = frozenset() if self.proof.bgp else frozenset(places - differing)
            switch.differences = tuple(device.foreign_routes(tables, compare))
        if switch.differences:
            raise DeviceError(
                "required no routes of others in the fabric's address pools, "
                f"given {first_prefixes(switch.differences)}; take them away first, a push does not"
            )

    def _identify(self, switch: PushedSwitch) -> None:
        """Refuse a switch whose own host name is that of another switch, or of none."""
        name = switch.device.name()
        vertex = self.names.vertex(name) if name else switch.vertex
        if vertex is None and NAMES not in self.settings.overrule:
            required = f"required the host name {hostname(switch.node)}"
            todo = "if this is the switch, push with `overrule names`"
            raise DeviceError(f"{required}, given {name}; {todo}")
        if vertex not in (None, switch.vertex):
            node = self.build.wiring.names[vertex]
            todo = "`management` of the inventory leads to another switch"
            raise DeviceError(f"required the switch {switch.node}, given {node}; {todo}")

    def _find_round(self, switch: PushedSwitch) -> None:
        """Find the last round after which a switch holds the routes that it holds now."""
        device = switch.device
        if not self.rounds or not isinstance(device, ConfiguredDevice):
            return
        reason = device.restart_reason()
        if reason and self.rounds.move.old_vertex(switch.vertex) >= 0:
            todo = "the change restarts routing, and loses packets: make it before"
            raise DeviceError(f"{reason}; {todo}, or push without `from`")
        routes_after = self.rounds.routes_by_round(device, switch.vertex)
        running = device.lines(device.running())
        for number in range(self.rounds.move.last_round, BEFORE - 1, -1):
            if not remediation(running, routes_after(number).lines):
                switch.round_at_start = number
                return
        required = "the routes of the build before, or of a round from it to this one"
        given = f"{len(running):,} static routes of the fabric that are neither"
        raise DeviceError(f"required {required}, given {given}; push without `from`")

    def _set_interfaces(self, switch: PushedSwitch) -> None:
        """Configure interfaces, before any switch of the batch gets routes over them."""
        switch.device.type(switch.plan.links)

    def _add_lines(self, switch: PushedSwitch) -> None:
        """Add the missing lines; they stay if no route is lost that was correct before.

        The new routes are proved only at the end: the neighbour at a new port may not be configured
        yet.
        """
        if switch.plan.lines:
            switch.device.type(switch.plan.add)
            self.proof.wait(switch, self.proof.routes(switch), switch.correct_routes)
            switch.device.confirm()

    def _remove_lines(self, switch: PushedSwitch) -> None:
        """Remove the stale lines; then prove and save, without waiting for other switches."""
        switch.device.type(switch.plan.remove)
        self._prove_and_save(switch)

    def _carry_out_round(self, number: int, switch: PushedSwitch) -> None:
        """Give a switch the routes of a round, unless it has those of a later round already.

        The first round, 0, also configures its interfaces.
        """
        device, rounds = switch.device, self.rounds
        if not rounds or not isinstance(device, ConfiguredDevice):
            return
        if 0 < number <= switch.round_at_start:
            return
        round_routes = rounds.routes_by_round(device, switch.vertex)
        routes = round_routes(max(number, switch.round_at_start))
        change = device.route_changes(routes.lines, device.running())
        is_first = number == 0
        lines = device.plan(routes.lines).lines if is_first else (*change.add, *change.remove)
        if lines:
            device.type(lines)
            self.proof.wait(switch, routes.tables)
            device.confirm()

    def _prove_and_save(self, switch: PushedSwitch) -> None:
        """Prove a switch's own tables, and save its configuration."""
        device, proof = switch.device, self.proof
        unproved_detours = len(proof.wait(switch, proof.routes(switch)))
        proved_detours = proof.count_detours(switch)
        detours = unproved_detours + proved_detours
        if detours:
            how = f": {proved_detours:,} proved, {unproved_detours:,} not" if proof.bgp else ""
            switch.notes = (f"{detours:,} routes {DETOUR_TEXT}{how}",)
        if switch.state == "as built":
            return
        device.confirm()
        missing = device.plan().lines
        if missing:
            text = f"it has not taken {_first_of(missing)}"
            if device.shows_typed_lines:
                raise DeviceError(f"{text}; it is not saved" if not device.driver else text)
            switch.notes = (*switch.notes, f"{text}, or shows it in another form")
        if switch.plan.save:
            device.save(switch.plan.save)
            unsaved = () if missing else device.plan().save
            if unsaved:
                raise DeviceError(f"it has not taken {_first_of(unsaved)}")
        switch.state = "pushed"


def _first_of(lines: Sequence[str]) -> str:
    """The first of several lines, and how many more there are."""
    more = f" and {len(lines) - 1:,} more" if len(lines) > 1 else ""
    return f"{' '.join(lines[0].split())}{more}"


def _filled_words(option: str, template: str, values: Mapping[str, str]) -> Iterator[str]:
    """The words of a template, with values in place of the names in braces.

    Args:
        option: the option that has the template, for the error.
        template: words, such as "ssh {address}".
        values: the value of each name.

    Raises:
        InputError: the template has another name in braces.
    """
    try:
        yield from [word.format(**values) for word in shlex.split(template)]
    except (LookupError, ValueError) as error:
        required = f"words with {' and '.join(f'{{{name}}}' for name in values)} only"
        why = f"no {{{error.args[0]}}} is known" if isinstance(error, LookupError) else str(error)
        raise InputError.of(required, repr(template), why, key=option) from error


def device_class_of(target_name: str) -> type[RouterDevice]:
    """The class of a target's devices.

    Raises:
        InputError: a push does not configure devices of this target, or NAPALM is not installed.
    """
    device_class = target(target_name).device
    if device_class is None:
        systems = installed_systems()
        reached = [system.name for system in systems if system.device]
        by_ansible = [system.name for system in systems if system.ansible and not system.device]
        todo = f"Ansible loads the files of {', '.join(by_ansible)}; a controller needs no push"
        raise InputError.of(f"one of {', '.join(reached)}", target_name, todo, key="target")
    if device_class.driver and not find_spec("napalm"):
        raise InputError.of(f"NAPALM for target {target_name}", "none", install_extra("push"))
    return device_class
