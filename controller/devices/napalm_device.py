"""Routers that NAPALM's drivers reach: candidate, comparison, commit with a timer, roll-back.

What a candidate would change is the device's own word for it: where that is nothing, nothing is
committed. EOS and Junos take a commit back by themselves unless it is confirmed; NX-OS has a
checkpoint to go back to.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from compilers.audit.route_lines import RouteLine, junos_lines
from controller.devices.configured_device import CONFIRM_MINUTES, ConfiguredDevice
from controller.devices.device_shell import LAST_WORDS, SHELL_PATIENCE, DeviceError
from controller.devices.router_device import LINES, DevicePlan
from inventory.route_tables import eos_routes, junos_routes, nxos_routes

NOT_A_CONFIGURATION = re.compile(r"\s*(%|$)")


@dataclass
class NapalmSession:
    """A device as a driver of NAPALM reaches it, which is opened when it is first used.

    Its errors are of many libraries, so every one is a `DeviceError`.
    """

    kind: str
    address: str
    user: str
    password: str
    options: Mapping[str, str] = field(default_factory=dict)
    device: Any = None

    def call(self, method: str, *words: Any, **named: Any) -> Any:
        """What a method of the driver returns."""
        from napalm import get_network_driver

        try:
            if self.device is None:
                logging.getLogger("pyeapi").setLevel(logging.CRITICAL)  # it logs what it raises
                kind = get_network_driver(self.kind)
                given = {k: int(v) if v.isdecimal() else v for k, v in self.options.items()}
                options = {"read_timeout_override": SHELL_PATIENCE} | given  # Netmiko's is 10 s
                device = kind(self.address, self.user, self.password, optional_args=options)
                device.open()
                self.device = device
            return getattr(self.device, method)(*words, **named)
        except Exception as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise DeviceError(f"{method}: {said[-LAST_WORDS:]}") from error

    def close(self) -> None:
        """End the session, and with it what it has locked; a device that is gone has ended it."""
        if self.device is not None:
            with suppress(Exception):
                self.device.close()
            self.device = None


class NapalmDevice(ConfiguredDevice):
    """A system with a driver of NAPALM.

    file: the rendered one. form: of the configuration that is read. held: print the routing tables,
    in `encoding`. timed: whether a commit goes back by itself.
    """

    shell: NapalmSession
    file: ClassVar[str]
    form: ClassVar[str] = "text"
    held: ClassVar[str]
    encoding: ClassVar[str] = "text"
    timed: ClassVar[bool] = True

    def running(self) -> str:
        """See `ConfiguredDevice.running`; none is refused: with an empty one nothing were stale."""
        shown = self.shell.call("get_config", retrieve="running", format=self.form)["running"]
        if NOT_A_CONFIGURATION.match(shown):
            said = shown.strip().partition("\n")[0] or "nothing"
            raise DeviceError(f"required a configuration, given {said}")
        return str(shown)

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`."""
        return self.text(self.file)

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        said = self.shell.call("cli", self.held.split(", "), encoding=self.encoding).values()
        return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in said)

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `RouterDevice.plan`: nothing where the device says that it would change nothing."""
        if self.timed and self.shell.call("has_pending_commit"):
            todo = "confirm it, or wait until it has gone back"
            raise DeviceError(f"required no commit that waits for its confirmation; {todo}")
        plan = super().plan(wanted)
        if plan.lines and self.timed:
            if self._candidate(plan.lines):
                self.shell.call("discard_config")
            else:
                plan = replace(plan, add=(), remove=())
        return plan

    def _candidate(self, lines: Sequence[str]) -> str:
        """Load a candidate; what it would change. None is left if that is nothing, or refused."""
        self.shell.call("load_merge_candidate", config="".join(f"{line}\n" for line in lines))
        changes = str(self.shell.call("compare_config")).strip()
        if not changes:
            self.shell.call("discard_config")
        return changes

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`: a line that is wrong leaves it as it was."""
        if lines and self._candidate(lines):
            self.pending = "of NAPALM"
            when = {"revert_in": 60 * CONFIRM_MINUTES} if self.timed else {}
            self.shell.call("commit_config", **when)

    def confirm(self) -> None:
        """See `RouterDevice.confirm`: nothing is left to confirm once it has gone back."""
        if self.pending and self.timed:
            if not self.shell.call("has_pending_commit"):
                self.pending = ""
                raise DeviceError("the change has gone back: no commit waits for its confirmation")
            self.shell.call("confirm_commit")
        self.pending = ""

    def undo(self) -> bool:
        """See `RouterDevice.undo`: nothing of what is confirmed, or has gone back by itself."""
        waits = not self.timed or self.shell.call("has_pending_commit") if self.pending else False
        if waits:
            self.shell.call("rollback")
        self.pending = ""
        return bool(waits)

    def saved(self) -> str:
        """See `ConfiguredDevice.saved`."""
        return str(self.shell.call("get_config", retrieve="startup")["startup"])

    def save(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.save`."""
        self.shell.call("cli", list(lines))


class EosDevice(NapalmDevice):
    """Target eos, over eAPI: a configuration session with a commit timer."""

    driver = "eos"
    saves = ("write memory",)
    file = "eos.cfg"
    held = eos_routes.COMMANDS.replace(" | json", "")
    encoding = "json"


SPLIT = "interface breakout "
"""How NX-OS splits a cage."""
CAGED = re.compile(r"interface Ethernet\S+")
PORTS_PATIENCE, PORTS_POLL = 60.0, 1.0
"""Seconds for the ports of cages that were split to come, and between looks."""


class NxosDevice(NapalmDevice):
    """Target nxos: a checkpoint to roll back to, without a timer, and saved with the commit."""

    driver = "nxos_ssh"
    saves = ("copy running-config startup-config",)
    file = "nxos.cfg"
    held = nxos_routes.COMMANDS
    timed = False
    compares = False
    shut_at_first = True

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`: cages are split first, and their ports take a while.

        Raises:
            DeviceError: it refuses some, or ports do not come: lines below an interface that is
                refused would be about the one before it.
        """
        split = [line for line in lines if line.startswith(SPLIT)]
        super().type(split)
        rest = [line for line in lines if line not in split]
        wanted = {line for line in rest if CAGED.fullmatch(line)}
        limit = time.monotonic() + PORTS_PATIENCE * bool(split)
        while missing := wanted and wanted - set(self.running().splitlines()):
            if time.monotonic() >= limit:
                raise DeviceError(f"the switch has no {min(missing)}")
            time.sleep(PORTS_POLL)
        super().type(rest)


class JunosDevice(NapalmDevice):
    """Target junos, over NETCONF: commit confirmed."""

    driver = "junos"
    file = "junos.set"
    form = "set"
    held = junos_routes.COMMANDS

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return junos_lines(text)

    def compared(self, running: str) -> DevicePlan:
        """See `ConfiguredDevice.compared`: every line is independent."""
        text = self.rendered()
        there = [line.strip() for line in running.splitlines() if line.strip()]
        wanted, routes = dict.fromkeys(text.splitlines()), self._route_lines(text)
        ports = {line.split()[2] for line in wanted if line.startswith("set interfaces ")}
        inside = [line for line in there if line.split()[1:2] == ["interfaces"]]
        inside = [line for line in inside if line.split()[2] in ports and line not in wanted]
        closed = [one for one in inside if re.match(r"deactivate |set \S+ \S+ disable$", one)]
        foreign = [
            line for line in inside if line not in closed and line.split()[3:4] != ["description"]
        ]
        opened = closed if self.opens else []
        removed = foreign if LINES in self.overrule else []
        kept = [line for line in (*closed, *foreign) if line not in (*opened, *removed)]
        missing = [line for line in wanted if line not in routes and line not in there]
        return DevicePlan(
            add=(*missing, *map(_undone, opened)),
            remove=tuple(map(_undone, removed)),
            kept=tuple(kept),
            shut=frozenset(line.split()[2] for line in closed if line not in opened),
        )


def _undone(line: str) -> str:
    word, _, rest = line.partition(" ")
    return f"{'activate' if word == 'deactivate' else 'delete'} {rest}"
