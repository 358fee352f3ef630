"""A Linux kernel as a router, by a shell as root.

Files are in ETC/polarfab, as Ansible puts them (docs/targets/routers.md).
"""

from __future__ import annotations

import hashlib
import json
import shlex
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_interface
from itertools import groupby
from typing import Any, ClassVar

from compilers.targets.devices.device_shell import DeviceShell
from compilers.targets.devices.route_differences import RouteDifference
from compilers.targets.devices.route_lines import Remediation
from compilers.targets.devices.router_device import Compare, DevicePlan, RouterDevice
from compilers.targets.linux.route_lines import kernel_remediation, rule_remediation
from compilers.targets.linux.routing_tables import OURS

ROUTES = "ip -json route show table all"
ASK_NAME = "sed -n 's/^# \\(.*\\): build .*/\\1/p' {etc}/polarfab/load.sh 2>&-; uname -n"
"""The node whose files it has; a machine that has none says its own name."""
SUMS = "sha256sum {etc}/polarfab/* 2>&- || true"
LOADED = "cat {etc}/polarfab/links.batch 2>&- || true"
PORTS = "ip -json -details address"
SETTINGS = "cd /proc/sys && xargs grep -s '' /dev/null || true"
KERNEL_OWN = "kernel"
"""The protocol of routes that come with an interface's addresses."""
NEXTHOPS = "ip -json nexthop"
RULES = ("ip -json -4 rule", "ip -json -6 rule")
UNIT, NO_SYSTEMD = "polarfab.service", "no systemd\n"
ENABLED = f"""if [ ! -d /run/systemd/system ]; then echo {NO_SYSTEMD.strip()}
elif systemctl -q is-enabled polarfab; then cat {{etc}}/systemd/system/{UNIT} 2>&- || true; fi"""
"""The unit that brings the files back after a reboot."""
WRITE, SETTING = "write ", "net/"
PROGRAMS = {
    "link": "ip -batch - 2>&1",
    "address": "ip -batch - 2>&1",
    "-4": "ip -4 -batch - 2>&1",
    "-6": "ip -6 -batch - 2>&1",
    "route": "ip -force -batch - 2>&1 || true",
    "nexthop": "ip -force -batch - 2>&1 || true",
    "sed": "sh -se",
    "systemctl": "sh -se",
}
"""What takes a line of a plan, by its first word. Routes over links that are down fail, and are
found later."""


