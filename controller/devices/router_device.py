"""Routers: what is to be typed on one, typed, proved, saved; and the plain Linux kernel as one.

On Linux, files are in ETC/polarfab, as Ansible puts them (docs/targets/routers.md).
"""

from __future__ import annotations

import hashlib
import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_interface
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from compilers.audit.route_differences import RouteDifference
from compilers.audit.route_lines import kernel_remediation, rule_remediation
from controller.devices.device_shell import DeviceShell
from inventory.route_tables.kernel_routes import OURS

Compare = Callable[[str], Iterable[RouteDifference]]
ROUTES = "ip -json route show table all"
ASK_NAMES = "sed -n 's/^# \\(.*\\): build .*/\\1/p' {etc}/polarfab/load.sh 2>&-; uname -n"
SUMS = "sha256sum {etc}/polarfab/* 2>&- || true"
LOADED = (
    'grep -vxF "$(cat {etc}/polarfab/{begun} 2>&- || echo)" {etc}/polarfab/links.batch 2>&- || true'
)
BEGUN = ".begun"
"""The file in ETC/polarfab with the lines about links that are typed next, until they have been."""
PORTS = "ip -json -details address"
SETTINGS = "cd /proc/sys && xargs grep -s '' /dev/null || true"
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


PORTS_SHUT, LINES, NAMES = "ports", "lines", "names"
"""What may be overruled: ports that are shut by hand, others' lines in the fabric's sections, host
names that are no node's."""


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """All that a push types on a device: what a dry run prints is what is typed.

    kernel: settings of `sysctl`, and lines for `ip -batch` about links and addresses. lines:
    those of its configuration, the ones about no route first. rules: policy rules, each behind its
    family. files: places of files that are written. stale, stale_rules: lines
    that take routes and rules away. kept: what others did, and what stays so. shut: the ports that
    are shut by hand.
    """

    kernel: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    stale_rules: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    shut: frozenset[str] = frozenset()
    drained: bool = False

    @property
    def add(self) -> tuple[str, ...]:
        """What comes."""
        files = (f"write {place}" for place in self.files)
        return (*files, *self.kernel, *self.lines, *self.rules)

    @property
    def remove(self) -> tuple[str, ...]:
        """What goes."""
        return (*self.stale_rules, *self.stale)

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.add or self.remove)


@dataclass
class RouterDevice(ABC):
    """A router and the rendered files that it is to have.

    shell: what reaches it, a shell or a session of NAPALM. etc: the folder for configuration
    there. pools: the addresses of the fabric. vrf: that of the hosts, "" on systems without one.
    overrule: what others did that does not stay: PORTS_SHUT, LINES. pending: the name of the change
    that is not confirmed yet.
    """

    shell: Any
    files: Path
    etc: str
    pools: tuple[str, ...]
    vrf: str = ""
    overrule: frozenset[str] = frozenset()
    pending: str = field(default="", init=False)
    others: ClassVar[str] = ""
    """The routes that are not the fabric's, in words."""
    compares: ClassVar[bool] = True
    """Whether what it lacks is sure: others may show a line in another form than typed."""
    overrules: ClassVar[frozenset[str]] = frozenset({PORTS_SHUT})
    """What `overrule` may have: other systems have no lines in sections."""
    driver: ClassVar[str] = ""
    """The driver of NAPALM that reaches it, "" for a shell."""

    @property
    def opens(self) -> bool:
        """Whether ports that are shut by hand are opened."""
        return PORTS_SHUT in self.overrule

    @abstractmethod
    def names(self) -> DeviceNames:
        """The names that it says.

        Raises:
            DeviceError: they cannot be read.
        """

    def lost(self) -> Sequence[str]:
        """What others configured that would be gone once a push is saved and the device starts.

        Raises:
            DeviceError: it cannot be read.
        """
        return ()

    @abstractmethod
    def plan(self) -> DevicePlan:
        """What is to be typed.

        Raises:
            DeviceError: what it has cannot be read.
        """

    @abstractmethod
    def load(self, plan: DevicePlan) -> None:
        """Type what comes; not confirmed.

        Raises:
            DeviceError: it refuses something.
        """

    @abstractmethod
    def remove(self, plan: DevicePlan) -> None:
        """Type what goes; not confirmed.

        Raises:
            DeviceError: it refuses something.
        """

    @abstractmethod
    def tables(self) -> str:
        """Its routing tables, as `compilers.audit.route_report` reads them."""

    @abstractmethod
    def save(self, plan: DevicePlan) -> None:
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

    def _quoted(self, template: str, **words: str) -> str:
        return template.format(etc=shlex.quote(self.etc), **words)


