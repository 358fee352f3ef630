"""Run in namespaces of its own by test_ovs_live.py: real Open vSwitch, real hosts; prints JSON.

live_ovs.py BUILD TEXT FOLDER POLICIES TEXT MARKED TEXT: a q=2 build with two hosts per switch and
IPv6, its rendering, a folder for the daemons, the same fabric with alternates and protection, and
one of q=3 that marks packets.
"""

import json
import re
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

from compilers.tables.folders.build_folder import load
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import barrier, commit, opening
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.controller.unixctl import Unixctl

HELLO, ERROR, ECHO, BARRIER_REPLY = 0, 1, 2, 21
UNLIKE = 0, 2, 6
"""Switches with two links, and with three; the last is asked for what only some builds have."""
BRIDGE = ("datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow13")


class Peer:
    """The controller's end of one switch's connection.

    The switch keeps the controller's address afterwards: without one it would drop all its flows.
    """

    def __init__(self, ovs, bridge):
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(20)
            ovs.vsctl("set-controller", bridge, f"tcp:127.0.0.1:{server.getsockname()[1]}")
            self.socket, _ = server.accept()
        self.socket.settimeout(20)
        self.socket.sendall(struct.pack(">BBHL", 4, HELLO, 8, 0))

    def exchange(self, data):
        """Send messages that end in a barrier; errors before its reply, as (type, code, xid)."""
        self.socket.sendall(data)
        barrier = data[-4:]
        errors = []
        while True:
            head = self._read(8)
            kind, length, xid = struct.unpack(">xBHL", head)
            body = self._read(length - 8)
            if kind == ERROR:
                errors.append((*struct.unpack_from(">HH", body), xid))
            if kind == ECHO:
                self.socket.sendall(struct.pack(">BBHL", 4, 3, length, xid) + body)
            if kind == BARRIER_REPLY and head[4:] == barrier:
                return errors

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, "the switch hung up"
            data += more
        return data


def dump(ovs, bridge):
    """Flows and groups of a switch, without what differs by chance."""

    def rows(*command):
        lines = ovs.ofctl(*command, bridge).splitlines()
        return sorted(line.strip() for line in lines if not line.startswith("OFPST"))

    return {"flows": rows("--no-stats", "dump-flows"), "groups": rows("dump-groups")}


def bridges(ovs, build):
    """A bridge per vertex, all cabled with patch ports as the wiring says."""
    commands = []
    w = build.wiring
    for v in range(len(w.names)):
        commands += ["--", "add-br", f"s{v}", "--", "set", "bridge", f"s{v}", *BRIDGE]
    for v, k in zip(*(w.far >= 0).nonzero(), strict=True):
        u, port = int(w.far[v, k]), int(w.port[v, k])
        mine, theirs = f"s{v}p{port}", f"s{u}p{w.far_port[v, k]}"
        commands += ["--", "add-port", f"s{v}", mine, "--", "set", "interface", mine]
        commands += ["type=patch", f"options:peer={theirs}", f"ofport_request={port}"]
    ovs.vsctl(*commands[1:])


class Host:
    """A network namespace on a host port, configured as an engineer would: subnet and gateway."""

    def __init__(self, ovs, build, vertex, host):
        a, port = build.addressing, int(build.wiring.host_port[vertex, host])
        name = f"h{vertex}-{host}"
        self.process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec sleep 300"], stdout=subprocess.PIPE
        )
        self.process.stdout.readline()
        self.pid = str(self.process.pid)
        self.ipv4, self.ipv6 = str(a.host(vertex, host)), str(a.host6(vertex, host))
        run("ip", "link", "add", name, "type", "veth", "peer", "eth0", "netns", self.pid)
        run("ip", "link", "set", name, "up")
        setting = ["--", "set", "interface", name, f"ofport_request={port}"]
        ovs.vsctl("add-port", f"s{vertex}", name, *setting)
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "link", "set", "eth0", "address", a.mac(vertex, host), "up")
        self.run("ip", "addr", "add", f"{self.ipv4}/{a.ipv4_length}", "dev", "eth0")
        self.run("ip", "addr", "add", f"{self.ipv6}/64", "dev", "eth0")
        self.run("ip", "route", "add", "default", "via", str(a.gateway(vertex)))
        self.run("ip", "route", "add", "default", "via", str(a.network6(vertex)[1]))

    def wait_for_address(self):
        """Until duplicate address detection has ended; a failed one stays in the output."""
        limit = time.monotonic() + 15
        while "tentative" in self.run("ip", "-6", "addr", "show", "dev", "eth0"):
            assert time.monotonic() < limit, "the address stays tentative"
            time.sleep(0.05)

    def run(self, *command):
        return run("nsenter", "-t", self.pid, "-n", *command)

    def ping(self, address):
        """Three pings on their way, one a process.

        Of several, ping waits for the last answer no longer than two round trips of the others: on
        a busy machine that is too short.
        """
        loop = f"for n in 1 2 3; do ping -n -c1 -W10 {address}; done"
        command = ["nsenter", "-t", self.pid, "-n", "sh", "-c", loop]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ttl(ping):
    """The TTL that its three answers arrived with, None when one is missing or they differ."""
    found = re.findall(r"ttl=(\d+)", ping.communicate()[0])
    return int(found[0]) if len(found) == 3 and len(set(found)) == 1 else None


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def control(ovs):
    """A connection for commands of ovs-appctl: a trace starts no program."""
    (path,) = ovs.folder.glob("ovs-vswitchd.*.ctl")
    return Unixctl(path)


