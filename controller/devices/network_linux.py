"""SONiC, by its shell: entries of CONFIG_DB, and FRR's own file."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

from compilers.audit.route_differences import RouteDifference
from compilers.audit.route_lines import (
    STATIC_ROUTE,
    Remediation,
    RouteLine,
    fabric_lines,
    section_lines,
    sonic_lines,
)
from controller.devices.configured_device import (
    CONFIRM_MINUTES,
    DRAINED,
    SPEAKS_BGP,
    WITHDRAWN,
    ComparedLines,
    ConfiguredDevice,
    by_section,
    typed,
)
from controller.devices.device_shell import DeviceShell
from controller.devices.router_device import PORTS_SHUT, Compare, DeviceNames, DevicePlan
from inventory.neighbours.facts import mapping

ADMIN = "admin_status"
RESTART = "systemctl restart bgp"
BEFORE = "frr.conf.before"
"""The file of a pending change next to `frr.conf`: what that was."""
FRR_FRAME = re.compile(
    r"\s*(!|#|$|frr |(no )?fpm |hostname |service |log |(enable )?password |vrf |exit|end\b)"
)
"""Lines of `frr.conf` that are about no route and no session."""
USERS_LINE = re.compile(r"(log|password|enable password|service) ")
"""Those that users write: they stay."""
DRAIN_LINE = re.compile(
    r"route-map announced-\S+ permit 5$|(match )?ip(v6)? (address )?prefix-list own-"
    r"|set as-path prepend "
)
"""What `polarfab drain` types."""
FRR_SPEAKS = re.compile(r"\s+(neighbor|network|redistribute) |router (?!bgp)")
"""Lines of a running FRR that make it speak a routing protocol to others."""


class SonicDevice(ConfiguredDevice):
    """Target sonic: a checkpoint, and a timer of systemd that rolls back to it.

    before: the text of frr.conf that a pending change replaced.
    """

    before: str | None = None
    overrules = frozenset({PORTS_SHUT})

    shell: DeviceShell

    def lost(self) -> Sequence[str]:
        """See `RouterDevice.lost`: FRR starts from `frr.conf` alone once the mode is split-unified.

        Until then SONiC writes that file, or those of the daemons, from CONFIG_DB (docker_init.sh).
        """
        file = self._frr_conf()
        shown = self._shown()
        routes = fabric_lines(section_lines(file), self.pools, self.vrf)
        ours = {part.strip() for line in routes for part in line.add.splitlines()}
        written = [line.strip() for line in self.text("frr.conf").splitlines()]
        # FRR shows `neighbor X bfd profile Y` in two lines.
        ours |= {*written, *(line.partition(" profile ")[0] for line in written)}
        theirs = [line.strip() for line in file.splitlines() if not FRR_FRAME.match(line)]
        theirs += [line.strip() for line in shown.splitlines() if FRR_SPEAKS.match(line)]
        theirs = [line for line in dict.fromkeys(theirs) if not DRAIN_LINE.match(line)]
        return [line for line in theirs if line not in ours]

    def names(self) -> DeviceNames:
        """See `RouterDevice.names`."""
        metadata = mapping(mapping(json.loads(self.running())).get("DEVICE_METADATA"))
        return DeviceNames(str(mapping(metadata.get("localhost")).get("hostname", "")))

    def running(self) -> str:
        """See `ConfiguredDevice.running`."""
        return self.shell.run("sonic-cfggen -d --print-data")

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`."""
        return self.text("config_db.json")

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return sonic_lines(json.loads(text))

    def lacking(self, wanted: Iterable[RouteLine], running: str = "") -> Remediation:
        """See `ConfiguredDevice.lacking`: HSET keeps the fields that it does not name."""
        wanted, running = list(wanted), running or self.running()
        found = super().lacking(wanted, running)
        there = {line.drop: line.words for line in self.lines(running)}
        gone = tuple(
            f"{line.drop.replace(' DEL ', ' HDEL ', 1)} {' '.join(fields)}"
            for line in wanted
            if (fields := sorted(_fields(there.get(line.drop, ())) - _fields(line.words)))
        )
        return Remediation((*found.add, *gone), found.remove)

    def compared(self, running: str) -> ComparedLines:
        """See `ConfiguredDevice.compared`: by the fields of every entry.

        Fields that are not rendered belong to the platform, and stay.
        """
        there, wanted = json.loads(running), json.loads(self.rendered())
        routes = {line.place for line in self.lines(self.rendered())}
        static = zip(mapping(wanted.get(STATIC_ROUTE)), sonic_lines(wanted), strict=True)
        ours = {(STATIC_ROUTE, key) for key, line in static if line.place in routes}
        missing, shut = [], []
        for table, entries in wanted.items():
            for key, entry in entries.items():
                if (table, key) in ours:
                    continue
                held = mapping(there.get(table)).get(key)
                lacks = {k: v for k, v in entry.items() if _said(mapping(held).get(k)) != _said(v)}
                if table == "PORT" and mapping(held).get(ADMIN) == "down" and ADMIN in lacks:
                    shut.append(key)
                    if not self.opens:
                        del lacks[ADMIN]
                if lacks or held is None:
                    missing.append(_set(table, key, lacks or {"NULL": "NULL"}))
        held_shut = [] if self.opens else shut
        kept = tuple(f"port {port} is shut" for port in held_shut)
        return ComparedLines(tuple(missing), (), kept, frozenset(held_shut))

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `RouterDevice.plan`: with `frr.conf`, from which FRR starts."""
        text, there = self._conf(), self._frr_conf()
        found = replace(super().plan(wanted), drained=_drained(self._shown()))
        if _conf_lines(there) == _conf_lines(text):
            return found
        new = _conf_lines(there, drained=False) != _conf_lines(text, drained=False)
        restarts = (RESTART,) if new and SPEAKS_BGP.search(text) else ()
        return replace(found, files=(self._place,), kernel=restarts)

    def load(self, plan: DevicePlan) -> None:
        """See `RouterDevice.load`: FRR reads the sessions of BGP when its container starts."""
        self.before = self._frr_conf() if plan.kernel else None
        super().load(plan)
        if self.before is not None:
            self._restart(self._conf())

    def _restart(self, text: str) -> None:
        self.shell.put(f"{self.etc}/sonic/frr", {"frr.conf": text})
        self.script(RESTART)

    @property
    def _place(self) -> str:
        return f"{self.etc}/sonic/frr/frr.conf"

    def _shown(self) -> str:
        return self.shell.run("vtysh -c 'show running-config'")

    def _conf(self) -> str:
        """The frr.conf to write: with users' lines that stay, and drained while the switch is.

        FRR starts from it: else a restart would take both away.
        """
        text, shown = self.text("frr.conf"), self._shown()
        users = [line for line in self._frr_conf().splitlines() if USERS_LINE.match(line)]
        more = "".join(f"{line}\n" for line in dict.fromkeys(users) if f"{line}\n" not in text)
        text = re.sub(r"(?m)^hostname .*\n", lambda head: head[0] + more, text, count=1)
        if not _drained(shown):
            return text
        held = set(map(str.strip, shown.splitlines()))
        lines = [line.rstrip() for line in text.splitlines()]
        kept = [line for line in lines if not WITHDRAWN.match(line.strip()) or line.strip() in held]
        at = max(n for n, line in enumerate(kept) if line == "end")
        said = ((s, line) for s, line in by_section(shown) if DRAIN_LINE.match(line))
        drain = typed(((s, line) for s, line in said if not DRAINED.match(line)), ())
        return "".join(f"{line}\n" for line in (*kept[:at], *drain, *kept[at:]))

    def _frr_conf(self) -> str:
        return self.shell.run(f"cat {shlex.quote(self._place)} 2>&- || true")

    def script(self, *lines: str) -> None:
        """Run commands up to the first that fails; none before all have arrived.

        The braces see to that, and keep commands from reading those that follow.

        Raises:
            DeviceError: one fails.
        """
        text = "".join(f"{line}\n" for line in ("{", *lines, "} < /dev/null"))
        self.shell.run("sh -se", text)

    def change(self, lines: Sequence[str]) -> None:
        """See `ConfiguredDevice.change`; the timer has the old frr.conf back, too."""
        if lines or self.before is not None:
            self.pending = name = f"polarfab-{token_hex(4)}"
            timer, back = f"--on-active={CONFIRM_MINUTES}m --unit={name}", f"config rollback {name}"
            if self.before is not None:
                self.shell.put(f"{self.etc}/sonic/frr", {BEFORE: self.before})
                place = f"{self.etc}/sonic/frr/"
                words = f"mv {shlex.quote(place + BEFORE)} {shlex.quote(self._place)}"
                back = f"sh -c {shlex.quote(f'{back}; {words}; {RESTART}')}"
            self.script(f"config checkpoint {name}", f"systemd-run {timer} {back}", *lines)

    def confirm(self) -> None:
        """See `RouterDevice.confirm`."""
        if name := self.pending:
            self.script(f"systemctl stop {name}.timer", f"config delete-checkpoint {name}")
        self.pending, self.before = "", None

    def undo(self) -> None:
        """See `RouterDevice.undo`."""
        if name := self.pending:
            self.script(f"config rollback {name}")
        if self.before not in (None, self._frr_conf()):
            self._restart(self.before or "")
        self.confirm()

    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign`: frr.conf speaks BGP, which finds others around shut ports."""
        speaks = SPEAKS_BGP.search(self.text("frr.conf"))
        return [] if speaks else super().foreign(tables, compare)

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return self.shell.run("sonic-db-dump -n APPL_DB -k 'ROUTE_TABLE*' -y")

    def save(self, plan: DevicePlan) -> None:
        """See `RouterDevice.save`: FRR starts from its own file."""
        if plan.files:
            self.shell.put(f"{self.etc}/sonic/frr", {"frr.conf": self._conf()})
        self.script("config save -y")


