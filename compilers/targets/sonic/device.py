"""SONiC, by its shell: entries of CONFIG_DB, and FRR's own file."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

from compilers.readers.devices.neighbour_facts import mapping
from compilers.targets.devices.configured_device import CONFIRM_MINUTES, DRAINED, ConfiguredDevice
from compilers.targets.devices.device_shell import DeviceError, DeviceShell
from compilers.targets.devices.route_lines import (
    Remediation,
    RouteLine,
    fabric_lines,
    section_lines,
)
from compilers.targets.devices.router_device import MOST_NAMED, PORTS_SHUT, DevicePlan
from compilers.targets.linux.device import WRITE
from compilers.targets.sonic.route_lines import STATIC_ROUTE, sonic_lines
from compilers.targets.sonic.routing_tables import COMMANDS

ADMIN = "admin_status"
RESTART, STOP = "systemctl restart bgp", "systemctl stop 'polarfab-*.timer'"
TIMERS = "systemctl list-units --no-legend 'polarfab-*.timer'"
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

    back: the commands that take the pending change back.
    """

    back: tuple[str, ...] = ()
    overrules = frozenset({PORTS_SHUT})
    saves = (STOP, "config save -y")
    shell: DeviceShell

    def _theirs(self, file: str, shown: str) -> Iterator[str]:
        """What others configured that would be gone with `frr.conf`.

        FRR starts from it alone once the mode is split-unified; until then SONiC writes that file,
        or those of the daemons, from CONFIG_DB (docker_init.sh).
        """
        routes = fabric_lines(section_lines(file), self.pools, self.vrf)
        ours = {part.strip() for line in routes for part in line.add.splitlines()}
        written = [line.strip() for line in self.text("frr.conf").splitlines()]
        # FRR shows `neighbor X bfd profile Y` in two lines.
        ours |= {*written, *(line.partition(" profile ")[0] for line in written)}
        theirs = [*map(str.strip, _conf_lines(file))]
        theirs += [line.strip() for line in shown.splitlines() if FRR_SPEAKS.match(line)]
        for line in dict.fromkeys(theirs):
            if line not in ours and not DRAIN_LINE.match(line):
                yield line

    def name(self) -> str:
        """See `RouterDevice.name`."""
        metadata = mapping(mapping(json.loads(self.running())).get("DEVICE_METADATA"))
        return str(mapping(metadata.get("localhost")).get("hostname", ""))

    def running(self) -> str:
        """See `ConfiguredDevice.running`."""
        return self.shell.run("sonic-cfggen -d --print-data")

    def saved(self) -> str:
        """See `ConfiguredDevice.saved`: what `config save` writes is what `running` shows."""
        return self._file("config_db.json") or "{}"

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`."""
        return self.text("config_db.json")

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return sonic_lines(json.loads(text))

    def lacking(self, wanted: Iterable[RouteLine], running: str) -> Remediation:
        """See `ConfiguredDevice.lacking`: HSET keeps the fields that it does not name."""
        wanted = list(wanted)
        found = super().lacking(wanted, running)
        there = {line.drop: line.words for line in self.lines(running)}
        gone = tuple(
            f"{line.drop.replace(' DEL ', ' HDEL ', 1)} {' '.join(fields)}"
            for line in wanted
            if (fields := sorted(_fields(there.get(line.drop, ())) - _fields(line.words)))
        )
        return Remediation((*found.add, *gone), found.remove)

    def compared(self, running: str) -> DevicePlan:
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
        return DevicePlan(add=tuple(missing), shut=frozenset(() if self.opens else shut))

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `RouterDevice.plan`: with `frr.conf`, from which FRR starts.

        While the switch is drained it stays: FRR that starts again would be in use.
        """
        there, shown = self._file("frr/frr.conf"), self.shell.run("vtysh -c 'show running-config'")
        if theirs := [*self._theirs(there, shown)]:
            given = "; ".join(theirs[:MOST_NAMED]) + "; …" * (len(theirs) > MOST_NAMED)
            required = "no configuration of others that the saved files replace"
            raise DeviceError(f"required {required}, given {given}; take it away first")
        plan, text = super().plan(wanted), self._conf(there)
        save = plan.save or self.saves * bool(self.shell.run(TIMERS).strip())
        plan = replace(plan, save=save, drained=any(map(DRAINED.match, shown.splitlines())))
        if _conf_lines(there) == _conf_lines(text):
            return plan
        if plan.drained:
            return replace(plan, kept=(*plan.kept, "frr.conf: waits for the end of the drain"))
        return replace(plan, add=(*plan.add, f"{WRITE}{self._place}", *(RESTART,) * self.bgp))

    @property
    def _place(self) -> str:
        return f"{self.etc}/sonic/frr/frr.conf"

    def _file(self, name: str) -> str:
        return self.shell.run(f"cat {shlex.quote(f'{self.etc}/sonic/{name}')} 2>&- || true")

    def _conf(self, there: str) -> str:
        """The frr.conf to write: with users' lines that stay."""
        text = self.text("frr.conf")
        users = [line for line in there.splitlines() if USERS_LINE.match(line)]
        more = "".join(f"{line}\n" for line in dict.fromkeys(users) if f"{line}\n" not in text)
        return re.sub(r"(?m)^hostname .*\n", lambda head: head[0] + more, text, count=1)

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`; what takes it back, the old frr.conf too, is on the timer.

        The timer of an earlier push that was cut off would take this one back, too.
        """
        if not lines:
            return
        name, conf = f"polarfab-{token_hex(4)}", f"{WRITE}{self._place}"
        begin, self.back = [STOP, f"config checkpoint {name}"], (f"config rollback {name}",)
        if conf in lines:
            place = shlex.quote(self._place)
            begin += [f"touch {place}", f"cp -p {place} {place}.before"]
            restarts = (RESTART,) * (RESTART in lines)
            self.back = (*self.back, f"mv {place}.before {place}", *restarts)
        back = f"sh -c {shlex.quote('; '.join(self.back))}"
        timer = f"systemd-run --on-active={CONFIRM_MINUTES}m --unit={name} {back}"
        self.shell.script(*begin, timer)
        self.pending = name
        at = lines.index(conf) if conf in lines else len(lines)
        if before := lines[:at]:
            self.shell.script(*before)
        if conf in lines:  # what starts FRR again arrives with the file, or neither does
            text = self._conf(self._file("frr/frr.conf"))
            self.shell.put(f"{self.etc}/sonic/frr", {"frr.conf": text}, *lines[at + 1 :])

    def confirm(self) -> None:
        """See `RouterDevice.confirm`."""
        if name := self.pending:
            self.shell.script(STOP, f"config delete-checkpoint {name}")
        self.pending = ""

    def undo(self) -> bool:
        """See `RouterDevice.undo`."""
        if waits := bool(self.pending):
            self.shell.script(*self.back)
        self.confirm()
        return waits

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return self.shell.run(COMMANDS)


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


def _conf_lines(text: str) -> list[str]:
    """The lines of frr.conf about routes and sessions."""
    return [line.rstrip() for line in text.splitlines() if not FRR_FRAME.match(line)]


def _fields(words: Iterable[str]) -> set[str]:
    return {shlex.quote(word.partition("=")[0]) for word in words}
