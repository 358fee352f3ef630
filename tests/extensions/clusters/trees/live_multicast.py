"""Run in namespaces of its own by test_multicast_rows.py: real Open vSwitch, frames of real hosts.

live_multicast.py FOLDER U V: a q=3 build with a host per switch, its program, its trees, and those
with the link between U and V down; prints JSON.
"""

import json
import re
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

from compilers.tables.folders.build_folder import load
from extensions.clusters.trees.multicast_rows import FILE, address
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.compilers.targets.live_ovs import bridges

ETHERNET, IP = 14, 20
PATIENCE = 20
QUIET = 0.2


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


class Host:
    """The far end of a veth pair on a switch's host port."""

    def __init__(self, ovs, build, vertex):
        name, port = f"h{vertex}", int(build.wiring.host_port[vertex, 0])
        run("ip", "link", "add", name, "type", "veth", "peer", f"e{vertex}")
        run("ip", "link", "set", name, "up")
        run("ip", "link", "set", f"e{vertex}", "up")
        setting = ["--", "set", "interface", name, f"ofport_request={port}"]
        ovs.vsctl("add-port", f"s{vertex}", name, *setting)
        self.mac = bytes.fromhex(build.addressing.mac(vertex, 0).replace(":", ""))
        self.ip = build.addressing.host(vertex, 0).packed
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.socket.bind((f"e{vertex}", 0))
        self.socket.setblocking(False)

    def send(self, tree, name):
        """A datagram to a tree, with a name that tells it from others."""
        group = address(tree).packed
        payload = name.encode()
        head = bytearray(
            b"\x45\0" + (IP + len(payload)).to_bytes(2, "big") + bytes(4) + b"\x40\xfd"
        )
        head += bytes(2) + self.ip + group
        total = sum(int.from_bytes(head[i : i + 2], "big") for i in range(0, IP, 2))
        head[10:12] = (~(total + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
        mac = b"\x01\x00\x5e" + bytes([group[1] & 0x7F]) + group[2:]
        self.socket.send(mac + self.mac + b"\x08\0" + head + payload)


def received(hosts, name, want):
    """How often each host got it, and the least TTL; until `want` copies came, and then none."""
    counts, least, limit = [0] * len(hosts), 255, time.monotonic() + PATIENCE
    by_socket = {host.socket: i for i, host in enumerate(hosts)}
    while True:
        wait = QUIET if want is None or sum(counts) >= want else limit - time.monotonic()
        ready = select.select(list(by_socket), [], [], max(wait, 0))[0]
        if not ready:
            return counts, least
        for each in ready:
            frame, (_, _, kind, _, _) = each.recvfrom(2048)
            if kind != socket.PACKET_OUTGOING and name.encode() in frame:
                counts[by_socket[each]] += 1
                least = min(least, frame[ETHERNET + 8])


def sent(ovs, build):
    """Packets that each patch port has sent so far, by its two switches."""
    ovs.appctl("revalidator/purge")
    w, found = build.wiring, {}
    for v in range(len(w.names)):
        text = ovs.ofctl("dump-ports", f"s{v}")
        out = re.findall(r'port +"?([^ ":]+)"?: rx.*?\n +tx pkts=(\d+)', text)
        by_port = {name: int(count) for name, count in out}
        for k in (w.far[v] >= 0).nonzero()[0]:
            names = str(int(w.port[v, k])), f"s{v}p{w.port[v, k]}"
            count = next((by_port[name] for name in names if name in by_port), 0)
            found[v, int(w.far[v, k])] = count
    return found


def flood(ovs, build, hosts, label, whole=True):
    """What a datagram of host 0 to each tree does."""
    result = {}
    before = sent(ovs, build)
    for tree in range(2):
        name = f"{label} {tree}"
        hosts[0].send(tree, name)
        counts, ttl = received(hosts, name, len(hosts) - 1 if whole else None)
        after = sent(ovs, build)
        used = [
            (list(ends), after[ends] - before[ends]) for ends in after if after[ends] > before[ends]
        ]
        assert counts[0] == 0
        before = after
        result[tree + 1] = {"copies": counts[1:], "links": used, "ttl": ttl}
    return result


def rows(ovs):
    """How many rows switch 0 has."""
    return ovs.ofctl("--no-stats", "dump-flows", "s0").count("cookie=")


def main(folder, u, v):
    build = load(folder / "build")
    everywhere = range(len(build.wiring.names))
    held = {}
    with PrivateOvs(folder / "ovs") as ovs:
        bridges(ovs, build)
        program = folder / "program" / build.wiring.names[0]
        ovs.ofctl("add-groups", "s0", str(program / "groups.txt"))
        ovs.ofctl("add-flows", "s0", str(program / "flows.txt"))
        held["program"] = rows(ovs)
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
        hosts = [Host(ovs, build, s) for s in everywhere]

        def load_trees(name):
            for s in everywhere:
                ovs.ofctl("bundle", f"s{s}", str(folder / name / build.wiring.names[s] / FILE))

        load_trees("whole")
        held["trees"] = rows(ovs)
        result = {"whole": flood(ovs, build, hosts, "whole")}
        for one, other in ((u, v), (v, u)):
            k = build.wiring.far[one].tolist().index(other)
            ovs.vsctl("del-port", f"s{one}p{build.wiring.port[one, k]}")
        result["broken"] = flood(ovs, build, hosts, "broken", whole=False)
        load_trees("repaired")
        held["again"] = rows(ovs)
        result["repaired"] = flood(ovs, build, hosts, "repaired")
    return result | {"rows": held}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
