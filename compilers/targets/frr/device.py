"""Pushes the files of target frr to a machine with FRR, by a shell as root.

vtysh reads `frr.conf`; the kernel gets links, settings and policy rules (`linux.device`). vtysh
does not compare a configuration with the running one, so both are compared here as text. vtysh
shows some statements otherwise than they were written, and does not show defaults. So before the
comparison `SHOWN_OTHERWISE` rewrites the rendered statements, and the defaults of `HIDDEN_DEFAULTS`
are added to what vtysh shows. `controller.devices` runs a push.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from compilers.readers.devices.json_outputs import json_outputs
from compilers.targets.devices.configured_device import ConfiguredDevice
from compilers.targets.devices.device_shell import DeviceError
from compilers.targets.devices.route_lines import RouteLine
from compilers.targets.devices.router_device import DevicePlan
from compilers.targets.frr.routing_tables import COMMANDS, routes_of
from compilers.targets.linux.device import SHOW_RULES, KernelDevice

OWN_PROTOCOLS = frozenset({"static", "connected", "local"})
"""The protocols of routes that the statements of a configuration install."""
STATEMENT_OF_DAEMON = {"bgpd": "router bgp", "bfdd": " bfd"}
"""For the daemons that FRR does not start by itself, the statement that needs each."""
SHOWN_OTHERWISE = (
    # The host name is left to the machine.
    (r"^hostname .*\n", ""),
    # This statement is shown before `router bgp`.
    (r"^(router bgp .*\n(?: .*\n)*?) (bgp route-map delay-timer .*\n)", r"\2\1"),
    # Of a neighbour by interface, the peer group is shown before the remote AS.
    (
        r"^( neighbor \S+ interface v6only) (remote-as .*)\n( neighbor \S+) (peer-group .*)",
        r"\1 \4\n\3 \2",
    ),
)
"""Statements that vtysh shows otherwise than they are written, each as a pattern and a
replacement."""
HIDDEN_DEFAULTS = {
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
"""Statements that vtysh does not show, as they are defaults, by a pattern of their section. Those
behind `frr defaults` are of no section, and stand anywhere in the configuration."""
KEYWORDS = re.compile(r" *(?:no )?(?P<keywords>[a-z6 -]*[a-z])")
"""The keywords of a statement without its numbers, such as `detect-multiplier` of
`  detect-multiplier 3`."""
REFUSED_LINE = re.compile(r"^line \d+: (?P<reason>.*?)(?:, line: |\[-?\d+\]: )(?P<line>.*)$", re.M)
"""`line 7: % Unknown command[4]: ip rout …`: a line that a parser or a daemon refuses."""
REASON = re.compile(r"^(?:% ?|Error description: )?(?P<reason>(?!Error type).*\S)", re.M)
"""`% VRF is not a name`, `Error description: …`: the reason of a daemon that refuses a line."""
NOTICES = re.compile(
    r"Graceful restart configuration changed|% Refusing to remove a non-existent route"
    r"|% \[ZEBRA\] Unknown command: XFRR_|% Can't open configuration file"
    r"|\[\d+\|\w+\] |Waiting for children|Configuration file\["
)
"""Lines that vtysh and daemons print although they accept the statements."""


class FrrDevice(KernelDevice, ConfiguredDevice):
    """A machine with FRR, which has the files of target frr.

    `KernelDevice` compares interfaces, settings and policy rules with the kernel, and
    `ConfiguredDevice` compares frr.conf with the running configuration. A plan has the lines of
    both.
    """

    files_elsewhere = frozenset({"frr.conf"})
    """The file that vtysh takes. It is not written into ETC/polarfab, as the others are."""
    can_overrule = ConfiguredDevice.can_overrule
    save_commands = ("vtysh -c 'write memory'",)
    long_heads = ("neighbor ", "bgp bestpath ", "match ip ", "match ipv6 ")
    """Statements of which the first three words say what is set, as `neighbor 10.0.0.1 bfd`. Of all
    others the first two do."""
    repeatable = ("ip address ", "ipv6 address ")
    """Statements of which an interface may have several, so that one replaces no other."""

    def running(self) -> str:
        """See `ConfiguredDevice.running`."""
        return _with_defaults(self.shell.run("vtysh -c 'show running-config'"))

    def saved(self) -> str:
        """See `ConfiguredDevice.saved`: the file frr.conf of the machine."""
        return _with_defaults(_as_shown(self._ask("cat {etc}/frr/frr.conf 2>&- || true")))

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`: in the form in which vtysh shows it once it runs."""
        return _as_shown(self.text("frr.conf"))

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`.

        A next hop has one distance: a new line for it replaces the old one. So the next hop, its
        gateway and interface, is the unique property of the line.
        """
        for line in super().all_lines(text):
            words = line.add.split()  # `ip route PREFIX GATEWAY INTERFACE …`
            first = words.index("route") + 2
            yield replace(line, unique_property=" ".join(words[first : first + 2]))

    def routes_of_others(self, tables: str) -> Iterator[Any]:
        """See `KernelDevice.routes_of_others`: routes that the configuration does not install."""
        own_protocols = OWN_PROTOCOLS | ({"bgp"} if self.bgp else set())
        for document in json_outputs(tables):
            for prefix, routes in routes_of(document):
                others = [route for route in routes if route.get("protocol") not in own_protocols]
                if others:
                    yield {prefix: others}

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `ConfiguredDevice.plan`: also lines for the kernel, and lines that start daemons."""
        kernel_plan, conf_plan = self.kernel_plan(), ConfiguredDevice.plan(self, wanted)
        return replace(
            conf_plan,
            links=kernel_plan.links,
            # Daemons first, as no other takes their lines. A policy rule leads to a table, so the
            # table is filled before the rule is added, and emptied after the rule is removed.
            add=(*self._daemon_commands(), *conf_plan.add, *kernel_plan.add),
            remove=(*kernel_plan.remove, *conf_plan.remove),
            shut=kernel_plan.shut | conf_plan.shut,
            save=(*conf_plan.save, *kernel_plan.save),
        )

    def restart_reason(self) -> str:
        """See `RouterDevice.restart_reason`: a daemon is off that the configuration needs."""
        missing = self._missing_daemons()
        if not missing:
            return ""
        required, given = (", ".join(f"{m}={word}" for m in missing) for word in ("yes", "no"))
        return f"required {required} in {self.etc}/frr/daemons, given {given}"

    def _daemon_commands(self) -> Iterator[str]:
        """Commands that start the daemons which the configuration needs and FRR does not start."""
        missing = self._missing_daemons()
        if missing:
            edits = " ".join(f"-e 's/^{name}=no/{name}=yes/'" for name in missing)
            yield f"sed -i {edits} {shlex.quote(self.etc)}/frr/daemons"
            yield "systemctl restart frr"

    def _missing_daemons(self) -> list[str]:
        """The daemons that the configuration needs, and that are off in FRR's file of daemons."""
        settings = self._ask("cat {etc}/frr/daemons 2>&- || true").splitlines()
        rendered = self.rendered()
        needed = [name for name, statement in STATEMENT_OF_DAEMON.items() if statement in rendered]
        return [name for name in needed if f"{name}=no" in settings]

    def configure(self, lines: Sequence[str]) -> None:
        """See `KernelDevice.configure`: vtysh reads the lines from a file.

        It first parses all of them (`-C`), and hands them to the daemons if all are well-formed.

        Raises:
            DeviceError: FRR refuses a line. If it is a daemon that refuses, the lines before it are
                in effect.
        """
        text = "".join(f"{line}\n" for line in lines)
        self.shell.put(f"{self.etc}/polarfab", {"vtysh.conf": text})
        file = shlex.quote(f"{self.etc}/polarfab/vtysh.conf")
        for option in ("-C ", ""):
            output = self.shell.run(f"vtysh {option}-f {file} 2>&1 || echo exit $?")
            if refusal := _refusal(output):
                raise DeviceError(refusal)

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return "".join(map(self.shell.run, (COMMANDS, *SHOW_RULES)))


def _refusal(output: str) -> str:
    """Why FRR refused a line, by the output of vtysh; "" if it took all lines.

    It refused one if the output names a line, has an error (`% …`), or ends in an exit status.

    Args:
        output: what vtysh and the daemons print, and `exit STATUS` if vtysh failed.
    """
    lines = [line for line in output.splitlines() if line.strip() and not NOTICES.match(line)]
    has_failed = bool(lines) and re.fullmatch(r"exit \d+", lines[-1]) is not None
    if has_failed:
        lines.pop()
    refused = REFUSED_LINE.search("\n".join(lines))
    if not refused and not has_failed and not any(line.startswith("%") for line in lines):
        return ""
    reasons = [
        match["reason"]
        for line in lines
        if not REFUSED_LINE.match(line) and (match := REASON.match(line))
    ]
    refused_line = f"the line `{refused['line'].strip()}`" if refused else "a line"
    return f"FRR has not taken {refused_line}: {'; '.join(reasons[:2]) or 'unknown command'}"


def _as_shown(text: str) -> str:
    """A written configuration in the form in which vtysh shows it."""
    for written, shown in SHOWN_OTHERWISE:
        text = re.sub(written, shown, text, flags=re.M)
    return text


def _with_defaults(shown: str) -> str:
    """A configuration as vtysh shows it, with the defaults that vtysh leaves out."""
    if "frr defaults datacenter" in shown:
        for section, defaults in HIDDEN_DEFAULTS.items():
            add_defaults = partial(_section_with_defaults, defaults, shown)
            shown = re.sub(section, add_defaults, shown, flags=re.M)
    return shown


def _section_with_defaults(
    defaults: Sequence[str], configuration: str, section: re.Match[str]
) -> str:
    """A section with those defaults for which it has no other value.

    Args:
        defaults: the statements that vtysh does not show.
        configuration: all that vtysh shows.
        section: the section. The line `frr defaults` stands for the whole configuration.
    """
    section_text = section[0]
    is_whole = section_text.startswith("frr defaults ")
    stated = configuration if is_whole else section_text
    hidden = [
        default
        for default in defaults
        if (match := KEYWORDS.match(default)) and match["keywords"] not in stated
    ]
    return section_text + "".join(f"{default}\n" for default in hidden)
