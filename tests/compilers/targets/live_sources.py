"""Run in namespaces of its own by test_sources_live.py: frames that a host forges; prints JSON.

live_sources.py FOLDER BUILD TEXT…: a folder for the daemons, then builds of one fabric of q=3 with
two hosts a switch and IPv6, each with its rendering. Printed are, by build and host that gets them,
the frames of each kind that arrived.
"""

import json
import select
import socket
import sys
import time
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

from compilers.tables.folders.build_folder import load
from mininet_scenarios.machine.netns import entered
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.compilers.targets.live_ovs import Host, bridges, run

COPIES, ALL_FRAMES = 3, 3
GATEWAY = bytes.fromhex("025046000001")
STEERED = {"marked": GATEWAY[:3] + b"\x80\x00\x01", "intermediate": GATEWAY[:3] + b"\x80\x00\x07"}
SENDER, NEIGHBOUR, FAR, VICTIM = (0, 0), (0, 1), (5, 0), (9, 0)


def total(data):
    """The checksum of the Internet protocol (RFC 1071)."""
    words = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    return (~words & 0xFFFF).to_bytes(2, "big")


def frame(source, target, words, mac=GATEWAY):
    """A UDP datagram in an Ethernet frame; its checksum is left out, or wrong in IPv6."""
    source, target = ip_address(source), ip_address(target)
    text = words.encode().ljust(40)
    datagram = b"\x10\x00\x10\x01" + (8 + len(text)).to_bytes(2, "big") + b"\x00\x00" + text
    if source.version == 4:
        head = b"\x45\x00" + (20 + len(datagram)).to_bytes(2, "big") + b"\x00\x00\x00\x00\x40\x11"
        ends = source.packed + target.packed
        packet = head + total(head + b"\x00\x00" + ends) + ends + datagram
        return mac + b"\x02\x00\x00\x00\x00\x63\x08\x00" + packet
    head = b"\x60\x00\x00\x00" + len(datagram).to_bytes(2, "big") + b"\x11\x40"
    packet = head + source.packed + target.packed + datagram
    return mac + b"\x02\x00\x00\x00\x00\x63\x86\xdd" + packet


def router_advertisement(source, words):
    """To all nodes of the link (RFC 4861, section 4.2), with the words in place of options."""
    body = b"\x86\x00\x00\x00\x40\x00\x07\x08" + bytes(8) + b"\x10\x00\x10\x01"
    body += words.encode().ljust(40)
    head = b"\x60\x00\x00\x00" + len(body).to_bytes(2, "big") + b"\x3a\xff"
    ends = ip_address(source).packed + ip_address("ff02::1").packed
    return b"\x33\x33\x00\x00\x00\x01\x02\x00\x00\x00\x00\x63\x86\xdd" + head + ends + body


def frames(build, target):
    """What is sent to a host: frames that are right, and forged ones."""
    a = build.addressing
    yield router_advertisement(a.host6(*SENDER), "router advertisement")
    for host in (a.host, a.host6):
        to, version = host(*target), "4" if host == a.host else "6"
        for name, source in (("victim", VICTIM), ("neighbour", NEIGHBOUR), ("target", target)):
            yield frame(host(*source), to, f"as {name} {version}")
        for name, mac in STEERED.items():
            yield frame(host(*SENDER), to, f"{name} {version}", mac)
        yield frame(host(*SENDER), to, f"own {version}")


def packet_socket(host):
    with entered(int(host.pid)):
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
    one.bind(("eth0", 0))
    return one


def seen(build, sender, targets):
    """The frames that each host got, by their words."""
    got = {name: Counter() for name in targets}
    for name, (which, end) in targets.items():
        for one in frames(build, which):
            for _ in range(COPIES):
                sender.send(one)
        limit = time.monotonic() + 10
        wanted = dict.fromkeys(("own 4", "own 6"), COPIES)
        while wanted.items() - got[name].items() and time.monotonic() < limit:
            if select.select([end], [], [], 0.1)[0]:
                data, (_, _, direction, *_) = end.recvfrom(2048)
                if direction != socket.PACKET_OUTGOING and b"\x10\x00\x10\x01" in data:
                    got[name][data[-40:].decode(errors="replace").strip()] += 1
    return got


def bundle(folder, files):
    """One file in place of all flows and groups by these: a program starts once."""
    lines = ["flow delete", "group delete group_id=all"]
    for kind in ("group", "flow"):
        rows = (files / f"{kind}s.txt").read_text().splitlines()
        lines += [f"{kind} add {row}" for row in rows if row and not row.startswith("#")]
    (folder / "bundle.txt").write_text("\n".join([*lines, ""]))
    return folder / "bundle.txt"


def main(folder, pairs):
    run("ip", "link", "set", "lo", "up")
    with PrivateOvs(folder) as ovs:
        build = load(pairs[0][0])
        bridges(ovs, build)
        hosts = {which: Host(ovs, build, *which) for which in (SENDER, NEIGHBOUR, FAR)}
        ends = {which: packet_socket(host) for which, host in hosts.items()}
        targets = {"neighbour": (NEIGHBOUR, ends[NEIGHBOUR]), "far": (FAR, ends[FAR])}
        result = {}
        for folder_of_build, text in pairs:
            for v, name in enumerate(build.wiring.names):
                ovs.ofctl("bundle", f"s{v}", str(bundle(folder, text / name)))
            result[folder_of_build.name] = seen(build, ends[SENDER], targets)
        return result


if __name__ == "__main__":
    folder, *others = map(Path, sys.argv[1:])
    print(json.dumps(main(folder, list(zip(others[::2], others[1::2], strict=True)))))
