"""Routers: read, added to, taken from, saved; and the plain Linux kernel as one.

On Linux, files stand in ETC/polarfab, as Ansible puts them (docs/targets/automation.md).
"""

from __future__ import annotations

import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

from compilers.audit.route_differences import RouteDifference
from compilers.audit.route_remediation import (
    Remediation,
    kernel_remediation,
    rule_remediation,
)
from controller.devices.device_shell import DeviceShell
from inventory.route_tables.kernel_routes import OURS

Compare = Callable[[str], Iterable[RouteDifference]]
ROUTES = "ip -json route show table all"
NAMES = "sed -n 's/^# \\(.*\\): build .*/\\1/p' {etc}/polarfab/load.sh 2>&-; uname -n"
KERNEL_OWN = "kernel"
"""The protocol of routes that come with an interface's addresses."""
NEXTHOPS = "ip -json nexthop"
RULES = {family: f"ip -json {family} rule" for family in ("-4", "-6")}
UNIT = """if [ -d /run/systemd/system ]; then
  cp {etc}/polarfab/polarfab.service {etc}/systemd/system/polarfab.service
  systemctl daemon-reload && systemctl enable polarfab
fi"""


class DeviceNames(NamedTuple):
    """What a device says that it is.

    given: the name that an earlier push, or its own configuration, has given it. machine: another
    one that it may have whatever node it is.
    """

    given: str = ""
    machine: str = ""


@dataclass
class RouterDevice(ABC):
    """A router and the rendered files that it is to have.

    etc: the folder for configuration there. pools: the addresses of the fabric. vrf: that of the
    hosts, "" on systems without one. pending: the name of the change that is not confirmed yet.
    """

    shell: DeviceShell
    files: Path
    etc: str
    pools: tuple[str, ...]
    vrf: str = ""
    pending: str = field(default="", init=False)
    elsewhere: ClassVar[frozenset[str]] = frozenset()
    """Files that do not go to ETC/polarfab."""
    others: ClassVar[str] = ""
    """The routes that are not the fabric's, in words."""

    def names(self) -> DeviceNames:
        """Its names: on Linux that of the node whose files it has, beside the machine's.

        Raises:
            DeviceError: it cannot be read.
        """
        *given, machine = self.shell.run(self._quoted(NAMES)).splitlines() or ("",)
        return DeviceNames("".join(given[:1]), machine)

    def lost(self) -> Sequence[str]:
        """What others configured that would be gone once a push is saved and the device starts.

        Raises:
            DeviceError: it cannot be read.
        """
        return ()

    @abstractmethod
    def routes(self) -> Remediation:
        """What its routes lack, and have besides.

        Raises:
            DeviceError: it cannot be read.
        """

    @abstractmethod
    def load(self, add: Remediation) -> None:
        """Interfaces, addresses, and the routes that are lacking; not confirmed.

        Raises:
            DeviceError: it refuses something.
        """

    @abstractmethod
    def remove(self, stale: Remediation) -> None:
        """Take away the routes that it has besides; not confirmed.

        Raises:
            DeviceError: it refuses something.
        """

    @abstractmethod
    def tables(self) -> str:
        """Its routing tables, as `compilers.audit.route_report` reads them."""

    @abstractmethod
    def save(self) -> None:
        """See that a reboot leads to the same."""

    @abstractmethod
    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """The routes in the fabric's pools that a push would leave where they are.

        Args:
            tables: those of the device, see there.
            compare: tells such tables from those of the build.

        Raises:
            DeviceError: they cannot be read.
        """

    def confirm(self) -> None:
        """Have the last change stay, where the device would else take it back.

        Raises:
            DeviceError: it does not answer.
        """
        self.pending = ""

    def undo(self) -> None:
        """Take the last change back, where the device can.

        Raises:
            DeviceError: it does not answer.
        """
        self.pending = ""

    def text(self, name: str) -> str:
        """A rendered file."""
        return (self.files / name).read_text()

    def rules(self) -> dict[str, Remediation]:
        """What its policy rules lack, and have besides, by address family."""
        if not (self.files / "rules.batch").exists():
            return {}
        shown = {family: self.shell.run(command) for family, command in RULES.items()}
        found = rule_remediation(shown["-4"], shown["-6"], self.text("rules.batch"))
        return dict(zip(RULES, found, strict=True))

    def add_rules(self) -> None:
        """The policy rules that it lacks; no other rule is touched meanwhile."""
        for family, rules in self.rules().items():
            self.batch(rules.add, family, force=False)

    def remove_rules(self) -> None:
        """Take away the policy rules that it has besides."""
        for family, rules in self.rules().items():
            self.batch(rules.remove, family, force=False)

    def load_links(self) -> None:
        """The files in ETC/polarfab, and of them the links, with the bridge of the hosts."""
        self.put_files()
        at = shlex.quote(f"{self.etc}/polarfab")
        bridges = [
            line.split()[4] for line in self.text("links.batch").splitlines() if "master" in line
        ]
        for bridge in dict.fromkeys(bridges):
            name = shlex.quote(bridge)
            self.shell.run(f"ip link show {name} >&2 || ip link add {name} type bridge")
        if " type macvlan " in self.text("links.batch"):
            devices = f"grep ' type macvlan ' {at}/links.batch"  # those that are there stay
            self.shell.run(f"{devices} | ip -force -batch - 2> /dev/null || true")
        self.shell.run(f"sysctl --quiet --ignore --load {at}/sysctl.conf")
        self.shell.run(f"grep -v '^link add ' {at}/links.batch | ip -batch -")

    def put_files(self) -> None:
        """The files that stand in ETC/polarfab."""
        here = sorted(file for file in self.files.iterdir() if not file.name.startswith("."))
        files = {file.name: file.read_text() for file in here if file.name not in self.elsewhere}
        self.shell.put(f"{self.etc}/polarfab", files)

    def batch(self, lines: tuple[str, ...], family: str = "", force: bool = True) -> None:
        """Have `ip -batch` run lines; those about links that are down fail, and are found later."""
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            end = " || true" * force
            self.shell.run(f"ip {family} {'-force ' * force}-batch - 2>&1{end}", text)

    def _quoted(self, template: str, **words: str) -> str:
        return template.format(etc=shlex.quote(self.etc), **words)


