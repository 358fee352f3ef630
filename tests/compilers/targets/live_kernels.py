"""Run in namespaces of its own by kernels.py: flows and pings over kernels, and a link down.

live_kernels.py BUILD OUT TARGET [PAIRS, FLOWS]: prints what every link carried of so many flows of
each pair, by family, the TTL of answers, those with a link down, and the routes of switch 5.
"""

import json
import sys
import tempfile
from pathlib import Path

from compilers.tables.folders.build_folder import load
from mininet_scenarios.scenario.engine import HostSample
from tests.compilers.targets.live_routed import DATAGRAMS, Fabric, until

HELD = (
    ("-json", "-4", "route", "show", "table", "all"),
    ("-json", "-6", "route", "show", "table", "all"),
    ("-json", "nexthop"),
    ("-json", "-4", "rule"),
    ("-json", "-6", "rule"),
)


def sent(fabric, source, destination, version, flows):
    """int[S][K]: packets by link, of flows from a host to another."""
    before = fabric.sent()
    to = fabric.address(destination, version)
    fabric.hosts[source].run(sys.executable, "-c", DATAGRAMS, to, str(flows), check=False)
    return (fabric.sent() - before).tolist()


def far_end(build):
    """The switch at the other end of the second link of switch 0, and which of its links it is."""
    far = int(build.wiring.far[0, 1])
    return far, build.wiring.far[far].tolist().index(0)


def over(fabric, vertex, link):
    """How many next hops a kernel has over a link."""
    shown = fabric.switches[vertex].run("ip", "nexthop")
    return shown.count(f" dev {fabric.interface_name(vertex, link)} ")


def main(build, out, target, folder, pairs, flows):
    fabric = Fabric(build, out, target, HostSample.of(build), folder)
    fabric.start()
    for vertex in range(len(fabric.switches)):
        fabric.meet_neighbours(vertex)
    seen = {"sent": [[sent(fabric, *pair, v, flows) for v in (4, 6)] for pair in pairs]}
    seen["pings"] = [fabric.pings(version) for version in (4, 6)]
    seen["held"] = [fabric.switches[5].run("ip", *words) for words in HELD]
    fabric.set_link(0, 1, up=False)
    until(lambda: over(fabric, 0, 1) == over(fabric, *far_end(build)) == 0)
    if target == "frr":  # zebra puts other routes in the place of those that went
        fabric.settle()
    seen["down"] = [fabric.pings(version) for version in (4, 6)]
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as daemons:
        Path(daemons).chmod(0o755)  # FRR's daemons are a user of their own
        build, out = load(Path(sys.argv[1])), Path(sys.argv[2])
        result = main(build, out, sys.argv[3], Path(daemons), *json.loads(sys.argv[4]))
    print(json.dumps(result))
