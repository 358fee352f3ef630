"""Routers with a configuration: its lines are compared with the rendered ones, typed, confirmed.

What is typed is a transaction that the device takes back by itself unless it is confirmed, where
the system has such a thing. It is confirmed by a connection of its own: a device that cannot be
reached any more is again what it was.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from secrets import token_hex
from typing import ClassVar

from compilers.audit.route_differences import RouteDifference
from compilers.audit.route_lines import (
    RouteLine,
    fabric_lines,
    junos_lines,
    remediation,
    section_lines,
    srlinux_commands,
    srlinux_lines,
)
from compilers.audit.route_remediation import Remediation
from controller.devices.device_shell import DeviceError
from controller.devices.router_device import RULES, UNIT, Compare, DeviceNames, RouterDevice
from inventory.route_tables.route_table_file import json_outputs

SPEAKS_BGP = re.compile(r"\bbgp\b")
CONFIRM_MINUTES = 10
"""Until a device takes an unconfirmed change back."""


class ConfiguredDevice(RouterDevice):
    """A router whose routes stand in a configuration of lines."""

    others = "not from its configuration's static routes"
    host_name: ClassVar[re.Pattern[str]] = re.compile(
        r"^(?:hostname|switchname|set system host-name|set / system name host-name) (\S+)", re.M
    )

    def names(self) -> DeviceNames:
        """See `RouterDevice.names`: the host name of its configuration."""
        found = self.host_name.search(self.running())
        return DeviceNames(found[1].strip('"') if found else "")

    @abstractmethod
    def running(self) -> str:
        """The configuration of the device."""

    @abstractmethod
    def rendered(self) -> str:
        """The rendered configuration."""

    @abstractmethod
    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """The static routes of a configuration, the fabric's and others."""

    def lines(self, text: str) -> list[RouteLine]:
        """The static routes of the fabric in a configuration.

        Raises:
            DeviceError: it is none of the device's.
        """
        try:
            return list(fabric_lines(self.all_lines(text), self.pools, self.vrf))
        except (LookupError, ValueError) as error:
            raise DeviceError(f"a configuration that cannot be read: {error}") from error

    def lacking(self, wanted: Iterable[RouteLine]) -> Remediation:
        """What to type so that the device has these routes."""
        return remediation(self.lines(self.running()), wanted)

    def routes(self) -> Remediation:
        """See `RouterDevice.routes`."""
        return self.lacking(self.lines(self.rendered()))

    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign`: those that no static route of the configuration says.

        With eBGP there are many until it has converged.
        """
        found = compare(tables)
        if SPEAKS_BGP.search(self.rendered()):
            return []
        said = {line.place for line in self.lines(self.running())}
        return [one for one in found if one.found and (one.table, one.prefix) not in said]

    def load(self, add: Remediation) -> None:
        """See `RouterDevice.load`: with all that is no route."""
        self.change((*self.beside(), *add.add))

    def remove(self, stale: Remediation) -> None:
        """See `RouterDevice.remove`."""
        self.change(stale.remove)

    def beside(self) -> Sequence[str]:
        """The rendered lines that are no routes of the fabric."""
        text = self.rendered()
        routes = {
            part
            for line in self.lines(text)
            for part in line.add.splitlines()
            if line.prefix in part
        }
        return [line for line in text.splitlines() if line not in routes]

    @abstractmethod
    def change(self, lines: Sequence[str]) -> None:
        """Have the device take lines; those that are wrong leave it as it was, where it can.

        Raises:
            DeviceError: it refuses some.
        """


class TypedDevice(ConfiguredDevice):
    """A system with a command line of its own, which takes a script from its standard input.

    file: the rendered one. shown: prints the configuration; held: print the routing tables. before:
    what has to be taken first; open: begins a change called {change}; tried: ends one that is only
    tried, committed: one that goes back in {minutes}; accepted, rejected: what follows. saved: has
    it survive a reboot. refused: what the system says to a line that it does not take.
    """

    file: ClassVar[str]
    shown: ClassVar[str]
    held: ClassVar[tuple[str, ...]]
    before: ClassVar[tuple[str, ...]] = ()
    open: ClassVar[tuple[str, ...]]
    tried: ClassVar[tuple[str, ...]] = ()
    committed: ClassVar[tuple[str, ...]]
    accepted: ClassVar[tuple[str, ...]]
    rejected: ClassVar[tuple[str, ...]]
    saved: ClassVar[tuple[str, ...]] = ()
    refused: ClassVar[re.Pattern[str]]

    def running(self) -> str:
        """See `ConfiguredDevice.running`.

        Raises:
            DeviceError: what answers shows none; taken for an empty one, nothing would be stale.
        """
        shown = self.shell.run(self.shown).lstrip()
        if not shown or self.refused.match(shown):
            said = shown.partition("\n")[0] or "nothing"
            raise DeviceError(f"{self.shown}: required a configuration, given {said}")
        return shown

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`."""
        return self.text(self.file)

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return section_lines(text)

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return "\n".join(map(self.shell.run, self.held))

    def change(self, lines: Sequence[str]) -> None:
        """See `ConfiguredDevice.change`: tried first, where the system can."""
        if not lines:
            return
        name = f"polarfab-{token_hex(4)}"
        if self.tried:
            self._type(f"{name}-try", (*self.open, *lines, *self.tried))
        if self.before:
            self._type(name, self.before)
        self.pending = name
        self._type(name, (*self.open, *lines, *self.committed))

    def confirm(self) -> None:
        """See `RouterDevice.confirm`."""
        if self.pending:
            self._type(self.pending, self.accepted)
            self.pending = ""

    def undo(self) -> None:
        """See `RouterDevice.undo`."""
        if self.pending:
            self._type(self.pending, self.rejected)
            self.pending = ""

    def save(self) -> None:
        """See `RouterDevice.save`."""
        if self.saved:
            self._type("", self.saved)

    def _type(self, name: str, lines: Sequence[str]) -> None:
        words = {"{change}": name, "{minutes}": str(CONFIRM_MINUTES)}
        text = "".join(f"{line}\n" for line in lines)
        for word, value in words.items():
            text = text.replace(word, value)
        said = self.shell.typed(text)
        if found := self.refused.search(said):
            raise DeviceError(f"it refuses a line: {found[0].strip()}")


class EosDevice(TypedDevice):
    """Target eos: a configuration session with a commit timer (EOS manual, Session Management)."""

    file = "eos.cfg"
    shown = "show running-config"
    held = ("show ip route vrf all | json", "show ipv6 route vrf all | json")
    open = ("configure session {change}",)
    tried = ("abort",)
    committed = (f"commit timer 00:{CONFIRM_MINUTES}:00",)
    accepted = ("configure session {change} commit",)
    rejected = ("configure session {change} abort",)
    saved = ("write memory",)
    refused = re.compile(r"^.*% .*$", re.M)


SPLIT = "interface breakout "
PARTED = re.compile(r"interface Ethernet\d+/\d+/\d+")
"""How NX-OS splits a cage, and begins the section of a part."""
PORTS_PATIENCE, PORTS_POLL = 60.0, 1.0
"""Seconds for the ports of cages that were split to come, and between looks."""


class NxosDevice(TypedDevice):
    """Target nxos: a checkpoint to roll back to (Nexus 9000 System Management, Rollback).

    Without a timer: a device that is not reached keeps the change until it is started again. Staged
    commits with one are for interactive sessions only (Two-stage Configuration Commit, 10.5).
    """

    file = "nxos.cfg"
    shown = "show running-config"
    held = ("show ip route vrf all | json", "show ipv6 route vrf all | json")
    before = ("checkpoint {change}",)
    open = ("configure terminal",)
    committed = ("end",)
    accepted = ("no checkpoint {change}",)
    rejected = ("rollback running-config checkpoint {change}", "no checkpoint {change}")
    saved = ("copy running-config startup-config",)
    refused = re.compile(
        r"^.*(% ?Invalid|% ?Incomplete|% ?Ambiguous|% ?Permission denied|ERROR:|Error:).*$", re.M
    )

    def beside(self) -> Sequence[str]:
        """See `ConfiguredDevice.beside`: a port that is split is not split again, and stays up."""
        there = set(map(str.strip, self.running().splitlines()))
        return [
            line
            for line in super().beside()
            if not line.startswith(SPLIT) or line.strip() not in there
        ]

    def change(self, lines: Sequence[str]) -> None:
        """See `ConfiguredDevice.change`: ports that are split first, which takes a while.

        Each interface is entered from the top: lines below one that is refused would else be about
        the interface before it.

        Raises:
            DeviceError: it refuses some, or ports do not come.
        """
        again = ("end", "configure terminal")
        split = [line for line in lines if line.startswith(SPLIT)]
        top = [
            (*again, line) if line.startswith("interface ") else (line,)
            for line in lines
            if line not in split
        ]
        rest = [line for part in top for line in part]
        if not split:
            super().change(rest)
            return
        super().change(split)
        self._await_ports({line for line in lines if PARTED.fullmatch(line)})
        self._type(self.pending, (*self.open, *rest, *self.committed))

    def _await_ports(self, ports: set[str]) -> None:
        """Wait until the configuration has ports, by the lines that begin their sections."""
        limit = time.monotonic() + PORTS_PATIENCE
        while missing := ports - set(self.running().splitlines()):
            if time.monotonic() > limit:
                raise DeviceError(f"no {min(missing)}, {PORTS_PATIENCE:.0f} s after it was split")
            time.sleep(PORTS_POLL)


class FlatDevice(TypedDevice):
    """A system whose configuration can be had as commands, each of which stands for itself."""

    def beside(self) -> Sequence[str]:
        """See `ConfiguredDevice.beside`: without those that the device has."""
        there = set(map(str.strip, self.running().splitlines()))
        return [line for line in super().beside() if line not in there]


class JunosDevice(FlatDevice):
    """Target junos: commit confirmed (Junos CLI User Guide)."""

    file = "junos.set"
    shown = "show configuration | display set | no-more"
    held = ("show route | display json | no-more",)
    open = ("configure exclusive",)
    tried = ("commit check", "rollback 0", "exit")
    committed = ("commit confirmed {minutes} comment {change}", "exit")
    accepted = ("configure exclusive", "commit", "exit")
    rejected = ("configure exclusive", "rollback 1", "commit", "exit")
    refused = re.compile(r"^.*(error:|syntax error|unknown command|missing argument).*$", re.M)
    commits = "show system commit | no-more"

    def confirm(self) -> None:
        """See `RouterDevice.confirm`: a commit says nothing of a change that has gone back."""
        if self.pending and not self._latest():
            raise DeviceError("the change has gone back: the last commit is another one")
        super().confirm()

    def undo(self) -> None:
        """See `RouterDevice.undo`: `rollback 1` would take back what others committed."""
        if self.pending and not self._latest():
            self.pending = ""
        super().undo()

    def _latest(self) -> bool:
        """Whether the last commit is the change; its comment stands below it."""
        entry = re.search(r"^ *0 .*?(?=^ *1 |\Z)", self.shell.run(self.commits), re.M | re.S)
        return bool(entry and self.pending in entry[0])

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return junos_lines(text)


class SrlinuxDevice(FlatDevice):
    """Target srlinux: commit confirmed (SR Linux Configuration Basics)."""

    file = "srlinux.json"
    shown = "info flat from running"
    held = ("info from state network-instance * route-table | as json",)
    open = ("enter candidate private name {change}",)
    tried = ("commit validate", "discard now")
    committed = (f"commit confirmed timeout {60 * CONFIRM_MINUTES}",)
    accepted = ("tools system configuration confirmed-accept",)
    rejected = ("tools system configuration confirmed-reject",)
    saved = ("save startup",)
    refused = re.compile(r"^.*(Error|Parsing error|Unknown token|Invalid value).*$", re.M)

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`: as commands."""
        commands = srlinux_commands(json.loads(self.text(self.file)))
        return "".join(f"{line}\n" for line in commands)

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return srlinux_lines(text)


