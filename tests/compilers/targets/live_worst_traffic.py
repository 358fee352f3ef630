"""Run in namespaces of its own by test_worst_traffic_live.py: the worst traffic on Open vSwitch.

live_worst_traffic.py BUILD TEXT FOLDER: a build, its rendering for target ovs, and a folder for the
daemons. Standard input is JSON: the flows between switches, each with its hosts. From every host of
a flow `PACKETS` connections of a packet each are sent. Prints how many left by each fabric port of
each switch.
"""

import json
import re
import struct
import sys
import time
from pathlib import Path

from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.compilers.targets.live_deals import opened
from tests.compilers.targets.live_ovs import bridges, run

PACKETS, BURST = 1_000, 125
PATIENCE = 20.0
GATEWAY = bytes.fromhex("025046000001")


def frame(build, source, destination, host, number):
    """A TCP packet of a connection of its own."""
    a = build.addressing
    own = bytes.fromhex(a.mac(source, host).replace(":", ""))
    head = struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0)
    ends = a.host(source, host).packed + a.host(destination, host).packed
    tcp = struct.pack(">HHLLBBHHH", 1024 + number, 80, 0, 0, 0x50, 2, 512, 0, 0)
    return GATEWAY + own + b"\x08\x00" + head + ends + tcp


def counters(ovs, build):
    """The packets that left by each port of each switch."""
    found = {}
    for v in range(len(build.wiring.names)):
        text = ovs.ofctl("--no-names", "dump-ports", f"s{v}")
        for port, sent in re.findall(r"port +(\d+): rx .*\n +tx pkts=(\d+)", text):
            found[f"{v} {port}"] = int(sent)
    return found


def entered(ovs, entries):
    """The packets that came in by the hosts' ports, {switch: ports}."""
    total = 0
    for v, ports in entries.items():
        text = ovs.ofctl("--no-names", "dump-ports", f"s{v}")
        for port, received in re.findall(r"port +(\d+): rx pkts=(\d+)", text):
            total += int(received) if int(port) in ports else 0
    return total


def main(build, text, folder, flows):
    run("ip", "link", "set", "lo", "up")
    with PrivateOvs(folder) as ovs:
        bridges(ovs, build)
        for v, name in enumerate(build.wiring.names):
            ovs.ofctl("add-groups", f"s{v}", str(text / name / "groups.txt"))
            ovs.ofctl("add-flows", f"s{v}", str(text / name / "flows.txt"))
        sockets, entries = {}, {}
        for source, _, hosts in flows:
            for host in range(hosts):
                name = f"h{source}x{host}"
                sockets[source, host] = opened(name)
                port = int(build.wiring.host_port[source, host])
                setting = ["--", "set", "interface", f"{name}.s", f"ofport_request={port}"]
                ovs.vsctl("add-port", f"s{source}", f"{name}.s", *setting)
                entries.setdefault(source, set()).add(port)
        before, sent = entered(ovs, entries), 0
        for first in range(0, PACKETS, BURST):
            for source, destination, hosts in flows:
                for host in range(hosts):
                    for number in range(first, min(first + BURST, PACKETS)):
                        sockets[source, host].send(frame(build, source, destination, host, number))
                        sent += 1
            limit = time.monotonic() + PATIENCE
            while entered(ovs, entries) - before < sent:
                assert time.monotonic() < limit, "packets are lost before they come in"
        return {"sent": sent, "left": settled(ovs, build)}


def settled(ovs, build):
    """Counters that no longer change: Open vSwitch adds up what its cache forwards now and then."""
    limit, found, since = time.monotonic() + PATIENCE, {}, time.monotonic()
    while time.monotonic() - since < 2:
        assert time.monotonic() < limit
        again = counters(ovs, build)
        if again != found:
            found, since = again, time.monotonic()
        time.sleep(0.5)
    return found


if __name__ == "__main__":
    build, text, folder = map(Path, sys.argv[1:])
    print(json.dumps(main(load(build), text, folder, json.load(sys.stdin))))
