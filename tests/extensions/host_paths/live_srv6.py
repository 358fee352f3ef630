"""Run in namespaces of its own by test_srv6_live.py: kernels with seg6 and next-csid.

live_srv6.py BUILD OUT JSON: OUT holds the renderings linux (the base of switches), host and switch
(target srv6 with either decap). Prints JSON: answers of all pairs, and link counters of flows.
"""

import json
import sys
import tempfile
from pathlib import Path

from compilers.tables.folders.build_folder import load
from mininet_scenarios.scenario.engine import HostSample
from tests.compilers.targets.live_routed import DATAGRAMS, Fabric


class Segments(Fabric):
    """The fabric of the linux target, with SRv6 on switches and hosts, one a switch."""

    def load(self, files):
        """Take the files of a rendering of target srv6, instead of those of another."""
        w = self.build.wiring
        for space, name in zip(self.switches, w.names, strict=True):
            space.run("sysctl", "--quiet", "--load", str(files / name / "srv6-sysctl.conf"))
            space.run("ip", "-batch", str(files / name / "srv6.batch"))
        for i, (space, name) in enumerate(zip(self.hosts, w.host_names, strict=True)):
            space.run("sh", str(files / "hosts" / name / "load.sh"))
            space.run("ping", "-c1", "-W5", self._gateway(i))

    def _gateway(self, host):
        return str(self.build.addressing.network6(host)[1])

    def flows(self, source, destination, count):
        """[[packets sent by every link of every switch]] of so many flows from host to host."""
        before, to = self.sent(), self.address(destination, 6)
        self.hosts[source].run(sys.executable, "-c", DATAGRAMS, to, str(count), check=False)
        return (self.sent() - before).tolist()

    def through(self, source, destination, carrier, count):
        """The same, with one carrier for all flows."""
        space = self.hosts[source]
        by = ["encap", "seg6", "mode", "encap.red", "segs", carrier]
        route = [f"{self.address(destination, 6)}/128", *by, "via", self._gateway(source)]
        route += ["dev", "eth0", "metric", "1"]
        space.run("ip", "-6", "route", "add", *route)
        seen = self.flows(source, destination, count)
        space.run("ip", "-6", "route", "delete", *route)
        return seen


def main(build, out, folder, wanted):
    fabric = Segments(build, out / "linux", "linux", HostSample.of(build), folder)
    fabric.start()
    fabric.load(out / "host")
    seen = {"pings": fabric.pings(6)} if wanted.get("ping") else {}
    seen["flows"] = [fabric.flows(*one) for one in wanted["flows"]]
    seen["through"] = [fabric.through(*one) for one in wanted.get("through", [])]
    if wanted.get("switch"):
        fabric.load(out / "switch")
        seen["switch"] = fabric.pings(6)
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        build, out = Path(sys.argv[1]), Path(sys.argv[2])
        print(json.dumps(main(load(build), out, Path(folder), json.loads(sys.argv[3]))))
