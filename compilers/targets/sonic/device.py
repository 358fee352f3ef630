"""Pushes to a SONiC switch by its shell: entries of CONFIG_DB, and the file frr.conf.

CONFIG_DB is SONiC's configuration database: tables of entries, each with fields. In the mode
split-unified FRR starts from frr.conf alone (docs/targets/routers.md). `controller.devices` runs a
push, in three steps:

- `plan` compares the switch with the rendered files. The lines of a plan are shell commands, except
  one that writes frr.conf (`targets.devices.file_lines`).
- `type` makes a checkpoint, starts a timer of systemd that rolls back to it, and then types the
  lines.
- `confirm` stops the timer, or `undo` rolls back at once.
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
from compilers.targets.devices.file_lines import write_line
from compilers.targets.devices.route_lines import (
    Remediation,
    RouteLine,
    fabric_lines,
    section_lines,
)
from compilers.targets.devices.router_device import MOST_NAMED, PORTS_SHUT, DevicePlan
from compilers.targets.sonic.route_lines import STATIC_ROUTE, sonic_lines
from compilers.targets.sonic.routing_tables import COMMANDS

ADMIN_STATUS = "admin_status"
"""The field of a port that says whether it is up."""
RESTART_FRR = "systemctl restart bgp"
"""Restarts the container of FRR, which reads frr.conf."""
RESTART_PATIENCE = 300.0
"""The most seconds until all sessions are up after that. The tests of SONiC (sonic-mgmt) wait as
long: 60 s were too few, as newer releases restart swss, too, and then the last session came after
4 minutes. FRR's own wait between two attempts does not count, as frr.conf makes it one second."""
STOP_TIMERS = "systemctl stop 'polarfab-*.timer'"
"""Stops the timers that roll pushes back."""
LIST_TIMERS = "systemctl list-units --no-legend 'polarfab-*.timer'"
"""Prints a line for each such timer."""
SHOW_FRR = "vtysh -c 'show running-config'"
"""Prints the running configuration of FRR."""
NO_FIELDS = {"NULL": "NULL"}
"""The field that CONFIG_DB has in an entry without fields."""
NEITHER_ROUTE_NOR_SESSION = re.compile(
    r"\s*(!|#|$|frr |(no )?fpm |hostname |service |log |(enable )?password |vrf |exit|end\b)"
)
"""Lines of frr.conf that are about neither routes nor sessions: `!`, `hostname leaf7`, `exit`."""
USERS_LINE = re.compile(r"(log|password|enable password|service) ")
"""Lines of frr.conf that users write, such as `log syslog`; a push keeps them."""
DRAIN_LINE = re.compile(
    r"route-map announced-\S+ permit 5$|(match )?ip(v6)? (address )?prefix-list own-"
    r"|set as-path prepend "
)
"""Lines that `polarfab drain` types."""
PROTOCOL_LINE = re.compile(r"\s+(neighbor|network|redistribute) |router (?!bgp)")
"""Lines of the running configuration of FRR that make it speak a routing protocol. `router bgp` is
not one of them: it says nothing without the lines below it."""


