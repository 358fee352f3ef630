"""Run in namespaces of its own by test_every_hop_live.py: real Open vSwitch; prints JSON.

live_every_hop.py BUILD TEXT FOLDER: a build whose ways are shared at every hop, its rendering, and
a folder for the daemons. Packets are traced through all bridges, whole and with each link down.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np

from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.compilers.targets.live_ovs import bridges, control, run

FLOWS, FLOWS_WITH_A_FAILURE = 24, 3


def path(switches, build, source, target, flow):
    """The switches that a packet of a flow passes, and whether a host gets it."""
    a, port = build.addressing, build.wiring.host_port
    packet = (
        f"in_port={port[source, 0]},udp,dl_src={a.mac(source, 0)},dl_dst=02:50:46:00:00:01,"
        f"nw_src={a.host(source, 0)},nw_dst={a.host(target, 0)},nw_ttl=64,"
        f"udp_src={1000 + 7 * flow},udp_dst=4791"
    )
    text = switches.call("ofproto/trace", f"s{source}", packet)
    passed = [int(found) for found in re.findall(r'^ *bridge\("s(\d+)"\)', text, re.M)]
    last = text.rpartition("bridge(")[2]
    return passed, passed[-1] == target and f"output:{port[target, 0]}\n" in last


def cable(ovs, end, other):
    """A patch port at one end of a link."""
    (switch, port), (far, far_port) = end, other
    name = f"s{switch}p{port}"
    setting = ["type=patch", f"options:peer=s{far}p{far_port}", f"ofport_request={port}"]
    ovs.vsctl("add-port", f"s{switch}", name, "--", "set", "interface", name, *setting)


def main(build, text, folder):
    ends = np.flatnonzero(build.topology.endpoints).tolist()
    pairs = [(s, d) for s in ends for d in ends if s != d]
    run("ip", "link", "set", "lo", "up")
    with PrivateOvs(folder) as ovs, control(ovs) as switches:
        bridges(ovs, build)
        for v, name in enumerate(build.wiring.names):
            ovs.ofctl("add-groups", f"s{v}", str(text / name / "groups.txt"))
            ovs.ofctl("add-flows", f"s{v}", str(text / name / "flows.txt"))
        whole = [[path(switches, build, *pair, k) for k in range(FLOWS)] for pair in pairs[::9]]
        lost, links = [], []
        w = build.wiring
        for v, k in np.argwhere(w.far > np.arange(len(w.far))[:, None])[::3].tolist():
            ends_of = ((v, w.port[v, k]), (w.far[v, k], w.far_port[v, k]))
            (one, mine), (other, theirs) = ((f"s{s}", f"s{s}p{port}") for s, port in ends_of)
            ovs.vsctl("del-port", one, mine, "--", "del-port", other, theirs)
            cut = (v, int(w.far[v, k]))
            for pair in [cut, cut[::-1], *pairs[len(links) % 7 :: 15]]:
                for flow in range(FLOWS_WITH_A_FAILURE):
                    passed, arrives = path(switches, build, *pair, flow)
                    links.append([*pair, len(passed) - 1])
                    if not arrives:
                        lost.append([*cut, passed])
            cable(ovs, *ends_of)
            cable(ovs, *ends_of[::-1])
    return {"pairs": pairs[::9], "whole": whole, "lost": lost, "links": links}


if __name__ == "__main__":
    build, text, folder = map(Path, sys.argv[1:])
    print(json.dumps(main(load(build), text, folder)))
