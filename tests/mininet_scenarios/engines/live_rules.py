"""Run in namespaces of its own by test_rules_live.py: every rule is exercised, faults and all.

live_rules.py BUILD LOGS: brings the build up with Mininet hosts, exercises its rules with a fault a
host, then without, with repairs; prints what was found, pickled, in hexadecimal digits.
"""

import pickle
import re
import sys
from pathlib import Path

from mininet_scenarios.engines.mininet_child import MininetChild
from mininet_scenarios.machine.netns import batch
from mininet_scenarios.scenario.engine import Setup

ALTERNATES, DSCP, SOURCE, UDP, MTU = 2, 3, 4, 5, 6
"""The switches that are made wrong, each in its own path."""
MARK = "cookie=0x99"


class Faults:
    """Faults of a running network, and the way back."""

    def __init__(self, inside):
        self.inside, self.ovs, self.plan = inside, inside.ovs, inside.build.addressing
        self.gateway = ":".join(re.findall("..", f"{int(self.plan.gateway_mac):012x}"))
        groups = self.ovs.ofctl("dump-groups", f"s{ALTERNATES}").splitlines()
        self.groups = [line.strip() for line in groups if "type=select" in line]

    def make(self):
        """A row, a group or an interface of each switch goes wrong."""
        self._deliver(DSCP, "set_field:0->ip_dscp", self.gateway)
        self._deliver(SOURCE, "", "02:00:00:00:00:99")
        drop = f"{MARK},table=1,priority=99,udp,nw_dst={self.plan.host(UDP, 0)},actions=drop"
        self.ovs.ofctl("add-flow", f"s{UDP}", drop)
        self._mtu(1000)
        for group in self.groups:
            head, *buckets = group.split(",bucket=")
            port = re.search("output:[^,]+", buckets[0])[0]
            kept = [bucket for bucket in buckets if port in bucket]
            self.ovs.ofctl("mod-group", f"s{ALTERNATES}", ",bucket=".join([head, *kept]))

    def mend(self):
        """All is right again."""
        for switch in (DSCP, SOURCE):
            self._deliver(switch, "", self.gateway)
        self.ovs.ofctl("del-flows", f"s{UDP}", f"{MARK}/-1")
        self._mtu(1500)
        for group in self.groups:
            self.ovs.ofctl("mod-group", f"s{ALTERNATES}", group)

    def _deliver(self, switch, first, source):
        port = int(self.inside.build.wiring.host_port[switch, 0])
        mac = self.plan.mac(switch, 0)
        paths = first, f"set_field:{source}->eth_src", f"set_field:{mac}->eth_dst"
        actions = ",".join(filter(None, [*paths, f"output:{port}"]))
        row = f"table=1,ip,nw_dst={self.plan.host(switch, 0)},actions={actions}"
        self.ovs.ofctl("mod-flows", f"s{switch}", row)

    def _mtu(self, size):
        port = int(self.inside.build.wiring.host_port[MTU, 0])
        batch([f"link set s{MTU}-eth{port} mtu {size}"])


def main(build, logs):
    setup = Setup((), (Path(build),), Path(logs), hosts=1, framework="os-ken", unverified=True)
    inside = MininetChild(setup, lambda *_: None)
    inside.start()
    inside.settle(120)
    faults = Faults(inside)
    faults.make()
    wrong = inside.exercise(False)
    faults.mend()
    print(pickle.dumps({"wrong": wrong, "repairs": inside.exercise(True)}).hex())


if __name__ == "__main__":
    main(*sys.argv[1:])