class SonicDevice(ConfiguredDevice):
    """A switch that runs SONiC.

    A change is pending from `type` to `confirm` or `undo`. Then `pending` is the name of its
    checkpoint, and `rollback` has the commands that take it back.
    """

    shell: DeviceShell
    """The shell of the switch."""
    rollback: tuple[str, ...] = ()
    """The commands that take the pending change back."""
    can_overrule = frozenset({PORTS_SHUT})
    save_commands = (STOP_TIMERS, "config save -y")

    @property
    def restart_patience(self) -> float:
        """See `RouterDevice.restart_patience`: also for neighbours of a switch that restarts it."""
        return RESTART_PATIENCE if self.bgp else 0.0

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
        # `remove` names the entry: `sonic-db-cli CONFIG_DB DEL 'STATIC_ROUTE|…'`.
        running_words = {line.remove: line.words for line in self.lines(running)}
        drop_fields = []
        for line in wanted:
            running_fields = _field_names(running_words.get(line.remove, ()))
            stale_fields = running_fields - _field_names(line.words)
            if stale_fields:
                command = line.remove.replace(" DEL ", " HDEL ", 1)
                drop_fields.append(f"{command} {' '.join(sorted(stale_fields))}")
        return Remediation((*missing.add, *drop_fields), missing.remove)

    def section_plan(self, running: str) -> DevicePlan:
        """See `ConfiguredDevice.section_plan`: entries are compared field by field.

        Fields that are not rendered belong to the platform, and stay.
        """
        present, rendered = json.loads(running), json.loads(self.rendered())
        route_keys = self._fabric_route_keys(rendered)
        commands: list[str] = []
        shut_ports: list[str] = []
        for table, entries in rendered.items():
            for key, entry in entries.items():
                if table == STATIC_ROUTE and key in route_keys:
                    continue  # `route_changes` compares it
                present_entry = as_mapping(present.get(table)).get(key)  # None: there is none
                present_fields = as_mapping(present_entry)
                changes = _changes(present_fields, entry)
                is_down = present_fields.get(ADMIN_STATUS) == "down"
                if table == "PORT" and is_down and ADMIN_STATUS in changes:
                    shut_ports.append(key)
                    if not self.opens_ports:
                        del changes[ADMIN_STATUS]
                if changes or present_entry is None:
                    commands.append(_hset(table, key, changes or NO_FIELDS))
        still_shut = () if self.opens_ports else shut_ports
        return DevicePlan(add=tuple(commands), shut=frozenset(still_shut))

    def _fabric_route_keys(self, rendered: Mapping[str, Any]) -> set[str]:
        """The keys in table STATIC_ROUTE of the rendered routes in the fabric's address pools.

        Others are compared as any other entry: those that a package adds outside of the pools.
        """
        fabric_routes = {line.key for line in self.lines(self.rendered())}
        # `sonic_lines` yields a line for each entry of the table, in the order of the entries.
        keys = as_mapping(rendered.get(STATIC_ROUTE))
        lines = zip(keys, sonic_lines(rendered), strict=True)
        return {key for key, line in lines if line.key in fabric_routes}

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `RouterDevice.plan`: also the file frr.conf, from which FRR starts.

        While the switch is drained the file stays: FRR would start again without the drain.

        Raises:
            DeviceError: others have configured routes or sessions, which the file would lose.
        """
        present_conf, running_frr = self._file("frr/frr.conf"), self.shell.run(SHOW_FRR)
        self._require_no_foreign_lines(present_conf, running_frr)
        plan = super().plan(wanted)
        save = plan.save
        if not save and self.shell.run(LIST_TIMERS).strip():
            save = self.save_commands  # they stop the timer of a push that broke off
        is_drained = any(map(DRAINED.match, running_frr.splitlines()))
        plan = replace(plan, save=save, drained=is_drained)
        new_lines = _route_and_session_lines(self._new_conf(present_conf))
        if new_lines == _route_and_session_lines(present_conf):
            return plan
        if is_drained:
            return replace(plan, kept=(*plan.kept, "frr.conf: waits for the end of the drain"))
        restart = (RESTART_FRR,) if self.bgp else ()
        return replace(plan, add=(*plan.add, self._write_conf_line, *restart))

    def _require_no_foreign_lines(self, present_conf: str, running_frr: str) -> None:
        """Refuse to replace frr.conf if lines that polarfab did not write would be lost.

        Args:
            present_conf: frr.conf on the switch.
            running_frr: the running configuration of FRR.

        Raises:
            DeviceError: there are such lines, in frr.conf or in the running configuration.
        """
        foreign = list(self._foreign_lines(present_conf, running_frr))
        if foreign:
            given = "; ".join(foreign[:MOST_NAMED])
            if len(foreign) > MOST_NAMED:
                given += "; …"
            required = (
                "no lines of others in FRR's configuration, which the saved frr.conf replaces"
            )
            raise DeviceError(f"required {required}, given {given}; take them away first")

    def _foreign_lines(self, present_conf: str, running_frr: str) -> Iterator[str]:
        """Yield the lines that others configured, and that a new frr.conf would lose.

        In the mode split-unified FRR starts from frr.conf alone. In other modes SONiC writes this
        file, or the files of the daemons, from CONFIG_DB (docker_init.sh).

        Args:
            present_conf: frr.conf on the switch.
            running_frr: the running configuration of FRR.
        """
        routes = fabric_lines(section_lines(present_conf), self.pools, self.vrf)
        of_polarfab = {part.strip() for line in routes for part in line.add.splitlines()}
        rendered = [line.strip() for line in self.text("frr.conf").splitlines()]
        # FRR shows `neighbor X bfd profile Y` in two lines.
        of_polarfab |= {*rendered, *(line.partition(" profile ")[0] for line in rendered)}
        present = [line.strip() for line in _route_and_session_lines(present_conf)]
        present += [line.strip() for line in running_frr.splitlines() if PROTOCOL_LINE.match(line)]
        for line in dict.fromkeys(present):
            if line not in of_polarfab and not DRAIN_LINE.match(line):
                yield line

    @property
    def _conf_path(self) -> str:
        """The path of frr.conf on the switch."""
        return f"{self.etc}/sonic/frr/frr.conf"

    @property
    def _write_conf_line(self) -> str:
        """The line of a plan that writes frr.conf."""
        return write_line(self._conf_path)

    def _file(self, name: str) -> str:
        """The text of a file below ETC/sonic on the switch; "" where there is none."""
        return self.shell.run(f"cat {shlex.quote(f'{self.etc}/sonic/{name}')} 2>&- || true")

    def _new_conf(self, present_conf: str) -> str:
        """The rendered frr.conf, with the lines of users from the file on the switch.

        They are put behind the line with the host name.
        """
        rendered = self.text("frr.conf")
        lines = [line for line in present_conf.splitlines() if USERS_LINE.match(line)]
        users_lines = "".join(
            f"{line}\n" for line in dict.fromkeys(lines) if f"{line}\n" not in rendered
        )
        return re.sub(
            r"(?m)^hostname .*\n", lambda hostname: hostname[0] + users_lines, rendered, count=1
        )

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`: after a checkpoint, with a timer that rolls back to it.

        The timer puts the old frr.conf back, too. Timers of earlier pushes that broke off are
        stopped first, as they would take this push back.
        """
        if not lines:
            return
        self._start_timer(lines)
        if self._write_conf_line not in lines:
            self.shell.script(*lines)
            return
        index = lines.index(self._write_conf_line)
        if index:
            self.shell.script(*lines[:index])
        # The file and the lines behind it in one script, so that FRR never starts without the file.
        new_conf = self._new_conf(self._file("frr/frr.conf"))
        self.shell.put(f"{self.etc}/sonic/frr", {"frr.conf": new_conf}, *lines[index + 1 :])

    def _start_timer(self, lines: Sequence[str]) -> None:
        """Make a checkpoint, and start the timer that takes some lines back unless it is stopped.

        From then on the change is pending.
        """
        checkpoint = f"polarfab-{token_hex(4)}"
        prepare = [STOP_TIMERS, f"config checkpoint {checkpoint}"]
        self.rollback = (f"config rollback {checkpoint}",)
        if self._write_conf_line in lines:
            path = shlex.quote(self._conf_path)
            prepare += [f"touch {path}", f"cp -p {path} {path}.before"]
            self.rollback += (f"mv {path}.before {path}",)
            if RESTART_FRR in lines:
                self.rollback += (RESTART_FRR,)
        rollback = f"sh -c {shlex.quote('; '.join(self.rollback))}"
        timer = f"systemd-run --on-active={CONFIRM_MINUTES}m --unit={checkpoint} {rollback}"
        self.shell.script(*prepare, timer)
        self.pending = checkpoint

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
    """The command that writes fields of an entry.

    In CONFIG_DB the name of a field with a list ends in `@`, and its value has commas.
    """
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
    """A value with texts in the place of numbers, as CONFIG_DB has no numbers."""
    return list(map(str, value)) if isinstance(value, list) else str(value)


def _route_and_session_lines(conf: str) -> list[str]:
    """The lines of frr.conf about routes and sessions."""
    lines = conf.splitlines()
    return [line.rstrip() for line in lines if not NEITHER_ROUTE_NOR_SESSION.match(line)]


def _field_names(words: Iterable[str]) -> set[str]:
    """The names of the fields in words FIELD=VALUE, quoted for a shell."""
    return {shlex.quote(word.partition("=")[0]) for word in words}
