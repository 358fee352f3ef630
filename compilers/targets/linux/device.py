"""Pushes the files of target linux, and the kernel's part of target frr, by a shell as root.

The files are written into the folder ETC/polarfab, where Ansible writes them too
(docs/targets/routers.md); ETC is `/etc`, or the folder that the user names. A push types only the
lines of the files that are not in effect yet. `controller.devices` runs a push.

The lines of a plan are of several kinds, which `KernelDevice.type` tells apart by how they begin:

- lines about links, addresses, routes, nexthop objects and rules go into `ip -batch`;
- settings, `net/ipv4/ip_forward = 1`, go into sysctl;
- commands that start services go into a shell;
- `write PATH` writes a rendered file (`targets.devices.file_lines`);
- all others are the configuration of a daemon, such as FRR (`KernelDevice.configure`).
"""

from __future__ import annotations

import hashlib
import json
import shlex
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_interface
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from compilers.targets.devices.device_shell import DeviceShell
from compilers.targets.devices.file_lines import is_write_line, write_line, written_name
from compilers.targets.devices.route_differences import RouteDifference
from compilers.targets.devices.route_lines import Remediation
from compilers.targets.devices.router_device import Compare, DevicePlan, RouterDevice
from compilers.targets.linux.route_lines import kernel_remediation, rule_remediation
from compilers.targets.linux.routing_tables import POLARFAB_PROTOCOL

SHOW_ROUTES = "ip -json route show table all"
"""Prints the routes of all tables."""
SHOW_NEXTHOPS = "ip -json nexthop"
"""Prints the nexthop objects."""
SHOW_RULES = ("ip -json -4 rule", "ip -json -6 rule")
"""Print the policy rules of each address family."""
SHOW_INTERFACES = "ip -json -details address"
"""Prints all interfaces with their addresses."""
SHOW_NAMES = "sed -n 's/^# \\(.*\\): build .*/\\1/p' {etc}/polarfab/load.sh 2>&-; uname -n"
"""Prints the node whose files the machine has, then the name of the machine itself."""
SHOW_DIGESTS = "sha256sum {etc}/polarfab/* 2>&- || true"
"""Prints the digest of each file of an earlier push."""
SHOW_LINKS_BATCH = "cat {etc}/polarfab/links.batch 2>&- || true"
"""Prints the lines about links that an earlier push has typed."""
SHOW_SETTINGS = "cd /proc/sys && xargs grep -s '' /dev/null || true"
"""Prints `NAME:VALUE` for each kernel setting whose name it reads."""
KERNEL_PROTOCOL = "kernel"
"""The protocol of routes that the kernel adds for the addresses of interfaces."""
UNIT = "polarfab.service"
"""The systemd unit that loads the files after a reboot."""
NO_SYSTEMD = "no systemd\n"
"""What SHOW_UNIT prints on a machine without systemd."""
SHOW_UNIT = f"""if [ ! -d /run/systemd/system ]; then echo {NO_SYSTEMD.strip()}
elif systemctl -q is-enabled polarfab; then cat {{etc}}/systemd/system/{UNIT} 2>&- || true; fi"""
"""Prints the text of the unit if it is enabled, nothing if it is not, and NO_SYSTEMD on a machine
without systemd."""
SETTING = "net/"
"""How a line of a plan begins that sets a setting: `net/ipv4/ip_forward = 1`."""
SET_SETTINGS = "sysctl --quiet --ignore --load=/dev/stdin"
"""The command that reads such lines."""
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
"""The command that reads lines of a plan, by the first word of a line.

Routes over links that are down fail without an error here; a push reads the routing tables
afterwards, and finds them missing."""


class _MissingLinks(NamedTuple):
    """The lines about links and addresses that are not in effect."""

    lines: tuple[str, ...]
    """The lines to type."""
    shut_ports: tuple[str, ...]
    """The names of ports that somebody has shut, and that stay so."""