class KernelDevice(RouterDevice):
    """A Linux kernel: its interfaces, addresses, settings and policy rules."""

    shell: DeviceShell
    elsewhere: ClassVar[frozenset[str]] = frozenset()
    """Files that do not go to ETC/polarfab."""

    def name(self) -> str:
        """See `RouterDevice.name`."""
        return (self._ask(ASK_NAME).splitlines() or [""])[0]

    def _ask(self, template: str) -> str:
        return self.shell.run(template.format(etc=shlex.quote(self.etc)))

    def kernel_plan(self) -> DevicePlan:
        """The part of the plan that is about the kernel, but for routes.

        A port is shut by hand if it is down although an earlier push has set it up, and the unit
        sets it up after a reboot. So links.batch counts only if it is written, which is after its
        lines were typed, and if the unit is enabled, which is after a push has saved. The other
        files come first: the unit of an earlier push loads them whenever a link comes up.
        """
        shown = {one["ifname"]: one for one in json.loads(self.shell.run(PORTS))}
        unit = self._ask(ENABLED)
        before = set(self._ask(LOADED).splitlines() if unit else ())
        lines, shut = [], []
        for line in self._links():
            words = line.split()
            if words[-1] == "up" and line in before and words[2] in shown:
                port = words[2]
                if not _has(shown, ["link", "set", port, "up"]) and not self.opens:
                    shut.append(port)
                    words.pop()
            if words[3:] and not _has(shown, words):
                lines.append(" ".join(words))
        first = [line for line in lines if line.startswith("link add ")]
        rest = [line for line in lines if line not in first]
        files = [*self._unlike()]
        last = [line for line in files if line.endswith("/links.batch")]
        files = [line for line in files if line not in last]
        rules = Remediation((), ())
        if (self.files / "rules.batch").exists():
            four, six = map(self.shell.run, RULES)
            rules = rule_remediation(four, six, self.text("rules.batch"))
        return DevicePlan(
            links=(*files, *first, *self._settings(shown), *rest, *last),
            add=rules.add,
            remove=rules.remove,
            shut=frozenset(shut),
            save=() if unit in (self._texts()[UNIT], NO_SYSTEMD) else self._install,
        )

    @property
    def _install(self) -> tuple[str, ...]:
        etc = shlex.quote(self.etc)
        copied = f"cp {etc}/polarfab/{UNIT} {etc}/systemd/system/{UNIT}"
        return copied, "systemctl daemon-reload", "systemctl enable polarfab"

    def _links(self) -> Iterator[str]:
        """The lines about links and addresses, bridges first."""
        batches = [self.files / name for name in ("links.batch", "addresses.batch")]
        text = "".join(file.read_text() for file in batches if file.exists())
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        made = {line.split()[2] for line in lines if line.startswith("link add ")}
        bridges = dict.fromkeys(line.split()[4] for line in lines if " master " in line)
        yield from (f"link add {name} type bridge" for name in bridges if name not in made)
        yield from lines

    def _settings(self, shown: Mapping[str, Any]) -> Iterator[str]:
        """The lines of sysctl.conf that do not hold, or are about devices that come with the push.

        One that the kernel has not at all is no setting of this kernel.
        """
        wanted = dict(
            line.split(" = ") for line in self.text("sysctl.conf").splitlines() if " = " in line
        )
        said = self.shell.run(SETTINGS, "\n".join(wanted)).splitlines()
        there = dict(line.split(":", 1) for line in said)
        for name, value in wanted.items():
            if there.get(name, value).split() != value.split():
                yield f"{name} = {value}"
            elif name not in there:
                parts = name.split("/")
                if parts[2:3] == ["conf"] and parts[3] not in {"all", "default", *shown}:
                    yield f"{name} = {value}"

    def _unlike(self) -> Iterator[str]:
        """The lines that write files in ETC/polarfab which are not the rendered ones."""
        sums = (line.split(None, 1) for line in self._ask(SUMS).splitlines())
        there = {place.rpartition("/")[2]: digest for digest, place in sums}
        for name, text in self._texts().items():
            if there.get(name) != hashlib.sha256(text.encode()).hexdigest():
                yield f"{WRITE}{self.etc}/polarfab/{name}"

    def _texts(self) -> dict[str, str]:
        here = sorted(file for file in self.files.iterdir() if not file.name.startswith("."))
        texts = {file.name: file.read_text() for file in here if file.name not in self.elsewhere}
        return {name: text.rstrip("\n") + "\n" for name, text in texts.items()}

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`: in place, without the pause of `load.sh`."""
        for program, group in groupby(lines, _program):
            if program == WRITE:
                names = {line.rpartition("/")[2] for line in group}
                texts = {name: text for name, text in self._texts().items() if name in names}
                self.shell.put(f"{self.etc}/polarfab", texts)
            elif program:
                said = (line.removeprefix("-4 ").removeprefix("-6 ") for line in group)
                self.shell.run(program, "".join(f"{line}\n" for line in said))
            else:
                self.configure(tuple(group))

    def configure(self, lines: Sequence[str]) -> None:
        """Type lines that are not for the kernel."""

    @abstractmethod
    def of_others(self, tables: str) -> Iterator[Any]:
        """The JSON documents of the routes in tables that no push of this target installs."""

    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign`: the protocol of a route says whose it is."""
        text = "\n".join(map(json.dumps, self.of_others(tables)))
        return [difference for difference in compare(text) if difference.found] if text else []


def _program(line: str) -> str:
    """What takes a line; "": the configuration of a router on it."""
    first = line.partition(" ")[0]
    if first.startswith(SETTING):
        return "sysctl --quiet --ignore --load=/dev/stdin"
    return WRITE if line.startswith(WRITE) else PROGRAMS.get(first, "")


def _has(shown: Mapping[str, Any], words: Sequence[str]) -> bool:
    """Whether a line for `ip` about a link or an address holds, by what PORTS shows."""
    match words:
        case ["link", "add", name, *_]:
            return name in shown
        case ["address", "replace", address, "dev", name, *_]:
            held = shown.get(name, {}).get("addr_info", ())
            texts = (f"{one['local']}/{one['prefixlen']}" for one in held)
            return any(ip_interface(text) == ip_interface(address) for text in texts)
        case ["link", "set", name, *rest]:
            one = shown.get(name)
            if one is None:
                return False
            if rest[-1:] == ["up"] and "UP" not in one.get("flags", ()):
                return False
            said = {"mtu": "mtu", "alias": "ifalias", "master": "master"}
            pairs = zip(rest[::2], rest[1::2], strict=False)  # without a last `up`
            return all(str(one.get(said[word], "")) == text for word, text in pairs)
    return False


class LinuxDevice(KernelDevice):
    """Target linux."""

    apart = "next hops of the kernel are numbered by build, so routes of two cannot mix"

    def plan(self) -> DevicePlan:
        """See `RouterDevice.plan`."""
        found = self.shell.run(ROUTES), self.shell.run(NEXTHOPS)
        routes, plan = kernel_remediation(*found, self.text("routes.batch")), self.kernel_plan()
        return replace(plan, add=(*routes.add, *plan.add), remove=(*plan.remove, *routes.remove))

    def of_others(self, tables: str) -> Iterator[Any]:
        """See `KernelDevice.of_others`: routes of protocols other than 80."""
        shown = json.JSONDecoder().raw_decode(tables)[0]
        if others := [one for one in shown if str(one.get("protocol")) not in (OURS, KERNEL_OWN)]:
            yield others

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return "".join(map(self.shell.run, (ROUTES, NEXTHOPS, *RULES)))
