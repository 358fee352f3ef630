"""Pushes to a SONiC switch by its shell: entries of CONFIG_DB, and the file frr.conf.

CONFIG_DB is SONiC's configuration database: tables of entries, each with fields. A push is
protected by `config checkpoint` and a timer of systemd that rolls back to the checkpoint, unless
the push is confirmed. In the mode split-unified FRR starts from frr.conf alone
(docs/targets/routers.md). `controller.devices` runs the push.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

from compilers.readers.devices.neighbour_facts import as_mapping
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
"""The field of a port that says whether it is up."""
RESTART_FRR = "systemctl restart bgp"
"""Restarts the container of FRR, which reads frr.conf."""
STOP_TIMERS = "systemctl stop 'polarfab-*.timer'"
"""Stops the timers that take pushes back."""
LIST_TIMERS = "systemctl list-units --no-legend 'polarfab-*.timer'"
"""Prints a line for each such timer."""
NO_FIELDS = {"NULL": "NULL"}
"""The field that CONFIG_DB has in an entry without fields."""
FRR_OTHER_LINES = re.compile(
    r"\s*(!|#|$|frr |(no )?fpm |hostname |service |log |(enable )?password |vrf |exit|end\b)"
)
"""Lines of frr.conf that are about neither routes nor sessions: `!`, `hostname leaf7`, `exit`."""
USERS_LINE = re.compile(r"(log|password|enable password|service) ")
"""Lines of frr.conf that users write, such as `log syslog`; a push leaves them there."""
DRAIN_LINE = re.compile(
    r"route-map announced-\S+ permit 5$|(match )?ip(v6)? (address )?prefix-list own-"
    r"|set as-path prepend "
)
"""Lines that `polarfab drain` types."""
FRR_SPEAKS = re.compile(r"\s+(neighbor|network|redistribute) |router (?!bgp)")
"""Lines of the running configuration of FRR that make it speak a routing protocol."""


class SonicDevice(ConfiguredDevice):
    """A switch that runs SONiC."""

    shell: DeviceShell
    """The shell of the switch."""
    rollback: tuple[str, ...] = ()
    """The commands that take the pending change back."""
    can_overrule = frozenset({PORTS_SHUT})
    save_commands = (STOP_TIMERS, "config save -y")

    def _others_lines(self, frr_conf: str, running: str) -> Iterator[str]:
        """The lines that others configured, and that a new frr.conf would lose.

        In the mode split-unified FRR starts from this file alone. In other modes SONiC writes it,
        or the files of the daemons, from CONFIG_DB (docker_init.sh).

        Args:
            frr_conf: the file on the switch.
            running: the running configuration of FRR.
        """
        routes = fabric_lines(section_lines(frr_conf), self.pools, self.vrf)
        of_polarfab = {part.strip() for line in routes for part in line.add.splitlines()}
        rendered = [line.strip() for line in self.text("frr.conf").splitlines()]
        # FRR shows `neighbor X bfd profile Y` in two lines.
        of_polarfab |= {*rendered, *(line.partition(" profile ")[0] for line in rendered)}
        present = [line.strip() for line in _conf_lines(frr_conf)]
        present += [line.strip() for line in running.splitlines() if FRR_SPEAKS.match(line)]
        for line in dict.fromkeys(present):
            if line not in of_polarfab and not DRAIN_LINE.match(line):
                yield line

    def name(self) -> str:
        """See `RouterDevice.name`."""
        metadata = as_mapping(as_mapping(json.loads(self.running())).get("DEVICE_METADATA"))
        return str(as_mapping(metadata.get("localhost")).get("hostname", ""))

    def running(self) -> str:
        """See `ConfiguredDevice.running`."""
        return self.shell.run("sonic-cfggen -d --print-data")

    def saved(self) -> str:
        """See `ConfiguredDevice.saved`: `config save` writes it in the form of `running`."""
        return self._file("config_db.json") or "{}"

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`."""
        return self.text("config_db.json")

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return sonic_lines(json.loads(text))

    def route_changes(self, wanted: Iterable[RouteLine], running: str) -> Remediation:
        """See `ConfiguredDevice.route_changes`: also the commands that drop fields of routes.

        HSET, which writes an entry, keeps the fields that it does not name.
        """
        wanted = list(wanted)
        missing = super().route_changes(wanted, running)
        running_words = {line.drop: line.words for line in self.lines(running)}
        drop_fields = []
        for line in wanted:
            stale_fields = _fields(running_words.get(line.drop, ())) - _fields(line.words)
            if stale_fields:
                command = line.drop.replace(" DEL ", " HDEL ", 1)
                drop_fields.append(f"{command} {' '.join(sorted(stale_fields))}")
        return Remediation((*missing.add, *drop_fields), missing.remove)

    def section_plan(self, running: str) -> DevicePlan:
        """See `ConfiguredDevice.section_plan`: entries are compared field by field.

        Fields that are not rendered belong to the platform, and stay.
        """
        present, rendered = json.loads(running), json.loads(self.rendered())
        routes = self._rendered_routes(rendered)
        missing, shut = [], []
        for table, entries in rendered.items():
            for key, entry in entries.items():
                if (table, key) in routes:
                    continue
                present_entry = as_mapping(present.get(table)).get(key)
                changes = _changes(as_mapping(present_entry), entry)
                is_down = as_mapping(present_entry).get(ADMIN) == "down"
                if table == "PORT" and is_down and ADMIN in changes:
                    shut.append(key)
                    if not self.opens_ports:
                        del changes[ADMIN]
                if changes or present_entry is None:
                    missing.append(_hset(table, key, changes or NO_FIELDS))
        return DevicePlan(add=tuple(missing), shut=frozenset(() if self.opens_ports else shut))

    def _rendered_routes(self, rendered: Mapping[str, Any]) -> set[tuple[str, str]]:
        """Table and key of the rendered entries that are routes, which `route_changes` compares."""
        places = {line.place for line in self.lines(self.rendered())}
        entries = zip(as_mapping(rendered.get(STATIC_ROUTE)), sonic_lines(rendered), strict=True)
        return {(STATIC_ROUTE, key) for key, line in entries if line.place in places}

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `RouterDevice.plan`: also the file frr.conf, from which FRR starts.

        While the switch is drained the file stays: FRR would start again without the drain.

        Raises:
            DeviceError: others have configured routes or sessions, which the file would lose.
        """
        frr_conf = self._file("frr/frr.conf")
        running = self.shell.run("vtysh -c 'show running-config'")
        if others := [*self._others_lines(frr_conf, running)]:
            given = "; ".join(others[:MOST_NAMED])
            if len(others) > MOST_NAMED:
                given += "; …"
            required = "no configuration of others that the saved files replace"
            raise DeviceError(f"required {required}, given {given}; take it away first")
        plan, text = super().plan(wanted), self._new_frr_conf(frr_conf)
        save = plan.save
        if not save and self.shell.run(LIST_TIMERS).strip():
            save = self.save_commands
        plan = replace(plan, save=save, drained=any(map(DRAINED.match, running.splitlines())))
        if _conf_lines(frr_conf) == _conf_lines(text):
            return plan
        if plan.drained:
            return replace(plan, kept=(*plan.kept, "frr.conf: waits for the end of the drain"))
        restart = (RESTART_FRR,) if self.bgp else ()
        return replace(plan, add=(*plan.add, f"{WRITE}{self._frr_conf}", *restart))

    @property
    def _frr_conf(self) -> str:
        """The path of frr.conf on the switch."""
        return f"{self.etc}/sonic/frr/frr.conf"

    def _file(self, name: str) -> str:
        """The text of a file below ETC/sonic on the switch; "" where there is none."""
        return self.shell.run(f"cat {shlex.quote(f'{self.etc}/sonic/{name}')} 2>&- || true")

    def _new_frr_conf(self, frr_conf: str) -> str:
        """The rendered frr.conf, with the lines of users that are in the file on the switch."""
        text = self.text("frr.conf")
        lines = [line for line in frr_conf.splitlines() if USERS_LINE.match(line)]
        users_lines = "".join(
            f"{line}\n" for line in dict.fromkeys(lines) if f"{line}\n" not in text
        )
        return re.sub(
            r"(?m)^hostname .*\n", lambda hostname: hostname[0] + users_lines, text, count=1
        )

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`: after a checkpoint, with a timer that rolls back to it.

        The timer puts the old frr.conf back, too. Timers of earlier pushes that broke off are
        stopped first, as they would take this push back.
        """
        if not lines:
            return
        checkpoint, write_frr_conf = f"polarfab-{token_hex(4)}", f"{WRITE}{self._frr_conf}"
        prepare = [STOP_TIMERS, f"config checkpoint {checkpoint}"]
        self.rollback = (f"config rollback {checkpoint}",)
        if write_frr_conf in lines:
            path = shlex.quote(self._frr_conf)
            prepare += [f"touch {path}", f"cp -p {path} {path}.before"]
            self.rollback += (f"mv {path}.before {path}",)
            if RESTART_FRR in lines:
                self.rollback += (RESTART_FRR,)
        rollback = f"sh -c {shlex.quote('; '.join(self.rollback))}"
        timer = f"systemd-run --on-active={CONFIRM_MINUTES}m --unit={checkpoint} {rollback}"
        self.shell.script(*prepare, timer)
        self.pending = checkpoint
        if write_frr_conf not in lines:
            self.shell.script(*lines)
            return
        index = lines.index(write_frr_conf)
        if index:
            self.shell.script(*lines[:index])
        # The file and the lines behind it in one script, so that FRR never starts without the file.
        text = self._new_frr_conf(self._file("frr/frr.conf"))
        self.shell.put(f"{self.etc}/sonic/frr", {"frr.conf": text}, *lines[index + 1 :])

    def confirm(self) -> None:
        """See `RouterDevice.confirm`."""
        if checkpoint := self.pending:
            self.shell.script(STOP_TIMERS, f"config delete-checkpoint {checkpoint}")
        self.pending = ""

    def undo(self) -> bool:
        """See `RouterDevice.undo`."""
        has_pending = bool(self.pending)
        if has_pending:
            self.shell.script(*self.rollback)
        self.confirm()
        return has_pending

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return self.shell.run(COMMANDS)


