"""FRR on a Linux kernel: vtysh takes the routes, the kernel the policy rules."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from compilers.readers.devices.json_outputs import json_outputs
from compilers.targets.devices.configured_device import ConfiguredDevice
from compilers.targets.devices.route_lines import RouteLine
from compilers.targets.devices.router_device import DevicePlan
from compilers.targets.frr.routing_tables import COMMANDS, routes_of
from compilers.targets.linux.device import RULES, KernelDevice

OWN_PROTOCOLS = frozenset({"static", "connected", "local"})
"""Those of the routes that a configuration says itself."""
DAEMONS = (("bgpd", "router bgp"), ("bfdd", " bfd"))
"""Daemons, and the words of a configuration that need them."""
SHOWN = (
    (r"^hostname .*\n", ""),
    (r"^(router bgp .*\n(?: .*\n)*?) (bgp route-map delay-timer .*\n)", r"\2\1"),
    (
        r"^( neighbor \S+ interface v6only) (remote-as .*)\n( neighbor \S+) (peer-group .*)",
        r"\1 \4\n\3 \2",
    ),
)
"""What vtysh shows in another form than written: the machine's name, a timer of all of bgpd,
the two lines of a neighbour without an address."""
UNSAID = {
    r"^frr defaults datacenter\n": (
        "no ip nht resolve-via-default",
        "no ipv6 nht resolve-via-default",
    ),
    r"^router bgp .*\n(?: .*\n)*": (" bgp log-neighbor-changes",),
    r"^ profile .*\n(?:  .*\n)*": (
        "  receive-interval 300",
        "  transmit-interval 300",
        "  detect-multiplier 3",
    ),
}
"""What vtysh leaves out of sections, since it is so unless something else is said there."""
KEYWORDS = re.compile(r" *(?:no )?([a-z6 -]*[a-z])")


class FrrDevice(KernelDevice, ConfiguredDevice):
    """Target frr."""

    elsewhere = frozenset({"frr.conf"})
    overrules = ConfiguredDevice.overrules
    compares = False
    saves = ("vtysh -c 'write memory'",)

    def running(self) -> str:
        """See `ConfiguredDevice.running`."""
        return _whole(self.shell.run("vtysh -c 'show running-config'"))

    def saved(self) -> str:
        """See `ConfiguredDevice.saved`: what vtysh or somebody wrote."""
        return _whole(_shown(self._ask("cat {etc}/frr/frr.conf 2>&- || true")))

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`: as vtysh shows it, else it would be typed each time."""
        return _shown(self.text("frr.conf"))

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`: a next hop has one distance, the last that is typed."""
        for line in super().all_lines(text):
            words = line.add.split()
            next_hop = words[words.index("route") + 2 :][:2]
            yield replace(line, leaf=" ".join(next_hop))

    def of_others(self, tables: str) -> Iterator[Any]:
        """See `KernelDevice.of_others`: of protocols that the configuration does not speak."""
        own = OWN_PROTOCOLS | ({"bgp"} if self.bgp else set())
        for document in json_outputs(tables):
            for prefix, routes in routes_of(document):
                if others := [one for one in routes if one.get("protocol") not in own]:
                    yield {prefix: others}

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `ConfiguredDevice.plan`: with interfaces, which may be new, and daemons."""
        kernel, conf = self.kernel_plan(), ConfiguredDevice.plan(self, wanted)
        return replace(
            conf,
            links=kernel.links,
            add=(*self._daemons(), *conf.add, *kernel.add),
            remove=(*kernel.remove, *conf.remove),
            shut=kernel.shut | conf.shut,
            save=(*conf.save, *kernel.save),
        )

    def _daemons(self) -> Iterator[str]:
        """What starts the daemons that the configuration needs, where FRR's file does not."""
        there = self._ask("cat {etc}/frr/daemons 2>&- || true").splitlines()
        needed = [name for name, words in DAEMONS if words in self.rendered()]
        if missing := [name for name in needed if f"{name}=no" in there]:
            edits = " ".join(f"-e 's/^{name}=no/{name}=yes/'" for name in missing)
            yield f"sed -i {edits} {shlex.quote(self.etc)}/frr/daemons"
            yield "systemctl restart frr"

    def configure(self, lines: Sequence[str]) -> None:
        """See `KernelDevice.configure`: vtysh reads files only."""
        text = "".join(f"{line}\n" for line in lines)
        self.shell.put(f"{self.etc}/polarfab", {"vtysh.conf": text})
        self.shell.run(f"vtysh -f {shlex.quote(f'{self.etc}/polarfab/vtysh.conf')}")

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return "".join(map(self.shell.run, (COMMANDS, *RULES)))


def _shown(text: str) -> str:
    """A written configuration as vtysh shows it."""
    for written, shown in SHOWN:
        text = re.sub(written, shown, text, flags=re.M)
    return text


def _whole(shown: str) -> str:
    """With what vtysh leaves out."""
    if "frr defaults datacenter" in shown:
        for section, lines in UNSAID.items():
            shown = re.sub(section, partial(_with, lines, shown), shown, flags=re.M)
    return shown


def _with(lines: Sequence[str], shown: str, section: re.Match[str]) -> str:
    """A section with those of the lines about which nothing is said, there or at the top."""
    said = section[0] if section[0][0] in " r" else shown
    more = (line for line in lines if (word := KEYWORDS.match(line)) and word[1] not in said)
    return section[0] + "".join(f"{line}\n" for line in more)