class LinuxDevice(RouterDevice):
    """Target linux."""

    others = "protocol not 80"

    def routes(self) -> Remediation:
        """See `RouterDevice.routes`."""
        found = self.shell.run(ROUTES), self.shell.run(NEXTHOPS)
        return kernel_remediation(*found, self.text("routes.batch"))

    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign`: routes of protocols other than 80."""
        shown = json.JSONDecoder().raw_decode(tables)[0]
        others = [one for one in shown if str(one.get("protocol")) not in (OURS, KERNEL_OWN)]
        return [one for one in compare(json.dumps(others)) if one.found] if others else []

    def load(self, add: Remediation) -> None:
        """See `RouterDevice.load`: in place, without the pause of `load.sh`."""
        self.load_links()
        self.shell.run(f"ip -batch {shlex.quote(f'{self.etc}/polarfab/addresses.batch')}")
        self.batch(add.add)
        self.add_rules()

    def load_marked(self) -> None:
        """Only the devices for marked packets: neighbours may send such before it has its routes.

        Raises:
            DeviceError: it refuses a setting.
        """
        links, addresses = map(self.text, ("links.batch", "addresses.batch"))
        lines = [*links.splitlines(), *addresses.splitlines()]
        new = tuple(line for line in lines if " type macvlan " in line)
        devices = {line.split()[2] for line in new}
        settings = self.text("sysctl.conf").splitlines()
        ours = [line for line in settings if devices & set(line.partition(" ")[0].split("/"))]
        self.batch(new)
        self.shell.run("sysctl --quiet --ignore --load=/dev/stdin", "\n".join(ours))
        self.batch(tuple(line for line in lines if devices & set(line.split()) and line not in new))

    def remove(self, stale: Remediation) -> None:
        """See `RouterDevice.remove`."""
        self.remove_rules()
        self.batch(stale.remove)

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return "".join(map(self.shell.run, (ROUTES, NEXTHOPS, *RULES.values())))

    def save(self) -> None:
        """See `RouterDevice.save`."""
        self.shell.run(self._quoted(UNIT))
