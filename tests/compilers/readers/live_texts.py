"""Run in namespaces of its own by test_text_mutants.py: what real programs make of texts.

live_texts.py KIND FOLDER...: of each folder of a switch, what the kernel, FRR or Open vSwitch holds
once its files were loaded, as one line of JSON; a refusal is part of it. Of folders of a subnet,
what OpenSM programmed into switches that ibsim simulates, and the service levels that it tells.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mininet_scenarios.engines.frr_router import FrrRouter, daemon_command
from mininet_scenarios.ovs.openvswitch import OpenVSwitchError, PrivateOvs

PORTS = 8
PATIENCE = 20


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def ports():
    """A namespace of the process's own has these."""
    lines = ["link set lo up"]
    for n in range(PORTS):
        for name in (f"eth{n}", f"Ethernet{4 * n}"):
            lines += [f"link add {name} type veth peer name far-{name}"]
            lines += [f"link set {name} up", f"link set far-{name} up"]
    run("ip", "-batch", "-", input="\n".join(lines), check=True)


def shown(*command):
    """What ip shows as JSON, in an order of its own."""
    found = json.loads(run("ip", "-json", *command).stdout or "[]")
    return sorted(json.dumps(each, sort_keys=True) for each in found)


def addresses():
    """Those of all interfaces, but for what a kernel makes of a MAC address."""
    found = json.loads(run("ip", "-json", "address", "show").stdout)
    return sorted(
        f"{link['ifname']} {link['operstate']} {each['local']}/{each['prefixlen']}"
        for link in found
        for each in link["addr_info"]
        if "ff:fe" not in each["local"] and link["ifname"][:3] != "far"
    )


def kernel(folder):
    """The kernel after load.sh."""
    ports()
    done = run("sh", "load.sh", cwd=folder)
    state = [done.returncode]
    for family in ("-4", "-6"):
        every = family, "route", "show", "table", "all", "protocol", "80"
        state += [shown(*every), shown(family, "rule", "show")]
    return [*state, shown("nexthop", "show", "protocol", "80"), addresses()]


def srv6(folder):
    """The kernel of a switch after its batch, or of a host after its script."""
    ports()
    script = next(folder.glob("load.sh"), None)
    if script:
        run("ip", "-6", "address", "add", "fd00:0:0:8::2/64", "dev", "eth0", "nodad")
        done = [run("sh", str(script))]
    else:  # on the addresses of target linux
        run("ip", "-6", "address", "add", "fd00:0:0:2::1/64", "dev", "eth5", "nodad")
        done = [
            run("sysctl", "--quiet", "--load", str(folder / "srv6-sysctl.conf")),
            run("ip", "-batch", str(folder / "srv6.batch")),
        ]
    wanted = [each.returncode for each in done]
    settings = run(
        "sysctl", "-a", "-r", r"net\.ipv6\.conf\..*seg6_enabled|ipv6.conf.all.forw"
    ).stdout
    shown_routes = shown("-6", "route", "show", "table", "all", "protocol", "80")
    rules = shown("-6", "rule", "show"), shown("nexthop", "show", "protocol", "80")
    return [wanted, settings.splitlines(), shown_routes, *rules]


def frr(folder):
    """FRR's configuration after it was loaded, each line with its section, and what it refuses."""
    ports()
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        place = Path(name)
        run("chown", "frr:frr", name)
        daemons = []
        text = (folder / "frr.conf").read_text()
        more = ["bgpd", "bfdd"] if "router bgp" in text else []
        for daemon in (*FrrRouter.first_daemons(), *more):
            command = daemon_command(daemon, place)
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, **quiet))
            limit = time.monotonic() + PATIENCE
            while not (place / f"{daemon}.vty").exists():
                if time.monotonic() > limit:
                    raise TimeoutError(daemon)
                time.sleep(0.01)
        vtysh = ["vtysh", "--vty_socket", name]
        try:
            loaded = run(*vtysh, "-f", str(folder / "frr.conf"))
            lines = run(*vtysh, "-c", "show running-config").stdout.splitlines()
        finally:
            for daemon in daemons:
                daemon.kill()
                daemon.wait()
    section, found = "", []
    for line in lines[4:]:
        section = line if line[:1] != " " else section
        found.append(f"{section} / {line}" if line[:1] == " " else line)
    said = {re.sub(r"line \d+: ", "", line) for line in loaded.stdout.splitlines() if "%" in line}
    return [loaded.returncode, sorted(said), sorted(set(found))]


def open_vswitch(folders):
    """The flows and groups of a bridge for each."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name, PrivateOvs(Path(name)) as ovs:
        setting = "datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow13"
        ovs.vsctl("add-br", "s", "--", "set", "bridge", "s", *setting)
        for n in range(1, PORTS):
            add = "add-port", "s", f"p{n}", "--", "set", "interface", f"p{n}"
            ovs.vsctl(*add, "type=patch", f"options:peer=q{n}", f"ofport_request={n}")
        for folder in folders:
            ovs.ofctl("del-flows", "s")
            ovs.ofctl("del-groups", "s")
            try:
                ovs.ofctl("add-groups", "s", str(folder / "groups.txt"))
                ovs.ofctl("add-flows", "s", str(folder / "flows.txt"))
            except OpenVSwitchError:
                yield "refused"
                continue
            rows = ovs.ofctl("--no-stats", "dump-flows", "s") + ovs.ofctl("dump-groups", "s")
            yield sorted(line.strip() for line in rows.splitlines() if "OFPST" not in line)


def opensm(folder):
    """Tables, lanes, LIDs, and the service levels of some pairs; or that it does not come up."""
    from tests.extensions.infiniband.live_opensm import subnet

    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        conf = folder / "opensm.conf"
        conf.write_text(conf.read_text().replace("/etc/opensm/", f"{folder}/"))
        try:
            with subnet(folder, Path(name) / "sm", patience=20) as found:
                lids = sorted(found.lids().values())
                pairs = [(lids[0], lid) for lid in lids[-4:]] + [(lids[-1], lids[-2])]
                levels = [found.service_level(*pair) for pair in pairs]
                tables = sorted((s, sorted(t.items())) for s, t in found.tables().items())
                return [tables, sorted(found.lanes().items()), sorted(found.lids().items()), levels]
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            return f"does not come up: {type(error).__name__}"


if __name__ == "__main__":
    kind, *names = sys.argv[1:]
    if kind == "opensm":
        for name in names:
            print(json.dumps(opensm(Path(name))), flush=True)
    elif kind == "ovs":
        for state in open_vswitch([Path(name) for name in names]):
            print(json.dumps(state))
    elif len(names) > 1:
        for name in names:
            again = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]
            done = run(*again, sys.executable, __file__, kind, name)
            print(done.stdout.strip() or json.dumps(done.stderr[-2000:]))
    else:
        print(json.dumps({"linux": kernel, "srv6": srv6, "frr": frr}[kind](Path(names[0]))))