def _hset(table: str, key: str, fields: Mapping[str, Any]) -> str:
    """The command that writes fields of an entry; the name of a list ends in `@` in CONFIG_DB."""
    pairs = (
        (f"{name}@", ",".join(map(str, value))) if isinstance(value, list) else (name, str(value))
        for name, value in fields.items()
    )
    words = " ".join(f"{shlex.quote(name)} {shlex.quote(value)}" for name, value in pairs)
    return f"sonic-db-cli CONFIG_DB HSET {shlex.quote(f'{table}|{key}')} {words}"


def _changes(present: Mapping[str, Any], rendered: Mapping[str, Any]) -> dict[str, Any]:
    """The rendered fields of an entry that the switch lacks, or has with another value."""
    return {
        name: value
        for name, value in rendered.items()
        if _comparable(present.get(name)) != _comparable(value)
    }


def _comparable(value: object) -> object:
    """A value as texts: CONFIG_DB has no numbers."""
    return list(map(str, value)) if isinstance(value, list) else str(value)


def _conf_lines(text: str) -> list[str]:
    """The lines of frr.conf about routes and sessions."""
    return [line.rstrip() for line in text.splitlines() if not FRR_OTHER_LINES.match(line)]


def _fields(words: Iterable[str]) -> set[str]:
    """The names of fields among words FIELD=VALUE, quoted for a shell."""
    return {shlex.quote(word.partition("=")[0]) for word in words}
