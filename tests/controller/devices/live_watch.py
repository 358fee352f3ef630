"""Run in namespaces of its own by test_push_live.py: a push that marks packets, to kernels.

live_watch.py OLD OUT NEW linux: the watchers of an old build find the new one's files before its
devices are there; then it is pushed, and a link goes down and comes up. Prints what was seen.
"""

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from compilers.tables.folders.build_folder import load
from compilers.targets.linux.device import LinuxDevice
from compilers.targets.target_lookup import target
from mininet_scenarios.engines.routers import until
from tests.controller.devices.live_push import PATIENCE, Site


def main(old, out, new, folder):
    site = Site(old, out, new, "linux", folder)
    nodes = [str(v) for v in range(len(site.fabric.switches))]
    target("linux").render(load(new), out)
    for node in nodes:
        lines = (out / node / "addresses.batch").read_text().splitlines()
        first = next(line for line in lines if line.startswith("address ")).split()[2]
        site.sh(node, f"ip address del {first} dev lo; ip link set eth1 alias other")
        shown = partial(site.sh, node, "ip address show lo")
        until(lambda shown=shown, first=first: first in shown(), "watcher", PATIENCE)
    without, typed = [], LinuxDevice.type

    def watched(device, lines):
        """What neighbours have once the first switches are about to mark packets."""
        if not without and any(line.startswith("route ") for line in lines):
            shown = (site.sh(node, "ip -6 address") for node in nodes)
            without.append(sum("fe80::1:0:" not in text for text in shown))
        typed(device, lines)

    LinuxDevice.type = watched
    seen = {"pushed": site.push(), "without": without, "after": site.settled()}
    site.fabric.set_link(2, 0, up=False)
    seen["down"] = site.wrong()
    site.fabric.set_link(2, 0, up=True)
    seen["up"] = site.settled()
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        old, out, new = map(Path, sys.argv[1:4])
        print(json.dumps(main(old, out, new, Path(folder))))