class KernelDevice(RouterDevice):
    """A Linux kernel: its interfaces, addresses, settings and policy rules, by a shell as root."""

    shell: DeviceShell
    elsewhere: ClassVar[frozenset[str]] = frozenset()
    """Files that do not go to ETC/polarfab."""

    def names(self) -> DeviceNames:
        """See `RouterDevice.names`: that of the node whose files it has, and the machine's."""
        *given, machine = self.shell.run(self._quoted(ASK_NAMES)).splitlines() or ("",)
        return DeviceNames("".join(given[:1]), machine)

    def kernel_plan(self) -> DevicePlan:
        """The part of the plan that is about the kernel, but for routes.

        A port is shut by hand if it is down although an earlier push has set it up.
        """
        shown = {one["ifname"]: one for one in json.loads(self.shell.run(PORTS))}
        before = set(self.shell.run(self._quoted(LOADED, begun=BEGUN)).splitlines())
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
        rules = self._rules()
        return DevicePlan(
            kernel=(*first, *self._settings(shown), *rest),
            rules=tuple(f"{f} {line}" for f, rule in rules.items() for line in rule.add),
            stale_rules=tuple(f"{f} {line}" for f, rule in rules.items() for line in rule.remove),
            files=tuple(self._unlike()),
            kept=tuple(f"port {port} is shut" for port in shut),
            shut=frozenset(shut),
        )

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
        """The files in ETC/polarfab that are not the rendered ones."""
        sums = (line.split(None, 1) for line in self.shell.run(self._quoted(SUMS)).splitlines())
        there = {place.rpartition("/")[2]: digest for digest, place in sums}
        for name, text in self._texts().items():
            if there.get(name) != hashlib.sha256(text.encode()).hexdigest():
                yield f"{self.etc}/polarfab/{name}"

    def _texts(self) -> dict[str, str]:
        here = sorted(file for file in self.files.iterdir() if not file.name.startswith("."))
        texts = {file.name: file.read_text() for file in here if file.name not in self.elsewhere}
        return {name: text.rstrip("\n") + "\n" for name, text in texts.items()}

    def _rules(self) -> dict[str, Any]:
        """What its policy rules lack, and have besides, by address family."""
        if not (self.files / "rules.batch").exists():
            return {}
        shown = {family: self.shell.run(command) for family, command in RULES.items()}
        found = rule_remediation(shown["-4"], shown["-6"], self.text("rules.batch"))
        return dict(zip(RULES, found, strict=True))

    def load_kernel(self, plan: DevicePlan) -> None:
        """Write files, and type what is about interfaces, addresses and settings.

        The files first: the unit of an earlier push loads them whenever a link comes up.
        """
        names = {place.rpartition("/")[2] for place in plan.files}
        texts = {name: text for name, text in self._texts().items() if name in names}
        if begun := [line for line in plan.kernel if line.endswith(" up")]:
            texts = {BEGUN: "\n".join(begun), **texts}
        if texts:
            self.shell.put(f"{self.etc}/polarfab", texts)
        for setting, lines in groupby(plan.kernel, lambda line: " = " in line):
            if setting:
                self.shell.run("sysctl --quiet --ignore --load=/dev/stdin", "\n".join(lines))
            else:
                self.batch(lines, force=False)
        if begun:
            self.shell.run(self._quoted("rm -f {etc}/polarfab/{begun}", begun=BEGUN))

    def change_rules(self, lines: Sequence[str]) -> None:
        """Type policy rules; no other rule is touched meanwhile."""
        for family, rules in groupby(lines, lambda line: line.partition(" ")[0]):
            self.batch((rule.partition(" ")[2] for rule in rules), family, force=False)

    def batch(self, lines: Iterable[str], family: str = "", force: bool = True) -> None:
        """Have `ip -batch` run lines; those about links that are down fail, and are found later."""
        if text := "".join(f"{line}\n" for line in lines):
            end = " || true" * force
            self.shell.run(f"ip {family} {'-force ' * force}-batch - 2>&1{end}", text)

    def save(self, plan: DevicePlan) -> None:
        """See `RouterDevice.save`."""
        if plan.files:
            self.shell.run(self._quoted(UNIT))


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

    others = "protocol not 80"

    def plan(self) -> DevicePlan:
        """See `RouterDevice.plan`."""
        found = self.shell.run(ROUTES), self.shell.run(NEXTHOPS)
        routes = kernel_remediation(*found, self.text("routes.batch"))
        return replace(self.kernel_plan(), lines=routes.add, stale=routes.remove)

    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign`: routes of protocols other than 80."""
        shown = json.JSONDecoder().raw_decode(tables)[0]
        others = [one for one in shown if str(one.get("protocol")) not in (OURS, KERNEL_OWN)]
        return [one for one in compare(json.dumps(others)) if one.found] if others else []

    def load(self, plan: DevicePlan) -> None:
        """See `RouterDevice.load`: in place, without the pause of `load.sh`."""
        self.load_kernel(plan)
        self.batch(plan.lines)
        self.change_rules(plan.rules)

    def load_marked(self, plan: DevicePlan) -> DevicePlan:
        """Only the devices for marked packets: neighbours may send such before it has its routes.

        Returns what is left to do.

        Raises:
            DeviceError: it refuses a setting.
        """
        new = {line.split()[2] for line in plan.kernel if " type macvlan " in line}
        about = tuple(line for line in plan.kernel if new & set(line.replace("/", " ").split()))
        self.load_kernel(DevicePlan(kernel=about))
        return replace(plan, kernel=tuple(line for line in plan.kernel if line not in about))

    def remove(self, plan: DevicePlan) -> None:
        """See `RouterDevice.remove`."""
        self.change_rules(plan.stale_rules)
        self.batch(plan.stale)

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return "".join(map(self.shell.run, (ROUTES, NEXTHOPS, *RULES.values())))
