"""Run in namespaces of its own by test_routed_live.py: the kernel forwards, real hosts ping.

live_routed.py BUILD OUT TARGET JSON: a build with one host a switch, its rendering, and what to do;
prints JSON. Every switch and every host is a network namespace.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compilers.build import load
from mininet_scenarios.pinging import ping_all

PATIENCE = 20
FRR = Path("/usr/lib/frr")
OURS, BGPS = ("80",), ("bgp", "186")
FRRS = ("static", "196", *BGPS)
"""The protocols of routes in the kernel: ours, and zebra's for static routes and BGP."""
DATAGRAMS = """
import socket, sys
address, count = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
with socket.socket(family, socket.SOCK_DGRAM) as sender:
    for n in range(count):
        sender.sendto(b"", (address, 1024 + n))
"""
"""A datagram a flow: the kernel hashes ports too. A refused one is an error of the next call."""


def run(*command, text=None, check=True):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-1500:]}{done.stdout[-500:]}")
    return done.stdout


def until(true):
    limit = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > limit:
            raise TimeoutError(true.__qualname__)
        time.sleep(0.05)


class Space:
    """A network namespace, and what runs there."""

    def __init__(self):
        command = ["unshare", "--net", "sh", "-c", "echo; exec sleep 600"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.pid = str(self.process.pid)
        self.inside = ["nsenter", "-t", self.pid, "-n"]

    def run(self, *command, **options):
        return run(*self.inside, *command, **options)

    def spawn(self, command, **options):
        return subprocess.Popen([*self.inside, *command], **options)


class Fabric:
    """The switches and hosts of a build, cabled as its wiring says."""

    def __init__(self, build, out, folder):
        self.build, self.out, self.folder = build, out, folder
        w = build.wiring
        self.switches = [Space() for _ in w.names]
        self.hosts = [Space() for _ in w.names]
        lines = []
        for v, k in zip(*(w.far > -1).nonzero(), strict=True):
            u = int(w.far[v, k])
            if v < u:
                mine, theirs = self._name(v, w.port[v, k]), self._name(u, w.far_port[v, k])
                lines.append(self._veth(self.switches[v], mine, self.switches[u], theirs))
        for v, host in enumerate(self.hosts):
            name = self._name(v, w.host_port[v, 0])
            lines.append(self._veth(self.switches[v], name, host, "eth0"))
        run("ip", "-batch", "-", text="\n".join(lines))

    def _name(self, vertex, port):
        return self.build.wiring.port_name(int(vertex), int(port))

    @staticmethod
    def _veth(here, name, there, other):
        peer = f"peer name {other} netns {there.pid}"
        return f"link add name {name} netns {here.pid} type veth {peer}"

    def start(self, target):
        switches = list(zip(self.switches, self.build.wiring.names, strict=True))
        begin = getattr(self, f"_{target}")
        with ThreadPoolExecutor(4) as several:
            list(several.map(lambda switch: begin(switch[0], self.out / switch[1]), switches))
        a = self.build.addressing
        for v, host in enumerate(self.hosts):
            lines = ["link set lo up", "link set eth0 up"]
            lines += [f"address add {a.host(v, 0)}/{a.ipv4_length} dev eth0"]
            lines += [f"address add {a.host6(v, 0)}/64 dev eth0 nodad"]
            lines += [f"route add default via {a.gateway(v)}"]
            lines += [f"route add default via {a.network6(v)[1]}"]
            host.run("ip", "-batch", "-", text="\n".join(lines))
        self._ready = getattr(self, f"_{target}_ready")
        for space in self.switches:
            until(lambda space=space: "tentative" not in space.run("ip", "-6", "address"))
        self.settle()

    def settle(self):
        """Wait until every switch has all its routes."""
        for space, name in zip(self.switches, self.build.wiring.names, strict=True):
            until(lambda space=space, name=name: self._ready(space, self.out / name))

    def _linux(self, space, files):
        """As the systemd unit has it: load.sh stays, and loads routes when links come up."""
        space.spawn(["sh", str(files / "load.sh"), "watch"], stderr=subprocess.DEVNULL)

    def _linux_ready(self, space, files):
        return self._loaded(space, OURS) == (files / "routes.batch").read_text().count("route rep")

    def _frr(self, space, files):
        folder = self.folder / files.name
        folder.mkdir()
        shutil.chown(folder, "frr", "frr")
        space.run("sysctl", "--quiet", "--load", str(files / "sysctl.conf"))
        space.run("ip", "-batch", str(files / "links.batch"))
        for family in ("-4", "-6"):
            space.run("ip", family, "-batch", str(files / "rules.batch"))
        for daemon in ("zebra", "staticd", *self._more(files)):
            self._daemon(space, folder, daemon)
        space.run("vtysh", "--vty_socket", str(folder), "-f", str(files / "frr.conf"))

    @staticmethod
    def _more(files):
        text = (files / "frr.conf").read_text()
        return [
            daemon for daemon, word in (("bfdd", " bfd"), ("bgpd", "router bgp")) if word in text
        ]

    @staticmethod
    def _daemon(space, folder, daemon):
        command = [str(FRR / daemon), "-z", str(folder / "zserv.api"), "--vty_socket", str(folder)]
        command += ["-i", str(folder / f"{daemon}.pid"), "--vty_port", "0"]
        command += ["--log", f"file:{folder / daemon}.log"]
        command += ["--bfdctl", str(folder / "bfdd.sock")] * (daemon == "bfdd")
        space.spawn(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until((folder / f"{daemon}.vty").exists)

    def _frr_ready(self, space, files):
        lines = (files / "frr.conf").read_text().splitlines()
        routes = [line.split() for line in lines if line.startswith(("ip route", "ipv6 route"))]
        tables = [line[line.index("table") + 1] if "table" in line else "main" for line in routes]
        static = {(line[2], table) for line, table in zip(routes, tables, strict=True)}
        if "bgpd" not in self._more(files):
            return self._loaded(space, FRRS) == len(static)
        return {dst: dev for dst, dev, _ in self.routes(space, BGPS)} == self._compiled(space)

    def _compiled(self, space):
        """{prefix: interface} of the tables: best paths change until the last session is up."""
        v, a = self.switches.index(space), self.build.addressing
        port = self.build.tables.classes.port[v]
        egress = self.build.tables.routes.egress[v].tolist()
        through = {d: self._name(v, port[k]) for d, k in enumerate(egress) if d != v}
        ipv4 = {str(a.network(d)): name for d, name in through.items()}
        return ipv4 | {str(a.network6(d)): name for d, name in through.items()}

    def _loaded(self, space, protocols):
        """How many routes of these protocols the kernel has."""
        return len(self.routes(space, protocols))

    def routes(self, space, protocols):
        """The routes of these protocols in the kernel: prefix, device, table."""
        routes = [route for shown in self.kernel(space) for route in json.loads(shown)]
        ours = [route for route in routes if route["protocol"] in protocols]
        return sorted([str(route.get(word)) for word in ("dst", "dev", "table")] for route in ours)

    def kernel(self, space):
        shown = ["-details", "-json", "route", "show", "table", "all"]
        return [space.run("ip", family, *shown) for family in ("-4", "-6")]

    def address(self, vertex, version):
        a = self.build.addressing
        return str(a.host(vertex, 0) if version == 4 else a.host6(vertex, 0))

    def pings(self, version):
        """[[TTL of the answers of host j to host i, 0 where there is none]]."""
        everyone = [self.address(v, version) for v in range(len(self.hosts))]
        rounds = [
            (host.spawn, {to: 1 for u, to in enumerate(everyone) if u != v})
            for v, host in enumerate(self.hosts)
        ]
        seen = ping_all(rounds, lambda *_: None)
        return [[answers[to].lowest if to in answers else 0 for to in everyone] for answers in seen]

    def meet_neighbours(self, vertex):
        """So that no next hop is new to the kernel, which would leave it out."""
        for line in self.switches[vertex].run("ip", "nexthop").splitlines():
            if found := re.search(r"via (\S+) dev (\S+)", line):
                self.switches[vertex].run("ping", "-c1", "-W5", "-I", found[2], found[1])

    def share(self, source, destination, version, count):
        """{interface: packets} of so many flows from a host, by the links of its switch."""
        self.meet_neighbours(source)
        before = self._sent(source)
        to = self.address(destination, version)
        self.hosts[source].run(sys.executable, "-c", DATAGRAMS, to, str(count), check=False)
        after = self._sent(source)
        return {name: after[name] - before[name] for name in after}

    def _sent(self, vertex):
        shown = json.loads(self.switches[vertex].run("ip", "-json", "-stats", "link"))
        return {link["ifname"]: link["stats64"]["tx"]["packets"] for link in shown}

    def set_link(self, vertex, link, state):
        space, name = (
            self.switches[vertex],
            self._name(vertex, self.build.wiring.port[vertex, link]),
        )
        daemons = self.folder / self.build.wiring.names[vertex]
        if not daemons.exists():
            space.run("ip", "link", "set", name, state)
            return
        word = "shutdown" if state == "down" else "no shutdown"  # zebra has the addresses
        words = ("-c", "configure", "-c", f"interface {name}", "-c", word)
        space.run("vtysh", "--vty_socket", str(daemons), *words)


def main(build, out, target, folder, wanted):
    fabric = Fabric(build, out, folder)
    fabric.start(target)
    seen = {"kernel": [fabric.kernel(space) for space in fabric.switches]}
    if wanted.get("ping"):
        seen["pings"] = [fabric.pings(version) for version in (4, 6)]
    if "share" in wanted:
        seen["share"] = [fabric.share(*one) for one in wanted["share"]]
    if "down" in wanted:
        fabric.set_link(*wanted["down"], "down")
        if "after" in wanted:  # BGP looks for other paths
            until(lambda: fabric.pings(4) == wanted["after"])
        elif target == "frr":  # zebra puts other routes in the place of those that went
            fabric.settle()
        seen["down"] = [fabric.pings(version) for version in (4, 6)]
        fabric.set_link(*wanted["down"], "up")
        fabric.settle()
        seen["again"] = [fabric.kernel(space) for space in fabric.switches]
        if target == "linux":
            load = out / build.wiring.names[0] / "load.sh"
            fabric.switches[0].run("sh", str(load))
            seen["loaded twice"] = fabric.kernel(fabric.switches[0])
        seen["pings again"] = [fabric.pings(version) for version in (4, 6)]
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as daemons:
        Path(daemons).chmod(0o755)  # FRR's daemons are a user of their own
        build, out = Path(sys.argv[1]), Path(sys.argv[2])
        result = main(load(build), out, sys.argv[3], Path(daemons), json.loads(sys.argv[4]))
    print(json.dumps(result))