class KernelDevice(RouterDevice):
    """A Linux kernel: its interfaces, addresses, settings and policy rules."""

    shell: DeviceShell
    """The shell of the machine."""
    files_elsewhere: ClassVar[frozenset[str]] = frozenset()
    """The names of files that are not written into ETC/polarfab."""

    def name(self) -> str:
        """See `RouterDevice.name`."""
        return (self._ask(SHOW_NAMES).splitlines() or [""])[0]

    def _ask(self, template: str) -> str:
        """The output of a command in which `{etc}` stands for the folder ETC."""
        return self.shell.run(template.format(etc=shlex.quote(self.etc)))

    def kernel_plan(self) -> DevicePlan:
        """The part of the plan that is about the kernel, except routes.

        Somebody has shut a port if it is down although an earlier push has set it up. The ports
        that an earlier push has set up are those of links.batch in ETC/polarfab, if the unit is
        enabled, which a push does at its end. If it is not, ports may be down since a reboot.

        The order of the plan follows from this: links.batch is written last, after its lines were
        typed. All other files are written first, as the unit of an earlier push loads them
        whenever a link comes up.
        """
        output = json.loads(self.shell.run(SHOW_INTERFACES))
        interfaces = {interface["ifname"]: interface for interface in output}
        enabled_unit = self._ask(SHOW_UNIT)
        loaded_lines = self._ask(SHOW_LINKS_BATCH).splitlines() if enabled_unit else ()
        missing = self._missing_links(interfaces, frozenset(loaded_lines))
        new_links = [line for line in missing.lines if line.startswith("link add ")]
        other_lines = [line for line in missing.lines if line not in new_links]
        writes = list(self._write_lines())
        links_batch = [line for line in writes if written_name(line) == "links.batch"]
        other_files = [line for line in writes if line not in links_batch]
        settings = self._setting_lines(interfaces)
        rules = self._rule_changes()
        is_installed = enabled_unit in (self._texts()[UNIT], NO_SYSTEMD)
        return DevicePlan(
            links=(*other_files, *new_links, *settings, *other_lines, *links_batch),
            add=rules.add,
            remove=rules.remove,
            shut=frozenset(missing.shut_ports),
            save=() if is_installed else self._enable_unit,
        )

    def _rule_changes(self) -> Remediation:
        """The lines that give the kernel the rendered policy rules, where there are any."""
        if not (self.files / "rules.batch").exists():
            return Remediation((), ())
        ipv4_rules, ipv6_rules = map(self.shell.run, SHOW_RULES)
        return rule_remediation(ipv4_rules, ipv6_rules, self.text("rules.batch"))

    def _missing_links(
        self, interfaces: Mapping[str, Any], loaded_lines: Collection[str]
    ) -> _MissingLinks:
        """The lines about links and addresses that are not in effect.

        Args:
            interfaces: what SHOW_INTERFACES prints of each interface, by its name.
            loaded_lines: the lines of links.batch that an earlier push has typed.
        """
        lines: list[str] = []
        shut_ports: list[str] = []
        for line in self._link_lines():
            words = line.split()
            match words:
                case ["link", "set", port, *_, "up"] if line in loaded_lines:
                    is_down = port in interfaces and not _is_up(interfaces[port])
                    if is_down and not self.opens_ports:
                        shut_ports.append(port)
                        words.pop()  # `up`
            has_options = len(words) > len(("link", "set", "NAME"))
            if has_options and not _is_in_effect(interfaces, words):
                lines.append(" ".join(words))
        return _MissingLinks(tuple(lines), tuple(shut_ports))

    @property
    def _enable_unit(self) -> tuple[str, ...]:
        """The commands that enable the systemd unit."""
        etc = shlex.quote(self.etc)
        copy = f"cp {etc}/polarfab/{UNIT} {etc}/systemd/system/{UNIT}"
        return copy, "systemctl daemon-reload", "systemctl enable polarfab"

    def _link_lines(self) -> Iterator[str]:
        """The lines that add bridges, then the rendered lines about links and addresses.

        These name a bridge as `link set PORT master BRIDGE`.
        """
        batches = [self.files / name for name in ("links.batch", "addresses.batch")]
        text = "".join(file.read_text() for file in batches if file.exists())
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        new_links = {line.split()[2] for line in lines if line.startswith("link add ")}
        bridges = dict.fromkeys(line.split()[4] for line in lines if " master " in line)
        yield from (f"link add {name} type bridge" for name in bridges if name not in new_links)
        yield from lines

    def _setting_lines(self, interfaces: Mapping[str, Any]) -> Iterator[str]:
        """The lines of sysctl.conf to set.

        The kernel has another value, or the setting is of an interface that this push adds. Any
        other setting that the kernel does not show is one that this kernel does not have.

        Args:
            interfaces: what SHOW_INTERFACES prints of each interface, by its name.
        """
        rendered = dict(
            line.split(" = ") for line in self.text("sysctl.conf").splitlines() if " = " in line
        )
        output = self.shell.run(SHOW_SETTINGS, "\n".join(rendered)).splitlines()
        current = dict(line.split(":", 1) for line in output)
        for name, value in rendered.items():
            if name in current:
                is_missing = current[name].split() != value.split()
            else:
                is_missing = _is_of_new_interface(name, interfaces)
            if is_missing:
                yield f"{name} = {value}"

    def _write_lines(self) -> Iterator[str]:
        """The lines that write the files which ETC/polarfab lacks, or has with another text."""
        sums = (line.split(None, 1) for line in self._ask(SHOW_DIGESTS).splitlines())
        digests = {path.rpartition("/")[2]: digest for digest, path in sums}
        for name, text in self._texts().items():
            if digests.get(name) != hashlib.sha256(text.encode()).hexdigest():
                yield write_line(f"{self.etc}/polarfab/{name}")

    def _texts(self) -> dict[str, str]:
        """The texts of the rendered files for ETC/polarfab, by name.

        All end in one line break, as `DeviceShell.put` writes them.
        """
        files = sorted(file for file in self.files.iterdir() if not file.name.startswith("."))
        texts = {
            file.name: file.read_text() for file in files if file.name not in self.files_elsewhere
        }
        return {name: text.rstrip("\n") + "\n" for name, text in texts.items()}

    def type(self, lines: Sequence[str]) -> None:
        """See `RouterDevice.type`: line by line, while packets are forwarded."""
        for writes_files, group in groupby(lines, is_write_line):
            if writes_files:
                names = set(map(written_name, group))
                texts = {name: text for name, text in self._texts().items() if name in names}
                self.shell.put(f"{self.etc}/polarfab", texts)
            else:
                self._run(group)

    def _run(self, lines: Iterable[str]) -> None:
        """Run lines that write no files, consecutive ones for one program at once."""
        for program, group in groupby(lines, _program):
            if program is None:
                self.configure(tuple(group))
            else:
                # The address family is an option of the program already.
                statements = (line.removeprefix("-4 ").removeprefix("-6 ") for line in group)
                self.shell.run(program, "".join(f"{line}\n" for line in statements))

    def configure(self, lines: Sequence[str]) -> None:
        """Type lines of the configuration of a daemon. A kernel without one has no such lines."""

    @abstractmethod
    def routes_of_others(self, tables: str) -> Iterator[Any]:
        """The routes of others in routing tables, as JSON documents in the form of the tables."""

    def foreign_routes(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign_routes`: the protocol of a route tells who has installed it."""
        text = "\n".join(map(json.dumps, self.routes_of_others(tables)))
        return [difference for difference in compare(text) if difference.found] if text else []


def _program(line: str) -> str | None:
    """The command that reads a line of a plan; None for a line of the configuration of a daemon."""
    first_word = line.partition(" ")[0]
    return SET_SETTINGS if first_word.startswith(SETTING) else PROGRAMS.get(first_word)


def _is_of_new_interface(setting: str, interfaces: Mapping[str, Any]) -> bool:
    """Whether a setting is of an interface that a machine does not have yet.

    Args:
        setting: the name of the setting, such as `net/ipv4/conf/swp1/rp_filter`.
        interfaces: the interfaces of the machine, by name.
    """
    match setting.split("/"):
        case [_, _, "conf", interface, *_]:
            return interface not in {"all", "default", *interfaces}
    return False


def _is_up(interface: Mapping[str, Any]) -> bool:
    """Whether an interface is set up, by what SHOW_INTERFACES prints of it."""
    return "UP" in interface.get("flags", ())


def _is_in_effect(interfaces: Mapping[str, Any], words: Sequence[str]) -> bool:
    """Whether a line for `ip` about a link or an address is in effect; False for other lines.

    Args:
        interfaces: what SHOW_INTERFACES prints of each interface, by its name.
        words: the words of the line.
    """
    match words:
        case ["link", "add", name, *_]:
            return name in interfaces
        case ["address", "replace", address, "dev", name, *_]:
            entries = interfaces.get(name, {}).get("addr_info", ())
            present = (f"{entry['local']}/{entry['prefixlen']}" for entry in entries)
            return any(ip_interface(text) == ip_interface(address) for text in present)
        case ["link", "set", name, *options, "up"]:
            is_up = name in interfaces and _is_up(interfaces[name])
            return is_up and _has_options(interfaces[name], options)
        case ["link", "set", name, *options]:
            return name in interfaces and _has_options(interfaces[name], options)
    return False


def _has_options(interface: Mapping[str, Any], options: Sequence[str]) -> bool:
    """Whether an interface has the options of `link set`, such as `mtu 9000 master hosts`."""
    key_of_word = {"mtu": "mtu", "alias": "ifalias", "master": "master"}
    pairs = zip(options[::2], options[1::2], strict=False)
    return all(str(interface.get(key_of_word[word], "")) == text for word, text in pairs)


class LinuxDevice(KernelDevice):
    """A machine whose kernel forwards by the files of target linux."""

    no_mix_reason = "next hops of the kernel are numbered by build, so routes of two cannot mix"

    def plan(self) -> DevicePlan:
        """See `RouterDevice.plan`."""
        shown_routes, shown_nexthops = map(self.shell.run, (SHOW_ROUTES, SHOW_NEXTHOPS))
        routes = kernel_remediation(shown_routes, shown_nexthops, self.text("routes.batch"))
        plan = self.kernel_plan()
        return replace(plan, add=(*routes.add, *plan.add), remove=(*plan.remove, *routes.remove))

    def routes_of_others(self, tables: str) -> Iterator[Any]:
        """See `KernelDevice.routes_of_others`: neither polarfab nor the kernel has added them."""
        routes = json.JSONDecoder().raw_decode(tables)[0]  # the first of the documents in `tables`
        protocols = (POLARFAB_PROTOCOL, KERNEL_PROTOCOL)
        if others := [route for route in routes if str(route.get("protocol")) not in protocols]:
            yield others

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return "".join(map(self.shell.run, (SHOW_ROUTES, SHOW_NEXTHOPS, *SHOW_RULES)))
