"""Run in namespaces of its own by test_intermediates_live.py: real Open vSwitch; prints JSON.

live_intermediates.py BUILD TEXT FOLDER: a PolarFly of q=2 with two hosts a switch whose packets go
by intermediates, with repair and IPv6, its rendering, and a folder for the daemons. Packets are
traced, as Open vSwitch itself says what it would do with them: hashes, groups and ports included.
A port that is taken away is one that is down.
"""

import json
import re
import sys
from pathlib import Path

from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.compilers.targets.live_ovs import Host, bridges, control, run, ttl

PAIRS = [(s, (s + 1 + 3 * k) % 7) for s in range(7) for k in range(2)]


class Traced:
    """A fabric in Open vSwitch, and what it does with a TCP packet."""

    def __init__(self, ovs, build, text):
        self.ovs, self.build, self.control = ovs, build, control(ovs)
        bridges(ovs, build)
        for v, name in enumerate(build.wiring.names):
            ovs.ofctl("add-groups", f"s{v}", str(text / name / "groups.txt"))
            ovs.ofctl("--bundle", "add-flows", f"s{v}", str(text / name / "flows.txt"))

    def path(self, s, d, port):
        """The switches that it passes, and whether the last one sends it to the host."""
        a, w = self.build.addressing, self.build.wiring
        packet = (
            f"in_port={w.host_port[s, 0]},tcp,dl_src={a.mac(s, 0)},dl_dst=02:50:46:00:00:01,"
            f"nw_src={a.host(s, 0)},nw_dst={a.host(d, 1)},nw_ttl=64,tp_src={port},tp_dst=80"
        )
        text = self.control.call("ofproto/trace", f"s{s}", packet)
        passed = [int(v) for v in re.findall(r'^ *bridge\("s(\d+)"\)', text, re.M)]
        outputs = re.findall(r"^ *output:(\d+)$", text, re.M)
        mac = f"set_field:{a.mac(d, 1)}->eth_dst" in text
        return passed, mac and outputs[-1] == str(w.host_port[d, 1])

    def without(self, links):
        """Where packets go while these links are cut."""
        w, taken, back = self.build.wiring, [], []
        for v, k in links:
            u, port = int(w.far[v, k]), int(w.port[v, k])
            mine, theirs = f"s{v}p{port}", f"s{u}p{w.far_port[v, k]}"
            taken += ["--", "del-port", f"s{v}", mine, "--", "del-port", f"s{u}", theirs]
            for bridge, one, other, number in (
                (v, mine, theirs, port),
                (u, theirs, mine, int(w.far_port[v, k])),
            ):
                back += ["--", "add-port", f"s{bridge}", one, "--", "set", "interface", one]
                back += ["type=patch", f"options:peer={other}", f"ofport_request={number}"]
        self.ovs.vsctl(*taken[1:])
        found = [(s, d, *self.path(s, d, port)) for s, d in PAIRS for port in (80, 4711)]
        self.ovs.vsctl(*back[1:])
        return found


def main(build, text, folder):
    run("ip", "link", "set", "lo", "up")
    links = [(v, k) for v, far in enumerate(build.wiring.far.tolist()) for k in range(len(far))]
    links = [(v, k) for v, k in links if build.wiring.far[v, k] >= 0]
    with PrivateOvs(folder) as ovs:
        fabric = Traced(ovs, build, text)
        hosts = [Host(ovs, build, *which) for which in ((0, 0), (0, 1), (5, 0), (6, 1))]
        for host in hosts:
            host.wait_for_address()
        pings = [(a.ping(b.ipv4), a.ping(b.ipv6)) for a in hosts for b in hosts if a is not b]
        arrived = [[ttl(ping) for ping in pair] for pair in pings]
        return {
            "pings": arrived,
            "flows": ovs.ofctl("--no-stats", "dump-flows", "s5").count("cookie="),
            "usual": [(s, d, *fabric.path(s, d, port)) for s, d in PAIRS for port in (1, 2)],
            "shares": [fabric.path(0, 5, port)[0] for port in range(260)],
            "link": {str(cut): fabric.without([cut]) for cut in (links[0], links[10])},
            "switch": {
                str(v): fabric.without([link for link in links if link[0] == v]) for v in (4,)
            },
        }


if __name__ == "__main__":
    build, text, folder = map(Path, sys.argv[1:])
    print(json.dumps(main(load(build), text, folder)))
