"""Run in namespaces of its own by test_route_check_live.py: tables of real daemons and kernels.

live_routes.py BUILD OUT TARGET: brings the rendered switches up, collects their tables as an
operator would, changes one route after the other by hand, and prints what check routes finds.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from compilers.audit.route_report import RouteReport
from compilers.tables.folders.build_folder import load
from mininet_scenarios.engines.routers import Routers
from mininet_scenarios.scenario.engine import HostSample

RULES = [["ip", "-json", family, "rule"] for family in ("-4", "-6")]
KERNEL = [["ip", "-json", "route", "show", "table", "all"], ["ip", "-json", "nexthop"], *RULES]
TABLE = "show {} route table all json"


class Checked:
    """A fabric whose tables are collected and compared."""

    def __init__(self, build, out, target, folder):
        self.target, self.folder, self.build = target, folder, build
        daemons = folder / "daemons"
        daemons.mkdir()
        daemons.chmod(0o755)
        self.fabric = Routers(build, out, target, HostSample.of(build), daemons)
        self.fabric.start()

    def run(self, vertex, *words):
        return self.fabric.switches[vertex].run(*words)

    def vtysh(self, vertex, *commands):
        socket = self.folder / "daemons" / self.build.wiring.names[vertex]
        words = [word for command in commands for word in ("-c", command)]
        return self.run(vertex, "vtysh", "--vty_socket", str(socket), *words)

    def tables(self, vertex, kernel):
        if kernel:
            return "".join(self.run(vertex, *words) for words in KERNEL)
        shown = self.vtysh(vertex, TABLE.format("ip"), TABLE.format("ipv6"))
        return shown + "".join(self.run(vertex, *words) for words in RULES)

    def found(self, kernel):
        folder = self.folder / "tables"
        folder.mkdir(exist_ok=True)
        for vertex, name in enumerate(self.build.wiring.names):
            (folder / f"{name}.txt").write_text(self.tables(vertex, kernel))
        report = RouteReport.of(self.build, [folder], self.target)
        return [one.as_dict() for one in report.differences]


def by_frr(checked):
    """A route less, one that leads elsewhere, one more, a rule less; from zebra and the kernel."""
    seen = {"right": checked.found(False), "right in the kernel": checked.found(True)}
    text = checked.vtysh(3, "show running-config")
    lines = re.findall(r"^ip route (?!.*(?:table|reject)).*$", text, re.M)
    best = [line for line in lines if re.fullmatch(r"ip route \S+ \S+ \S+ onlink", line)]
    gone, turned = best[0], best[1]
    prefix, gateway, port = turned.split()[2:5]
    other = next(line.split()[3:5] for line in best if line.split()[4] != port)
    changes = {
        "removed": [f"no {gone}"],
        "changed": [f"no {turned}", f"ip route {prefix} {' '.join(other)} onlink"],
        "added": [f"ip route 10.0.0.10/32 {gateway} {port} onlink"],
    }
    for what, commands in changes.items():
        checked.vtysh(3, "configure", *commands)
        seen[what] = checked.found(False)
        seen[f"{what} in the kernel"] = checked.found(True)
        undo = [c.removeprefix("no ") if c.startswith("no ") else f"no {c}" for c in commands[::-1]]
        checked.vtysh(3, "configure", *undo)
    rule = checked.run(3, "ip", "-6", "rule").splitlines()[1].split()
    words = rule[rule.index("iif") :]
    checked.run(3, "ip", "-6", "rule", "delete", *words, "pref", rule[0].strip(":"))
    return seen | {"rule": checked.found(False)}


def by_kernel(checked):
    """A route less, one that leads elsewhere, one more, other weights."""
    seen = {"right": checked.found(True)}
    main = json.loads(checked.run(3, "ip", "-json", "route", "show", "protocol", "80"))
    one, two, *_ = [route for route in main if "nhid" in route and route.get("metric") == 1]
    other = next(route["nhid"] for route in main if route.get("nhid") not in (None, two["nhid"]))
    words = ["metric", "1", "protocol", "80"]
    groups = json.loads(checked.run(3, "ip", "-json", "nexthop"))
    group = next(entry for entry in groups if "group" in entry)
    members = [str(member["id"]) for member in group["group"]]
    share = ["ip", "nexthop", "replace", "id", str(group["id"]), "protocol", "80", "group"]
    changes = {
        "removed": (
            ["ip", "route", "delete", one["dst"], "nhid", str(one["nhid"]), *words],
            ["ip", "route", "append", one["dst"], "nhid", str(one["nhid"]), *words],
        ),
        "changed": (
            ["ip", "route", "replace", two["dst"], "nhid", str(other), *words],
            ["ip", "route", "replace", two["dst"], "nhid", str(two["nhid"]), *words],
        ),
        "added": (
            ["ip", "route", "add", "10.0.0.10/32", "nhid", str(other), *words],
            ["ip", "route", "delete", "10.0.0.10/32", "nhid", str(other), *words],
        ),
        "weight": (
            [*share, "/".join([f"{members[0]},7", *members[1:]])],
            [*share, "/".join(members)],
        ),
    }
    for what, (change, undo) in changes.items():
        checked.run(3, *change)
        seen[what] = checked.found(True)
        checked.run(3, *undo)
    return seen | {"undone": checked.found(True)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # FRR's daemons are a user of their own
        build, out, target = load(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
        checked = Checked(build, out, target, Path(folder))
        print(json.dumps(by_frr(checked) if target == "frr" else by_kernel(checked)))
