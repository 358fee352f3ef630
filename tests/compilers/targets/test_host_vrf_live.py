"""SONiC's files on FRR and Linux kernels: packets from hosts share ports, transit is minimal.

Every switch is a zebra and a staticd in a network namespace, with the addresses of config_db.json
and the routes of frr.conf. A table stands for the VRF of the hosts, and `ip rule iif` for its port
being inside, because this needs no VRF in the kernel: the same look-up by where a packet came in.
The way back is connected then; FRR takes a host route through the host itself in another VRF only.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.targets.sonic.port_names import SONIC
from compilers.targets.target_lookup import target
from tests.compilers.targets.makers import FLOWS, TTL, hops
from tests.compilers.targets.read_routed import entering
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
HOSTS_TABLE = 5000
SETTINGS = (
    "net/ipv4/ip_forward=1",
    "net/ipv6/conf/all/forwarding=1",
    "net/ipv4/fib_multipath_hash_policy=1",
    "net/ipv6/fib_multipath_hash_policy=1",
    "net/ipv4/conf/all/rp_filter=0",
)


def stand_in(folder, vertex):
    """The files of a switch in the words of target frr, its VRF as a table.

    FRR has its sessions and policies as they are; no module of zebra takes its routes to a chip.
    """
    tree = json.loads((folder / "config_db.json").read_text())
    (inside,) = (name for name, entry in tree["INTERFACE"].items() if "vrf_name" in entry)
    lines = ["hostname x"]
    for key in tree["INTERFACE"]:
        name, *address = key.split("|")
        family = "ipv6" if address and ":" in address[0] else "ip"
        lines += [f"interface {name}"]
        lines += [f" {family} address {address[0]}"] if address else []
        lines += [f" ipv6 address fe80::{vertex + 1:x}/64"] if name != inside else []
        lines += ["exit"]
    vrf = False
    for line in (folder / "frr.conf").read_text().splitlines():
        vrf = line.startswith("vrf ") or (vrf and line != "exit-vrf")
        if " route " in line and "Vrf-hosts" not in line:
            words = line.strip().replace(" nexthop-vrf default", "")
            lines.append(words + f" table {HOSTS_TABLE}" * vrf)
        elif not vrf and not any(word in line for word in ("route ", "vrf", "fpm", "hostname")):
            lines.append(line)
    (folder / "frr.conf").write_text("\n".join(lines) + "\n")
    commands = [f"sysctl --quiet --write {setting}" for setting in SETTINGS]
    for name in ("lo", *tree["PORT"]):
        commands += [f"sysctl --quiet --write net/ipv4/conf/{name}/rp_filter=0"]
        commands += [f"ip link set {name} up"]
    for family in ("-4", "-6"):
        commands += [f"ip {family} rule flush protocol 80"]
        rule = f"rule add iif {inside} lookup {HOSTS_TABLE} pref 1000 protocol 80"
        commands += [f"ip {family} {rule}"]
    (folder / "load.sh").write_text("\n".join(["set -eu", *commands, ""]))


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The build of q = 2, and what its switches did."""
    folder = tmp_path_factory.mktemp("vrf")
    (folder / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\nrouting: {balance: compact-valiant}\n"
        'addressing: {ipv6: "fd00::/48"}\n'
    )
    build = SONIC.named(compile_fabric(load_fabric(folder / "fabric.yaml")))
    save(build, folder / "b")
    target("sonic").render(build, folder / "out")
    for vertex, node in enumerate(build.wiring.names):
        stand_in(folder / "out" / node, vertex)
    wanted = {"ping": True, "share": [[0, 2, version, FLOWS] for version in (4, 6)]}
    script = Path(__file__).with_name("live_routed.py")
    places = [str(folder / "b"), str(folder / "out"), "frr", json.dumps(wanted)]
    printed = printed_apart(script, *places, timeout=240)
    return build, json.loads(printed)


def lengths(build, source, destination):
    """The links that a packet from a host may take: by any port of its class, then minimally."""
    w = build.wiring
    egress = int(build.tables.routes.egress[source, destination])
    ports = list(entering(build, source, egress))
    far = [int(w.far[source, np.flatnonzero(w.port[source] == port)[0]]) for port in ports]
    return {1 + hops(build, vertex, destination) for vertex in far}


def test_every_pair_answers_over_compiled_paths(seen):
    """By its TTL each answer took one of the paths of its class, and some took an alternate."""
    build, found = seen
    longer = 0
    for by_version in found["pings"]:
        for asks, row in enumerate(by_version):
            for answers, ttl in enumerate(row):
                if asks != answers:
                    away = lengths(build, answers, asks)
                    assert TTL - 1 - ttl in away, (asks, answers, ttl)
                    longer += TTL - 1 - ttl > min(away)
    assert longer


def test_flows_from_a_host_share_the_ports_of_a_class(seen):
    build, found = seen
    egress = int(build.tables.routes.egress[0, 2])
    names = {build.wiring.port_name(0, port) for port in entering(build, 0, egress)}
    assert len(names) == 2
    for by_port in found["share"]:
        assert sum(by_port.values()) == pytest.approx(FLOWS, abs=FLOWS / 100)
        for name, packets in by_port.items():
            part = (name in names) / len(names)
            deviation = (FLOWS * part * (1 - part)) ** 0.5
            assert abs(packets - FLOWS * part) < 5 * deviation + 10, by_port
