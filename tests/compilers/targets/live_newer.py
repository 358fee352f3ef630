"""Run in namespaces of its own by test_newer_live.py: FRR and BIRD of a newer Debian.

live_newer.py ROOT OUT: one switch runs the rendered frr.conf in OUT with FRR of the tree ROOT.
Behind its first port is BIRD of the same tree, another implementation of BGP and BFD. Prints JSON:
what each says of the session, the kernels' routes, what FRR prints, what a push would type.
"""

import json
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from compilers.targets.devices.device_shell import DeviceError, DeviceShell
from compilers.targets.frr.device import FrrDevice
from mininet_scenarios.machine.network_namespace import NetworkNamespace
from tests.debian_root import prepared
from tests.waiting import until

DAEMONS = ("mgmtd", "zebra", "staticd", "bfdd", "bgpd")
"""Those that are there are started, in this order."""
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
POOLS = ("10.0.0.0/27", "fd00::/61")
FOREIGN = "192.0.2.7"
SCRIPT = """#!/bin/sh
export PATH="{folder}/bin:$PATH"
exec nsenter -t {pid} -n sh -c "$1"
"""
VTYSH = """#!/bin/sh
exec chroot {root} vtysh "$@"
"""
BIRD = """log "{folder}/bird.log" all;
router id {foreign};
protocol device {{}}
protocol kernel {{ ipv4 {{ export all; }}; }}
protocol static own {{ ipv4; route {prefix} unreachable; }}
protocol bfd {{ interface "eth1" {{ interval 300 ms; multiplier 3; }}; }}
protocol radv {{ interface "eth1" {{ max ra interval 4; default lifetime 0; }}; }}
protocol bgp frr {{
  local fe80::b as {number};
  neighbor {neighbour}%'eth1' as {far};
  direct;
  ttl security on;
  bfd on;
  ipv4 {{ import all; export all; extended next hop on; }};
}}
"""
"""A neighbour without link addresses: FRR learns its address from router advertisements."""


class Newer:
    """The switch, and the neighbour behind its first port."""

    def __init__(self, root, out, folder):
        self.root, self.out, self.folder = root, out, folder
        prepared(root, folder)
        self.frr, self.bird = NetworkNamespace(), NetworkNamespace()
        self.frr.run(
            "ip", "link", "add", "eth1", "type", "veth", "peer", "eth1", "netns", f"{self.bird.pid}"
        )
        for number in (2, 3, 4):
            self.frr.run("ip", "link", "add", f"eth{number}", "type", "veth")
        for space in (self.frr, self.bird):
            for name in ("lo", "eth1"):
                space.run("ip", "link", "set", name, "up")
        self.bird.run("ip", "address", "add", "fe80::b/64", "dev", "eth1", "nodad")
        self.bird.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        self.script("reach", SCRIPT.format(folder=folder, pid=self.frr.pid))
        self.script("bin/vtysh", VTYSH.format(root=root))

    def script(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def inside(self, space, *command):
        return space.run("chroot", str(self.root), *command)

    def start(self):
        for name in DAEMONS:
            if (self.root / "usr/lib/frr" / name).exists():
                self.frr.spawn(["chroot", str(self.root), f"/usr/lib/frr/{name}"], **QUIET)
                until((self.root / "run/frr" / f"{name}.vty").exists, name)
        self.frr.run("sh", str(self.out / "load.sh"))
        text = (self.out / "frr.conf").read_text()
        (self.folder / "frr.conf").write_text(text)
        self.inside(self.frr, "vtysh", "-f", str(self.folder / "frr.conf"))
        words = {
            "folder": self.folder,
            "foreign": FOREIGN,
            "prefix": "10.0.0.0/30",
            "number": int(re.search(r"eth1 interface v6only remote-as (\d+)", text)[1]),
            "far": int(re.search(r"router bgp (\d+)", text)[1]),
            "neighbour": until(partial(link_local, self.frr), "an address"),
        }
        (self.folder / "bird.conf").write_text(BIRD.format(**words))
        command = ["chroot", str(self.root), "bird", "-f", "-c", f"{self.folder}/bird.conf"]
        self.bird.spawn([*command, "-s", f"{self.folder}/bird.ctl"], **QUIET)
        until((self.folder / "bird.ctl").exists, "BIRD")

    def birdc(self, *words):
        return self.inside(self.bird, "birdc", "-s", f"{self.folder}/bird.ctl", *words)

    def vtysh(self, *commands):
        words = [word for command in commands for word in ("-c", command)]
        return self.inside(self.frr, "vtysh", *words)

    def routes(self, space):
        """{prefix: interface} of BGP's routes in a kernel."""
        shown = json.loads(space.run("ip", "-json", "route"))
        return {one["dst"]: one.get("dev") for one in shown if one["protocol"] in ("bgp", "bird")}

    def device(self):
        shell = DeviceShell((str(self.folder / "reach"),))
        return FrrDevice(shell, self.out, str(self.folder / "etc"), POOLS, bgp=True)

    def refused(self, *lines):
        """What a push says of lines that FRR does not take."""
        try:
            self.device().configure(lines)
        except DeviceError as error:
            return str(error)
        return ""


def link_local(space):
    """The address of the first port, once no other machine has it."""
    (link,) = json.loads(space.run("ip", "-6", "-json", "address", "show", "eth1", "scope", "link"))
    addresses = [one["local"] for one in link["addr_info"] if not one.get("tentative")]
    return addresses[0] if addresses else ""


def main(root, out, folder):
    newer = Newer(root, out, folder)
    newer.start()
    until(lambda: "10.0.0.0/30" in newer.routes(newer.frr), "a route by BGP in the switch's kernel")
    until(lambda: "10.0.0.4/30" in newer.routes(newer.bird), "a route by BGP in BIRD's kernel")
    until(lambda: " Up " in newer.birdc("show", "bfd", "sessions"), "BFD")
    seen = {
        "version": newer.vtysh("show version").splitlines()[0],
        "bird": newer.birdc("show", "status").splitlines()[0],
        "bfd": json.loads(newer.vtysh("show bfd peers json")),
        "routes": [newer.routes(newer.frr), newer.routes(newer.bird)],
        "tables": newer.device().tables(),
        "every": newer.vtysh("show ip route vrf all json"),
    }
    seen["plan"] = [line for line in newer.device().plan().add if not line.startswith("-")]
    newer.vtysh(
        "configure",
        "ip prefix-list fabric-ipv4 seq 20 permit any",
        "route-map announced-ipv4 deny 1",
    )
    seen["kept"] = newer.device().plan().kept
    seen["refused"] = [
        newer.refused("bogus x"),
        newer.refused("router bgp 64513", " bgp router-id 192.0.2.1", "exit"),
        newer.refused("ip prefix-list x seq 5 permit 10.0.0.0/8 ge 7"),
    ]
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), Path(folder))))
