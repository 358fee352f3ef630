"""FRR on a Linux kernel: vtysh takes the routes, the kernel the policy rules."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence

from compilers.audit.route_differences import RouteDifference
from compilers.audit.route_lines import RouteLine, section_lines
from compilers.audit.route_remediation import Remediation
from controller.devices.configured_device import SPEAKS_BGP, ConfiguredDevice
from controller.devices.router_device import RULES, UNIT, Compare, DeviceNames, RouterDevice
from inventory.route_tables.route_table_file import json_outputs

TABLES = "vtysh -c 'show ip route table all json' -c 'show ipv6 route table all json'"
OWN_PROTOCOLS = frozenset({"static", "connected", "local"})
"""Those of the routes that a configuration says itself."""
DAEMON = """grep -q '^{name}=yes' {etc}/frr/daemons || {{
  sed -i 's/^{name}=.*/{name}=yes/' {etc}/frr/daemons && systemctl restart frr
}}"""


class FrrDevice(ConfiguredDevice):
    """Target frr."""

    elsewhere = frozenset({"frr.conf"})
    others = "protocols that frr.conf does not speak"

    def names(self) -> DeviceNames:
        """See `RouterDevice.names`: FRR says the machine's until it has its own."""
        return RouterDevice.names(self)

    def running(self) -> str:
        """See `ConfiguredDevice.running`."""
        return self.shell.run("vtysh -c 'show running-config'")

    def rendered(self) -> str:
        """See `ConfiguredDevice.rendered`."""
        return self.text("frr.conf")

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return section_lines(text)

    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign`: of protocols that the configuration does not speak."""
        own = OWN_PROTOCOLS | ({"bgp"} if SPEAKS_BGP.search(self.rendered()) else set())
        texts = []
        for document in json_outputs(tables):
            for prefix, routes in document.items() if isinstance(document, dict) else ():
                if others := [one for one in routes if one.get("protocol") not in own]:
                    texts.append(json.dumps({prefix: others}))
        return [one for one in compare("\n".join(texts)) if one.found] if texts else []

    def load(self, add: Remediation) -> None:
        """See `RouterDevice.load`: with interfaces, which may be new, and BGP."""
        self.load_links()
        text = self.rendered()
        for name, words in (("bgpd", "router bgp"), ("bfdd", " bfd")):
            if words in text:
                self.shell.run(self._quoted(DAEMON, name=name))
        super().load(add)
        self.add_rules()

    def remove(self, stale: Remediation) -> None:
        """See `RouterDevice.remove`: rules first, while the tables that they lead to are there."""
        self.remove_rules()
        super().remove(stale)

    def change(self, lines: Sequence[str]) -> None:
        """See `ConfiguredDevice.change`: vtysh reads files only."""
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            self.shell.put(f"{self.etc}/polarfab", {"vtysh.conf": text})
            self.shell.run(f"vtysh -f {shlex.quote(f'{self.etc}/polarfab/vtysh.conf')}")

    def tables(self) -> str:
        """See `RouterDevice.tables`."""
        return "".join(map(self.shell.run, (TABLES, *RULES.values())))

    def save(self) -> None:
        """See `RouterDevice.save`."""
        self.shell.run("vtysh -c 'write memory'")
        self.shell.run(self._quoted(UNIT))
