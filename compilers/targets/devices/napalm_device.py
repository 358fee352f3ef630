"""Routers that NAPALM's drivers reach: load a candidate, compare, commit with a timer, roll back.

The devices of EOS, Junos and NX-OS derive from `NapalmDevice`. A *candidate* is a changed
configuration that the device has not put into effect. The device itself says what a candidate would
change; if that is nothing, nothing is committed. EOS and Junos take a commit back unless it is
confirmed in time; NX-OS has a checkpoint to roll back to.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from compilers.targets.devices.configured_device import CONFIRM_MINUTES, ConfiguredDevice
from compilers.targets.devices.device_shell import LONGEST_OUTPUT, SHELL_PATIENCE, DeviceError
from compilers.targets.devices.route_lines import RouteLine
from compilers.targets.devices.router_device import DevicePlan

NAPALM_CHANGE = "of NAPALM"
"""The name of a change that is not confirmed yet (`RouterDevice.pending`). NAPALM itself has no
names for changes, as there is one at a time."""
NOT_A_CONFIGURATION = re.compile(r"\s*(%|$)")
"""`% Invalid input`, or nothing: what a device prints instead of its configuration."""


@dataclass
class NapalmSession:
    """A session with a device by a driver of NAPALM, opened when it is first used.

    Drivers raise errors of many libraries, so every error is turned into a `DeviceError`.
    """

    kind: str
    """The name of the driver, in NAPALM."""
    address: str
    """The address of the device."""
    user: str
    """The user name there."""
    password: str
    """The user's password."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further arguments of the driver by name: NAPALM's `optional_args`."""
    device: Any = None
    """The driver; None until it is open."""

    def call(self, method: str, *args: Any, **keyword_args: Any) -> Any:
        """Call a method of the driver, which is opened first if it is not."""
        from napalm import get_network_driver

        try:
            if self.device is None:
                logging.getLogger("pyeapi").setLevel(logging.CRITICAL)  # it logs what it raises
                driver_class = get_network_driver(self.kind)
                options: dict[str, Any] = {"read_timeout_override": SHELL_PATIENCE}  # else 10 s
                for name, value in self.options.items():
                    options[name] = int(value) if value.isdecimal() else value
                device = driver_class(self.address, self.user, self.password, optional_args=options)
                device.open()
                self.device = device
            return getattr(self.device, method)(*args, **keyword_args)
        except Exception as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise DeviceError(f"{method}: {text[-LONGEST_OUTPUT:]}") from error

    def close(self) -> None:
        """End the session, which frees its locks, if the device still answers."""
        if self.device is not None:
            with suppress(Exception):
                self.device.close()
            self.device = None


class NapalmDevice(ConfiguredDevice):
    """A router that a driver of NAPALM reaches."""

    shell: NapalmSession
    """The session with the device."""
    file: ClassVar[str]
    """The name of the rendered configuration."""
    form: ClassVar[str] = "text"
    """The format of the configuration, in NAPALM's words: text or set."""
    table_commands: ClassVar[str]
    """The commands that print the routing tables, with commas between them."""
    encoding: ClassVar[str] = "text"
    """The format in which these commands print: text or json."""
    has_commit_timer: ClassVar[bool] = True
    """Whether the device takes a commit back that is not confirmed in time."""

    def running(self) -> str:
        """See `ConfiguredDevice.running`.

        Raises:
            DeviceError: the device prints none. An empty text is refused, as no line of the device
                could be stale then, and none would be removed.
        """
        shown = self.shell.call("get_config", retrieve="running", format=self.form)["running"]
        if NOT_A_CONFIGURATION.match(shown):
            given = shown.strip().partition("\n")[0] or "nothing"
            raise DeviceError(f"required a configuration, given {given}")
        return str(shown)

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`."""
        return self.text(self.file)

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        commands = self.table_commands.split(", ")
        outputs = self.shell.call("cli", commands, encoding=self.encoding).values()
        return "\n".join(text if isinstance(text, str) else json.dumps(text) for text in outputs)

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `RouterDevice.plan`: empty where the device says that nothing would change.

        Raises:
            DeviceError: another commit waits for its confirmation.
        """
        if self.has_commit_timer and self.shell.call("has_pending_commit"):
            todo = "confirm it, or wait until it has gone back"
            raise DeviceError(f"required no commit that waits for its confirmation; {todo}")
        plan = super().plan(wanted)
        if plan.lines and self.has_commit_timer:
            # A dry run of the commit: the device says what the lines would change.
            if self._load_candidate(plan.lines):
                self.shell.call("discard_config")
            else:
                plan = replace(plan, add=(), remove=())
        return plan

    def _load_candidate(self, lines: Sequence[str]) -> str:
        """Load lines as a candidate, and return what they would change.

        A candidate that changes nothing, "", is discarded.
        """
        self.shell.call("load_merge_candidate", config="".join(f"{line}\n" for line in lines))
        changes = str(self.shell.call("compare_config")).strip()
        if not changes:
            self.shell.call("discard_config")
        return changes

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`: load and commit lines. If one is wrong, none has an effect."""
        if lines and self._load_candidate(lines):
            self.pending = NAPALM_CHANGE
            timer = {"revert_in": 60 * CONFIRM_MINUTES} if self.has_commit_timer else {}
            self.shell.call("commit_config", **timer)

    def confirm(self) -> None:
        """See `RouterDevice.confirm`.

        Raises:
            DeviceError: the device has taken the change back already.
        """
        if self.pending and self.has_commit_timer:
            if not self.shell.call("has_pending_commit"):
                self.pending = ""
                raise DeviceError("the change has gone back: no commit waits for its confirmation")
            self.shell.call("confirm_commit")
        self.pending = ""

    def undo(self) -> bool:
        """See `RouterDevice.undo`; False also if the device has taken the change back itself."""
        can_undo = False
        if self.pending:
            can_undo = not self.has_commit_timer or bool(self.shell.call("has_pending_commit"))
        if can_undo:
            self.shell.call("rollback")
        self.pending = ""
        return can_undo

    def saved(self) -> str:
        """See `ConfiguredDevice.saved`."""
        return str(self.shell.call("get_config", retrieve="startup")["startup"])

    def save(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.save`."""
        self.shell.call("cli", list(lines))
