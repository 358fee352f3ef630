"""Run in namespaces of its own by test_push_live.py: pushes to FRR daemons that speak eBGP.

live_bgp_push.py BUILD OUT BUILD TARGET: brings the switches up with the files in OUT, pushes the
build, changes a switch, pushes twice, shuts a port and pushes; prints what was seen.
"""

import json
import re
import sys
import tempfile
from pathlib import Path
from time import monotonic

from compilers.tables.folders.build_folder import load
from compilers.targets.routed.bgp.drained import maintenance_lines
from controller.devices.device_push import PushSettings
from polarfab.fabric import Fabric
from polarfab.switches import push
from tests.controller.devices.live_push import Site
from tests.waiting import until

CALM = 2.0
"""Seconds for which routes stay the same once BGP has come to an end."""


def main(out, new, target, folder):
    site, seen = Site(new, out, new, target, folder), {}

    def sent():
        reach = PushSettings(f"{folder}/reach {{node}}", f"{folder}/etc/{{node}}", stop_on=0)
        found = push(Fabric.load(new), target, reach, unverified=True)
        return [{**one.as_dict(), "differences": len(one.differences)} for one in found.switches]

    seen["loaded"] = sent()
    words = "-c configure -c 'interface eth1' -c 'description other' -c exit"
    site.sh("1", f"vtysh {words} -c bfd -c 'profile fabric' -c 'detect-multiplier 7'")
    seen["pushed"], seen["again"] = sent(), sent()
    seen["running"] = site.sh("1", "vtysh -c 'show running-config'")

    def held():
        shown = [
            site.sh(str(v), "ip route show proto bgp") for v in range(len(site.fabric.switches))
        ]
        return [sorted(re.findall(r"^(\S+) .*(dev \S+)", one, re.M)) for one in shown]

    def settled(changed, what):
        """Wait until routes are so and stay the same: BGP goes from one to the next."""
        state = {"routes": None, "since": 0.0}

        def calm():
            if (routes := held()) != state["routes"]:
                state.update(routes=routes, since=monotonic())
            return changed(routes) and monotonic() - state["since"] > CALM

        until(calm, what)

    def drain(end):
        lines = maintenance_lines(load(new), target, {}, "1", end=end)
        (folder / "drain.conf").write_text("".join(f"{line}\n" for line in lines))
        site.sh("1", f"vtysh -f {folder}/drain.conf")

    before = held()
    drain(end=False)
    settled(lambda routes: routes != before, "routes around the drained switch")
    seen["drained"] = sent()
    drain(end=True)
    settled(lambda routes: routes == before, "the routes after the drain")
    site.fabric.set_link(2, 0, up=False)
    settled(lambda routes: routes[0] != before[0], "another route")
    seen["shut"] = sent()
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # FRR's daemons are a user of their own
        places = map(Path, sys.argv[2:4])
        print(json.dumps(main(*places, sys.argv[4], Path(folder))))
