"""Run in namespaces of its own by test_host_paths_live.py: hosts with an interface to each plane.

live_host_paths.py BUILD OUT JSON: OUT holds the renderings linux and srv6, each of all planes.
Prints JSON: answers of all pairs through path sets in the kernel; which packets along every single
carrier arrived, and the links that they took; what probes tell of a dead link, and what flows lose
before and after the repair.
"""

import json
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from functools import cache
from ipaddress import IPv6Address
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np

from compilers.tables.folders.build_folder import load_planes
from extensions.host_paths.host_path_set import host_paths
from extensions.host_paths.localisation import Probing
from extensions.host_paths.path_texts import linux_batch
from mininet_scenarios.scenario.engine import HostSample
from tests.compilers.targets.live_routed import Fabric, until

PORT, UDP, HOPS = 7000, 17, 64
PYTHON = (sys.executable, "-I", "-S", "-c")
RECEIVER = f"""
import json, select, socket, struct, sys
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as here:
    here.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
    here.bind(("::", {PORT}))
    print("ready", flush=True)
    seen, ended = [], False
    while True:
        ready, _, _ = select.select([here] if ended else [here, sys.stdin], [], [], 0.5)
        if here in ready:
            seen += struct.unpack("!I", here.recv(64)[:4])
        elif ready:
            ended = True
        elif ended:
            break
    print(json.dumps(seen))
"""
"""Prints the numbers of the datagrams that came, once its input has ended and it is quiet."""
CARRIED = """
import json, socket, sys
rows = json.load(sys.stdin)
for device in sorted({row[0] for row in rows}):
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, 41) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        for _, carrier, packet in (row for row in rows if row[0] == device):
            sender.sendto(bytes.fromhex(packet), (carrier, 0))
"""
"""Sends packets along carriers: the outer header is the kernel's, as encap.red makes it."""
FLOWS = f"""
import socket, struct, sys
for n in range(int(sys.argv[2])):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
        sender.bind(("::", 20000 + n))
        try:
            sender.sendto(struct.pack("!I", n), (sys.argv[1], {PORT}))
        except OSError:
            pass
"""


class Plane(Fabric):
    """A plane whose hosts are those of the first one, by an interface of their own."""

    def __init__(self, build, out, plane, first, folder):
        own = f"plane-{plane + 1}"
        super().__init__(build, out / "linux" / own, "linux", HostSample.of(build), folder)
        self.device, self.files = f"eth{plane}", out / "srv6" / own
        if first:
            for space in self.hosts:
                space.process.kill()
                space.process.wait()
            self.hosts = first.hosts

    def _cables(self):
        return [line.replace("name eth0", f"name {self.device}") for line in super()._cables()]

    def ip_commands(self, host):
        """The first plane's as ever; of others an interface with an address."""
        lines = (
            super().ip_commands(host) if self.device == "eth0" else [f"link set {self.device} up"]
        )
        if self.device != "eth0":
            lines.append(f"address add {self.address(host, 6)}/64 dev {self.device} nodad")
        return lines

    def _write_neighbour_entries(self):
        """Switches know each other for good: all namespaces together learn 1,024 neighbours."""
        links = [json.loads(space.run("ip", "-json", "link")) for space in self.switches]
        mac = [{each["ifname"]: each["address"] for each in own} for own in links]
        lines = defaultdict(list)
        for u, here, v, there in self.build.wiring.each_cable():
            for near, out, far, back in ((u, here, v, there), (v, there, u, here)):
                name, other = (self.build.wiring.port_name(*e) for e in ((near, out), (far, back)))
                to = self.routers[near].next_hops(far)[0]
                known = f"neighbour replace {to} lladdr {mac[far][other]} dev {name} nud permanent"
                lines[near].append(known)
        for vertex, own in lines.items():
            self.switches[vertex].run("ip", "-batch", "-", text="\n".join(own))

    def carry(self):
        """SIDs of switches, and what hosts need besides their path sets."""
        for space, name in zip(self.switches, self.build.wiring.names, strict=True):
            space.run("sysctl", "--quiet", "--load", str(self.files / name / "srv6-sysctl.conf"))
            space.run("ip", "-batch", str(self.files / name / "srv6.batch"))
        for i, space in enumerate(self.hosts):
            space.run("sysctl", "--quiet", "--write", "net.ipv6.fib_multipath_hash_policy=1")
            gateway = self.build.addressing.network6(int(self.sample.switch[i]))[1]
            space.run("ping", "-c1", "-W5", "-I", self.device, str(gateway))


