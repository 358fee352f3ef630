"""Linux systems with a configuration of their own: SONiC and Cumulus, by their shells."""

from __future__ import annotations

import json
import re
import shlex
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from secrets import token_hex
from typing import Any

from compilers.audit.route_lines import (
    SET,
    STATIC_ROUTE,
    RouteLine,
    fabric_lines,
    nvue_lines,
    section_lines,
    sonic_lines,
)
from compilers.audit.route_remediation import Remediation
from controller.devices.configured_device import CONFIRM_MINUTES, SPEAKS_BGP, ConfiguredDevice
from controller.devices.router_device import DeviceNames
from inventory.neighbours.facts import mapping

FRR_FRAME = re.compile(
    r"\s*(!|#|$|frr |(no )?fpm |hostname |service |log |password |vrf |exit|end\b)"
)
"""Lines of `frr.conf` that are about no route and no session."""
FRR_SPEAKS = re.compile(r"\s+(neighbor|network|redistribute) |router (?!bgp)")
"""Lines of a running FRR that make it speak a routing protocol to others."""


class ShellDevice(ConfiguredDevice):
    """A system whose configuration is a tree, which commands of its shell change."""

    def beside(self) -> Sequence[str]:
        """See `ConfiguredDevice.beside`: the command that takes the file without the routes."""
        name = "beside.yaml"
        self.shell.put(f"{self.etc}/polarfab", {name: json.dumps(self.without_routes())})
        return [self.merge(shlex.quote(f"{self.etc}/polarfab/{name}"))]

    @abstractmethod
    def without_routes(self) -> Any:
        """The rendered tree without the static routes of the fabric."""

    @abstractmethod
    def merge(self, file: str) -> str:
        """The command that merges a file into the configuration."""

    def script(self, *lines: str) -> None:
        """Run commands up to the first that fails; none before all have arrived.

        The braces see to that, and keep commands from reading those that follow.

        Raises:
            DeviceError: one fails.
        """
        text = "".join(f"{line}\n" for line in ("{", *lines, "} < /dev/null"))
        self.shell.run("sh -se", text)


class SonicDevice(ShellDevice):
    """Target sonic: a checkpoint, and a timer of systemd that rolls back to it.

    before: the text of frr.conf that a pending change replaced.
    """

    before: str | None = None

    def lost(self) -> Sequence[str]:
        """See `RouterDevice.lost`: FRR starts from `frr.conf` alone once the mode is split-unified.

        Until then SONiC writes that file, or those of the daemons, from CONFIG_DB (docker_init.sh).
        """
        file = self._frr_conf()
        shown = self.shell.run("vtysh -c 'show running-config'")
        routes = fabric_lines(section_lines(file), self.pools, self.vrf)
        ours = {part.strip() for line in routes for part in line.add.splitlines()}
        ours |= {line.strip() for line in self.text("frr.conf").splitlines()}
        theirs = [line.strip() for line in file.splitlines() if not FRR_FRAME.match(line)]
        theirs += [line.strip() for line in shown.splitlines() if FRR_SPEAKS.match(line)]
        return [line for line in dict.fromkeys(theirs) if line not in ours]

    def load(self, add: Remediation) -> None:
        """See `RouterDevice.load`: FRR reads the sessions of BGP when its container starts."""
        before, text = self._frr_conf(), self.text("frr.conf")
        super().load(add)
        if SPEAKS_BGP.search(text) and _said(before) != _said(text):
            self.before = before
            self._restart(text)

    def _frr_conf(self) -> str:
        file = shlex.quote(f"{self.etc}/sonic/frr/frr.conf")
        return self.shell.run(f"cat {file} 2>&- || true")

    def _restart(self, text: str) -> None:
        self.shell.put(f"{self.etc}/sonic/frr", {"frr.conf": text})
        self.script("systemctl restart bgp")

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

    def lacking(self, wanted: Iterable[RouteLine]) -> Remediation:
        """See `ConfiguredDevice.lacking`: HSET keeps the fields that it does not name."""
        wanted = list(wanted)
        found = super().lacking(wanted)
        there = {line.drop: line.words for line in self.lines(self.running())}
        gone = tuple(
            f"{line.drop.replace(' DEL ', ' HDEL ', 1)} {' '.join(fields)}"
            for line in wanted
            if (fields := sorted(_fields(there.get(line.drop, ())) - _fields(line.words)))
        )
        return Remediation((*found.add, *gone), found.remove)

    def without_routes(self) -> Any:
        """See `ShellDevice.without_routes`: those of SRv6 lie outside the pools, and stay."""
        tree = json.loads(self.rendered())
        ours = {line.place for line in self.lines(self.rendered())}
        routes = zip(tree[STATIC_ROUTE].items(), sonic_lines(tree), strict=True)
        tree[STATIC_ROUTE] = {key: entry for (key, entry), line in routes if line.place not in ours}
        return {name: table for name, table in tree.items() if table}

    def merge(self, file: str) -> str:
        """See `ShellDevice.merge`."""
        return f"config load -y {file}"

    def change(self, lines: Sequence[str]) -> None:
        """See `ConfiguredDevice.change`."""
        if lines:
            self.pending = name = f"polarfab-{token_hex(4)}"
            timer = f"--on-active={CONFIRM_MINUTES}m --unit={name}"
            self.script(
                f"config checkpoint {name}",
                f"systemd-run {timer} config rollback {name}",
                *lines,
            )

    def confirm(self) -> None:
        """See `RouterDevice.confirm`."""
        if name := self.pending:
            self.script(f"systemctl stop {name}.timer", f"config delete-checkpoint {name}")
            self.pending, self.before = "", None

    def undo(self) -> None:
        """See `RouterDevice.undo`."""
        if name := self.pending:
            self.script(f"config rollback {name}")
            if self.before is not None:
                self._restart(self.before)
            self.confirm()

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return self.shell.run("sonic-db-dump -n APPL_DB -k 'ROUTE_TABLE*' -y")

    def save(self) -> None:
        """See `RouterDevice.save`: FRR starts from its own file."""
        self.shell.put(f"{self.etc}/sonic/frr", {"frr.conf": self.text("frr.conf")})
        self.script("config save -y")


