"""Run in namespaces of its own by test_routed_live.py: the kernel forwards, real hosts ping.

live_routed.py BUILD OUT TARGET JSON: a build with one host per switch, its rendering, and what to
do; prints JSON. The switches and hosts are those of the engines `linux` and `frr`.
"""

import json
import re
import sys
import tempfile
import time
from pathlib import Path

from compilers.tables.folders.build_folder import load
from mininet_scenarios.engines.routers import Routers
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.traffic import probing
from tests.compilers.targets.read_routed import read_kernel

PATIENCE = 60
BGP, STATIC = ("bgp", "186"), ("80", "static", "196")
DATAGRAMS = """
import socket, sys
address, count = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
with socket.socket(family, socket.SOCK_DGRAM) as sender:
    for n in range(count):
        sender.sendto(b"", (address, 1024 + n))
"""
"""A datagram a flow: the kernel hashes ports too. A refused one is an error of the next call."""


def until(true):
    limit = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > limit:
            raise TimeoutError(true.__qualname__)
        time.sleep(0.05)


probing.hops_of = int  # the TTL itself


class Fabric(Routers):
    """What tests ask of routers."""

    def kernel(self):
        """The kernel's routes of every switch, of both versions of the protocol."""
        return [self.kernel_of(space) for space in self.switches]

    def kernel_of(self, space):
        shown = ["-details", "-json", "route", "show", "table", "all"]
        return [space.run("ip", family, *shown) for family in ("-4", "-6")]

    def routes(self, protocols):
        """The ports of every prefix that these protocols have put into the kernels."""
        return [read_kernel(*shown, protocols) for shown in self.kernel()]

    def pings(self, version):
        """[[TTL of a packet of host j to host i where it arrives, 0 where it does not]]."""
        count = range(len(self.hosts))
        pairs = [(u, v) for v in count for u in count if u != v]
        times = probing.UdpProber(self.ends(version), pairs).run_round(lambda *_: None).tolist()
        seen = {pair: ttl for pair, ttl in zip(pairs, times, strict=True) if ttl > 0}
        return [[seen.get((u, v), 0) for u in count] for v in count]

    def meet_neighbours(self, vertex):
        """So that no next hop is new to the kernel, which would leave it out."""
        next_hops = re.findall(r"via (\S+) dev (\S+)", self.switches[vertex].run("ip", "nexthop"))
        for address, port in set(next_hops):
            self.switches[vertex].run("ping", "-c1", "-W5", "-I", port, address)

    def share(self, source, destination, version, count):
        """{interface: packets} of so many flows from a host, by the links of its switch."""
        self.meet_neighbours(source)
        before = self.sent()[source]
        to = self.address(destination, version)
        self.hosts[source].run(sys.executable, "-c", DATAGRAMS, to, str(count), check=False)
        after = self.sent()[source]
        ports = self.build.wiring.port[source]
        names = [self.interface_name(source, k) for k in ports.nonzero()[0]]
        return dict(zip(names, (after - before)[ports > 0].tolist(), strict=True))


def lacks_carrier(fabric, vertex, link):
    """Whether the far end of a link that is down has seen it."""
    far = int(fabric.build.wiring.far[vertex, link])
    back = fabric.build.wiring.far[far].tolist().index(vertex)
    return "NO-CARRIER" in fabric.switches[far].run(
        "ip", "link", "show", fabric.interface_name(far, back)
    )


def main(build, out, target, folder, wanted):
    fabric = Fabric(build, out, target, HostSample.of(build), folder)
    fabric.start()
    permanent = ["ip", "-json", "neigh", "show", "nud", "permanent"]
    known = [len(json.loads(space.run(*permanent))) for space in fabric.switches]
    seen = {"kernel": fabric.kernel(), "known": known}
    if wanted.get("ping"):
        seen["pings"] = [fabric.pings(version) for version in (4, 6)]
    if "share" in wanted:
        seen["share"] = [fabric.share(*one) for one in wanted["share"]]
    if "down" in wanted:
        protocols = BGP if "after" in wanted else STATIC
        before = fabric.routes(protocols)
        fabric.set_link(*wanted["down"], up=False)
        if "after" in wanted:  # BGP looks for other paths
            until(lambda: fabric.pings(4) == wanted["after"])
        else:  # the far end loses its carrier a moment later; zebra replaces the routes that went
            until(lambda: lacks_carrier(fabric, *wanted["down"]))
            fabric.settle()
        seen["down"] = [fabric.pings(version) for version in (4, 6)]
        fabric.set_link(*wanted["down"], up=True)
        fabric.settle()  # it has a path to each prefix at once, and the first one again later
        until(lambda: fabric.routes(protocols) == before)
        seen["again"] = fabric.kernel()
        if target == "linux":
            load = out / build.wiring.names[0] / "load.sh"
            fabric.switches[0].run("sh", str(load))
            seen["loaded twice"] = fabric.kernel_of(fabric.switches[0])
        seen["pings again"] = [fabric.pings(version) for version in (4, 6)]
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as daemons:
        Path(daemons).chmod(0o755)  # FRR's daemons are a user of their own
        build, out = Path(sys.argv[1]), Path(sys.argv[2])
        result = main(load(build), out, sys.argv[3], Path(daemons), json.loads(sys.argv[4]))
    print(json.dumps(result))
