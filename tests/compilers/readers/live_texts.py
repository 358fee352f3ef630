"""Run in namespaces of its own by test_text_mutants.py: what real programs make of texts.

live_texts.py KIND FOLDER...: of each folder of a switch, what the kernel, FRR or Open vSwitch holds
once its files were loaded, as one line of JSON; a refusal is part of it.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mininet_scenarios.ovs.openvswitch import OpenVSwitchError, PrivateOvs

FRR = Path("/usr/lib/frr")
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


def frr(folder):
    """FRR's configuration after it was loaded, a line with its section each, and its refusals."""
    ports()
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        place = Path(name)
        run("chown", "frr:frr", name)
        daemons = []
        text = (folder / "frr.conf").read_text()
        more = ["bgpd", "bfdd"] if "router bgp" in text else []
        for daemon in ("zebra", "staticd", *more):
            command = [FRR / daemon, "-z", place / "zserv.api", "--vty_socket", place]
            command += ["-i", place / f"{daemon}.pid", "--vty_port", "0"]
            command += ["--bfdctl", place / "bfdd.sock"] * (daemon == "bfdd")
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            daemons.append(
                subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, **quiet)
            )
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
    said = [re.sub(r"line \d+: ", "", line) for line in loaded.stdout.splitlines() if "%" in line]
    return [loaded.returncode, said, sorted(set(found))]


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


if __name__ == "__main__":
    kind, *names = sys.argv[1:]
    if kind == "ovs":
        for state in open_vswitch([Path(name) for name in names]):
            print(json.dumps(state))
    elif len(names) > 1:
        for name in names:
            again = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]
            done = run(*again, sys.executable, __file__, kind, name)
            print(done.stdout.strip() or json.dumps(done.stderr[-2000:]))
    else:
        print(json.dumps((kernel if kind == "linux" else frr)(Path(names[0]))))