TABLES = "vtysh -c 'show ip route table all json' -c 'show ipv6 route table all json'"
OWN_PROTOCOLS = frozenset({"static", "connected", "local"})
"""Those of the routes that a configuration says itself."""
DAEMON = """grep -q '^{name}=yes' {etc}/frr/daemons || {{
  sed -i 's/^{name}=.*/{name}=yes/' {etc}/frr/daemons && systemctl restart frr
}}"""


class FrrDevice(ConfiguredDevice):
    """Target frr."""

    elsewhere = frozenset({"frr.conf"})
    others = "protocols that frr.conf does not speak"

    def names(self) -> DeviceNames:
        """See `RouterDevice.names`: FRR says the machine's until it has its own."""
        return RouterDevice.names(self)

    def running(self) -> str:
        """See `ConfiguredDevice.running`."""
        return self.shell.run("vtysh -c 'show running-config'")

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`."""
        return self.text("frr.conf")

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return section_lines(text)

    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign`: of protocols that the configuration does not speak."""
        own = OWN_PROTOCOLS | ({"bgp"} if SPEAKS_BGP.search(self.rendered()) else set())
        texts = []
        for document in json_outputs(tables):
            for prefix, routes in document.items() if isinstance(document, dict) else ():
                if others := [one for one in routes if one.get("protocol") not in own]:
                    texts.append(json.dumps({prefix: others}))
        return [one for one in compare("\n".join(texts)) if one.found] if texts else []

    def load(self, add: Remediation) -> None:
        """See `RouterDevice.load`: with interfaces, which may be new, and BGP."""
        self.load_links()
        text = self.rendered()
        for name, words in (("bgpd", "router bgp"), ("bfdd", " bfd")):
            if words in text:
                self.shell.run(self._quoted(DAEMON, name=name))
        super().load(add)
        self.add_rules()

    def remove(self, stale: Remediation) -> None:
        """See `RouterDevice.remove`: rules first, while the tables that they lead to are there."""
        self.remove_rules()
        super().remove(stale)

    def change(self, lines: Sequence[str]) -> None:
        """See `ConfiguredDevice.change`: vtysh reads files only."""
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            self.shell.put(f"{self.etc}/polarfab", {"vtysh.conf": text})
            self.shell.run(f"vtysh -f {shlex.quote(f'{self.etc}/polarfab/vtysh.conf')}")

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return "".join(map(self.shell.run, (TABLES, *RULES.values())))

    def save(self) -> None:
        """See `RouterDevice.save`."""
        self.shell.run("vtysh -c 'write memory'")
        self.shell.run(self._quoted(UNIT))