def trace(switches, build, source, target):
    """The bridges a packet passes, how often it loses a TTL, and what is done to it at last."""
    a = build.addressing
    packet = (
        f"in_port={build.wiring.host_port[source, 0]},ip,dl_src={a.mac(source, 0)},"
        f"dl_dst=02:50:46:00:00:01,nw_src={a.host(source, 0)},nw_dst={a.host(target, 1)},nw_ttl=64"
    )
    text = switches.call("ofproto/trace", f"s{source}", packet)
    passed = re.findall(r'^ *bridge\("(\w+)"\)', text, re.M)
    lines = [line.strip() for line in text.splitlines()]
    rewrites = [line for line in lines if line.startswith("set_field:")]
    outputs = [line for line in lines if line.startswith("output:")]
    return {
        "passed": passed,
        "ttl": lines.count("dec_ttl"),
        "rewrites": rewrites,
        "last": outputs[-1],
    }


def main(build, text, folder, policies, **others):
    encoder, everywhere = Encoder(build), range(len(build.wiring.names))
    run("ip", "link", "set", "lo", "up")
    with PrivateOvs(folder) as ovs:
        bridges(ovs, build)
        result = {"refused": refusal(ovs, encoder)}
        result["with policies"] = {v: both_ways(ovs, *policies, v) for v in UNLIKE}
        for name, other in others.items():
            result[name] = {v: both_ways(ovs, *other, v) for v in UNLIKE}
        result["plain"] = {v: both_ways(ovs, build, text, v) for v in everywhere}
        hosts = [Host(ovs, build, *which) for which in ((0, 0), (0, 1), (3, 0), (6, 1))]
        for host in hosts:
            host.wait_for_address()
        result["addresses"] = [h.run("ip", "addr", "show", "dev", "eth0") for h in hosts]
        pings = [(a.ping(b.ipv4), a.ping(b.ipv6)) for a in hosts for b in hosts if a is not b]
        result["pings"] = [[ttl(ping) for ping in pair] for pair in pings]
        result["neighbours"] = [h.run("ip", "neigh") for h in hosts]
        with control(ovs) as switches:
            result["traces"] = {
                f"{s} {d}": trace(switches, build, s, d)
                for s in everywhere
                for d in everywhere
                if s != d
            }
    return result


COMMIT = commit() + barrier(1)


def prepare(encoder, vertex):
    """A bundle that is opened and filled, and a barrier."""
    return b"".join((opening(), *encoder.program(vertex).parts, barrier(0)))


def empty(ovs, bridge):
    """Without any flows and groups."""
    ovs.ofctl("del-groups", bridge)
    ovs.ofctl("del-flows", bridge)


def both_ways(ovs, build, text, v):
    """A switch programmed by wire and one by text: both dumps."""
    name, encoder = build.wiring.names[v], Encoder(build)
    ovs.vsctl("add-br", f"t{v}", "--", "set", "bridge", f"t{v}", *BRIDGE)
    ovs.ofctl("add-groups", f"t{v}", str(text / name / "groups.txt"))
    ovs.ofctl("add-flows", f"t{v}", str(text / name / "flows.txt"))
    empty(ovs, f"s{v}")
    with Peer(ovs, f"s{v}") as end:
        errors = end.exchange(prepare(encoder, v)) + end.exchange(COMMIT)
    assert not errors, [(e, encoder.describe(e[2])) for e in errors]
    dumps = {"wire": dump(ovs, f"s{v}"), "text": dump(ovs, f"t{v}")}
    ovs.vsctl("del-br", f"t{v}")
    return dumps


def refusal(ovs, encoder):
    """Foreign rows stay, and a program with one bad row changes nothing unless it is committed."""
    bad = bytearray(prepare(encoder, 0))
    place, last = 0, 0
    while place < len(bad):
        if bad[place + 4] == RowKind.ROUTE:
            last = place
        place += struct.unpack_from(">H", bad, place + 2)[0]
    bad[last + 24 + 24] = 0xFF  # the table of the last route
    with Peer(ovs, "s0") as end:
        ovs.ofctl("add-group", "s0", "group_id=2999,type=indirect,bucket=actions=output:1")
        ovs.ofctl("add-flow", "s0", "table=9,priority=9,cookie=0x99,ip,actions=group:2999")
        errors = end.exchange(bytes(bad))
        after = dump(ovs, "s0")
    with Peer(ovs, "s0") as end:
        pushed = end.exchange(prepare(encoder, 0)) + end.exchange(COMMIT)
        foreign = dump(ovs, "s0")
        empty(ovs, "s0")
        end.exchange(bytes(bad) + COMMIT)
        partial = len(dump(ovs, "s0")["flows"])
    return {
        "errors": [(*e[:2], encoder.describe(e[2])) for e in errors],
        "after": after,
        "pushed": pushed,
        "with foreign": foreign,
        "rows if committed all the same": partial,
    }


if __name__ == "__main__":
    build, text, folder, *others = map(Path, sys.argv[1:])
    pairs = {each.name: (load(each), each.with_name(f"{each.name}-text")) for each in others}
    print(json.dumps(main(load(build), text, folder, **pairs)))
