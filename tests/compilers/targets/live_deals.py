"""Run in namespaces of its own by test_deals_live.py: real Open vSwitch deals packets to ports.

live_deals.py FOLDER: reads JSON from standard input, groups as lists of [port, weight], and sends
`FLOWS` TCP connections of a packet each through every one; prints how many came out of each port.
"""

import json
import socket
import struct
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.compilers.targets.live_ovs import run

FLOWS, BURST, PATIENCE = 60_000, 64, 2.0
ETHERNET = bytes.fromhex("0250460000010250460000020800")
ENTRY, EXIT = 998, 999


def frame(number):
    """A TCP packet of a connection of its own: two clients, each with many ports."""
    client, port = divmod(number, 30_000)
    head = struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0)
    addresses = bytes((10, 0, 0, 2 + client, 10, 0, 1, 2))
    tcp = struct.pack(">HHLLBBHHH", 1024 + port, 80, 0, 0, 0x50, 2, 512, 0, 0)
    return ETHERNET + head + addresses + tcp


def carried(entry, out, ports):
    """Send all flows, a burst after the other has come out; how many came out of each port."""
    came = Counter()
    for begin in range(0, FLOWS, BURST):
        numbers = range(begin, min(begin + BURST, FLOWS))
        for number in numbers:
            entry.send(frame(number))
        with suppress(TimeoutError):  # a busy machine drops some
            for _ in numbers:
                came[int.from_bytes(out.recv(100)[10:12], "big")] += 1
    assert came.total() > 0.99 * FLOWS
    return [came[port] for port in ports]


def opened(name):
    """A socket that sends and hears the frames of an interface."""
    run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}.s")
    for end in (name, f"{name}.s"):
        run("ip", "link", "set", end, "up")
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    made.bind((name, 0))
    made.settimeout(PATIENCE)
    return made


def switches(ovs, ports):
    """One deals packets to patch ports; the other writes into a packet where it came from."""
    words = []
    for name, ends in (("deals", {"entry.s": ENTRY}), ("sink", {"exit.s": EXIT})):
        words += ["--", "add-br", name, "--", "set", "bridge", name, "datapath_type=netdev"]
        words += ["fail_mode=secure", "protocols=OpenFlow13"]
        ends |= {f"{name}{port}": port for port in ports}
        for end, port in ends.items():
            other = {"deals": "sink", "sink": "deals"}[name]
            patch = ["type=patch", f"options:peer={other}{port}"] if port in ports else []
            words += ["--", "add-port", name, end, "--", "set", "interface", end, *patch]
            words += [f"ofport_request={port}"]
    ovs.vsctl(*words[1:])
    ovs.ofctl("add-flow", "deals", f"in_port={ENTRY},actions=drop")
    for port in ports:
        mark = f"set_field:02:00:00:00:{port >> 8:02x}:{port & 255:02x}->eth_src"
        ovs.ofctl("add-flow", "sink", f"in_port={port},actions={mark},output:{EXIT}")


def main(groups, folder):
    entry, out = opened("entry"), opened("exit")
    with PrivateOvs(folder) as ovs:
        switches(ovs, sorted({port for group in groups for port, _ in group}))
        found = []
        for group in groups:
            buckets = ",".join(
                f"bucket=weight:{weight},watch_port:{port},actions=output:{port}"
                for port, weight in group
            )
            ovs.ofctl("del-groups", "deals")
            ovs.ofctl("add-group", "deals", f"group_id=1,type=select,{buckets}")
            ovs.ofctl("add-flow", "deals", f"in_port={ENTRY},actions=group:1")
            found.append(carried(entry, out, sorted({port for port, _ in group})))
    return found


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin), Path(sys.argv[1]))))