def _set(table: str, key: str, fields: Mapping[str, Any]) -> str:
    """The command that writes fields of an entry; lists have a name of their own there."""
    pairs = (
        (f"{name}@", ",".join(map(str, value))) if isinstance(value, list) else (name, str(value))
        for name, value in fields.items()
    )
    words = " ".join(f"{shlex.quote(name)} {shlex.quote(value)}" for name, value in pairs)
    return f"sonic-db-cli CONFIG_DB HSET {shlex.quote(f'{table}|{key}')} {words}"


def _said(value: object) -> object:
    return list(map(str, value)) if isinstance(value, list) else str(value)


def _drained(shown: str) -> bool:
    return any(map(DRAINED.match, shown.splitlines()))


def _conf_lines(text: str, *, drained: bool = True) -> list[str]:
    """The lines of frr.conf about routes and sessions, without those of a drain if wished."""
    lines = [line.rstrip() for line in text.splitlines() if not FRR_FRAME.match(line)]
    if drained:
        return lines
    bare = ((line, line.strip()) for line in lines)
    left = [line for line, word in bare if not DRAIN_LINE.match(word) and not WITHDRAWN.match(word)]
    return list(dict.fromkeys(left))  # a drain leads to a section of the fabric's once more


def _fields(words: Iterable[str]) -> set[str]:
    return {shlex.quote(word.partition("=")[0]) for word in words}