def _said(text: str) -> list[str]:
    """The lines of frr.conf about routes and sessions."""
    return [line.rstrip() for line in text.splitlines() if not FRR_FRAME.match(line)]


def _fields(words: Iterable[str]) -> set[str]:
    return {shlex.quote(word.partition("=")[0]) for word in words}


def _inside(tree: Any, other: Any) -> bool:
    """Whether a tree is a part of another one."""
    if isinstance(tree, dict):
        found = mapping(other)
        return all(key in found and _inside(inner, found[key]) for key, inner in tree.items())
    return str(tree) == str(other)


def _patch(sets: Iterable[str]) -> Any:
    """Lines of `nv set` as a file; the last word of each is a value."""
    root: dict[str, Any] = {}
    for line in sets:
        *path, leaf, value = line.removeprefix(SET).split()
        tree = root
        for key in path:
            tree = tree.setdefault(key, {})
        tree[leaf] = value
    return [{"set": root}]


class NvueDevice(ShellDevice):
    """Target nvue: `nv config apply --confirm` (Cumulus Linux user guide, NVUE CLI)."""

    def names(self) -> DeviceNames:
        """See `RouterDevice.names`."""
        parts = [mapping(mapping(part).get("set")) for part in json.loads(self.running())]
        found = [mapping(part.get("system")).get("hostname", "") for part in parts]
        return DeviceNames(next((str(name) for name in found if name), ""))

    def running(self) -> str:
        """See `ConfiguredDevice.running`."""
        return self.shell.run("nv config show -o json")

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`."""
        import yaml

        return json.dumps(yaml.load(self.text("startup.yaml"), yaml.CSafeLoader))

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return [line for part in json.loads(text) for line in nvue_lines(part.get("set", {}))]

    def without_routes(self) -> Any:
        """See `ShellDevice.without_routes`."""
        parts = json.loads(self.rendered())
        ours = {line.place[1] for line in self.lines(self.rendered())}
        for part in parts:
            for vrf in part.get("set", {}).get("vrf", {}).values():
                static = vrf.get("router", {}).get("static", {})
                for prefix in static.keys() & ours:
                    del static[prefix]
        return parts

    def merge(self, file: str) -> str:
        """See `ShellDevice.merge`: JSON is YAML, too."""
        return f"nv config patch {file}"

    def beside(self) -> Sequence[str]:
        """See `ConfiguredDevice.beside`: nothing where all of it is there."""
        there = [part.get("set", {}) for part in json.loads(self.running())]
        wanted = [part.get("set", {}) for part in self.without_routes()]
        if all(any(_inside(tree, other) for other in there) for tree in wanted):
            return ()
        return super().beside()

    def change(self, lines: Sequence[str]) -> None:
        """See `ConfiguredDevice.change`: a command takes a second, so all sets are one file."""
        if sets := [line for line in lines if line.startswith(SET)]:
            self.shell.put(f"{self.etc}/polarfab", {"routes.yaml": json.dumps(_patch(sets))})
            file = shlex.quote(f"{self.etc}/polarfab/routes.yaml")
            lines = (self.merge(file), *(line for line in lines if line not in sets))
        if lines:
            self.pending = "revision"
            apply = f"nv config apply --confirm {CONFIRM_MINUTES}m -y"
            self.script("nv config detach || true", *lines, apply)

    def confirm(self) -> None:
        """See `RouterDevice.confirm`."""
        if self.pending:
            self.script("nv config apply --confirm-yes")
            self.pending = ""

    def undo(self) -> None:
        """See `RouterDevice.undo`."""
        if self.pending:
            self.script("nv config apply --confirm-no")
            self.pending = ""

    def tables(self) -> str:
        """See `RouterDevice.tables`: of FRR, which Cumulus Linux runs."""
        return self.shell.run("vtysh -c 'show ip route json' -c 'show ipv6 route json'")

    def save(self) -> None:
        """See `RouterDevice.save`."""
        self.script("nv config save")
