"""Run in namespaces of its own by test_push_live.py: pushes to FRR daemons that speak eBGP.

live_bgp_push.py BUILD OUT BUILD TARGET: brings the switches up with the files in OUT, pushes the
build, changes a switch, pushes twice, shuts a port and pushes; prints what was seen.
"""

import json
import sys
import tempfile
from pathlib import Path

from controller.devices.device_push import PushWay
from mininet_scenarios.engines.router_space import until
from polarfab.fabric import Fabric
from tests.controller.devices.live_push import Site

OPTIONS = {"routing": "bgp", "bfd": "on"}


def main(out, new, target, folder):
    site, seen = Site(new, out, new, target, folder), {}

    def push():
        reach = PushWay(f"{folder}/reach {{node}}", f"{folder}/etc/{{node}}", stop_on=0)
        found = Fabric.load(new).push(target, reach, OPTIONS, unverified=True)
        return [{**one.as_dict(), "differences": len(one.differences)} for one in found.switches]

    seen["loaded"] = push()
    words = "-c configure -c 'interface eth1' -c 'description other' -c exit"
    site.sh("1", f"vtysh {words} -c bfd -c 'profile fabric' -c 'detect-multiplier 7'")
    seen["pushed"], seen["again"] = push(), push()
    seen["running"] = site.sh("1", "vtysh -c 'show running-config'")
    route = site.sh("0", "ip route show 10.0.0.8/30")
    site.fabric.set_link(2, 0, up=False)
    until(lambda: site.sh("0", "ip route show 10.0.0.8/30") not in ("", route), "another route")
    seen["shut"] = push()
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # FRR's daemons are a user of their own
        places = map(Path, sys.argv[2:4])
        print(json.dumps(main(*places, sys.argv[4], Path(folder))))