class Planes:
    """All planes of a fabric, one host a switch."""

    def __init__(self, builds, out, folder):
        self.builds, self.planes = builds, []
        for p, build in enumerate(builds):
            first = self.planes[0] if self.planes else None
            self.planes.append(Plane(build, out, p, first, folder))
        for plane in self.planes:
            plane.start()
        for plane in self.planes:
            plane.carry()
        self.hosts = self.planes[0].hosts

    def load(self, host, batches):
        """Load batch files, from where the kernel had no memory for encapsulations for a moment."""
        lines = [line for batch in batches for line in batch if line[0] != "#"]

        def loaded():
            done = subprocess.run(
                [*self.hosts[host].command_prefix, "ip", "-batch", "-"],
                input="".join(lines),
                capture_output=True,
                text=True,
            )
            if done.returncode:
                assert "Cannot allocate memory" in done.stderr, done.stderr
                del lines[: int(done.stderr.rsplit(":", 1)[1]) - 1]
            return not done.returncode

        until(loaded)

    @cache  # noqa: B019 - ends with the process
    def paths(self, source, destination, count, failures=()):
        return host_paths(self.builds, source, destination, count, failures=failures)

    def sent(self):
        return np.array([plane.sent() for plane in self.planes])

    def receive(self, send):
        """The numbers of the datagrams that every host gets while `send` sends."""
        listening = [
            space.spawn(
                [*PYTHON, RECEIVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for space in self.hosts
        ]
        for process in listening:
            assert process.stdout.readline() == "ready\n"
        send()
        for process in listening:
            process.stdin.close()
        return [json.loads(process.stdout.readline()) for process in listening]

    def packet(self, source, destination, number):
        """An IPv6 packet with a datagram that holds a number."""
        ends = [IPv6Address(self.planes[0].address(end, 6)).packed for end in (source, destination)]
        length = 12
        datagram = struct.pack("!HHHHI", PORT, PORT, length, 0, number)
        whole = b"".join(ends) + struct.pack("!II", length, UDP) + datagram
        total = sum(struct.unpack(f"!{len(whole) // 2}H", whole))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        datagram = struct.pack("!HHHHI", PORT, PORT, length, ~total & 0xFFFF, number)
        head = struct.pack("!IHBB", 6 << 28, length, UDP, HOPS)
        return (head + b"".join(ends) + datagram).hex()

    def send_along(self, rows):
        """Send a packet along each path: (number, plane, switches, carrier)."""
        by_host = {}
        for number, plane, nodes, carrier in rows:
            packet = self.packet(nodes[0], nodes[-1], number)
            by_host.setdefault(nodes[0], []).append([f"eth{plane}", carrier, packet])
        for host, own in by_host.items():
            self.hosts[host].run(*PYTHON, CARRIED, text=json.dumps(own))

    def all_paths(self, count):
        """Packets that did not arrive once, and the largest surplus of any link over the plan."""
        rows = []
        for ends in permutations(range(len(self.hosts)), 2):
            found = self.paths(*ends, count)
            rows += [
                (len(rows) + i, path.plane, path.nodes, found.carrier(path))
                for i, path in enumerate(found.paths)
            ]
        before = self.sent()
        arrived = self.receive(lambda: self.send_along(rows))
        more = self.sent() - before
        for _, plane, nodes, _ in rows:
            far = self.builds[plane].wiring.far
            for here, there in pairwise(nodes):
                more[plane, here, far[here] == there] -= 1
        wanted = Counter((row[2][-1], row[0]) for row in rows)
        got = Counter((host, n) for host, numbers in enumerate(arrived) for n in numbers)
        return {
            "paths": len(rows),
            "wrong": len((wanted - got) + (got - wanted)),
            "fewest": int(more.min()),
            "most": int(more.max()),
        }

    def report(self, probing):
        """What `localise` says of the fabric as it is."""
        rows = [(p.number, p.plane, p.nodes, probing.carrier(p)) for p in probing.probes]
        came = {n for numbers in self.receive(lambda: self.send_along(rows)) for n in numbers}
        return probing.localise({p.number for p in probing.probes} - came, came).sentence()

    def flows(self, source, destination, count):
        """How many of so many flows between two hosts arrive, through the kernel's path sets."""
        to = self.planes[0].address(destination, 6)
        send = [*PYTHON, FLOWS, to, str(count)]
        return len(set(self.receive(lambda: self.hosts[source].run(*send))[destination]))


def main(builds, out, folder, wanted):
    fabric, count = Planes(builds, out, folder), wanted["count"]
    order = range(len(fabric.hosts))
    for host in order:
        others = [fabric.paths(host, there, count) for there in order if there != host]
        fabric.load(host, map(linux_batch, others))
    seen = {"pings": fabric.planes[0].pings(6), "all": fabric.all_paths(count)}
    if "down" not in wanted:
        return seen
    probing, (plane, here, there) = Probing.of(builds), wanted["down"]
    link = "-".join(builds[plane].wiring.names[v] for v in (here, there))
    number = int(np.flatnonzero(builds[plane].wiring.far[here] == there)[0])
    ends, flows = (here, there), wanted["flows"]
    seen["whole"] = fabric.report(probing)
    fabric.planes[plane].set_link(here, number, up=False)
    seen["report"] = fabric.report(probing)
    seen["broken"] = fabric.flows(*ends, flows)
    fabric.load(here, [linux_batch(fabric.paths(*ends, count, (link,)))])
    seen["repaired"] = fabric.flows(*ends, flows)
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        build, out = Path(sys.argv[1]), Path(sys.argv[2])
        print(json.dumps(main(load_planes(build), out, Path(folder), json.loads(sys.argv[3]))))
