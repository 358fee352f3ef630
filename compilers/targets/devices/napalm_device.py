"""Routers that NAPALM's drivers reach: candidate, comparison, commit with a timer, roll-back.

What a candidate would change is the device's own word for it: where that is nothing, nothing is
committed. EOS and Junos take a commit back by themselves unless it is confirmed; NX-OS has a
checkpoint to go back to.
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
from compilers.targets.devices.device_shell import LAST_WORDS, SHELL_PATIENCE, DeviceError
from compilers.targets.devices.route_lines import RouteLine
from compilers.targets.devices.router_device import DevicePlan

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
