"""What several test modules of this folder and of others use."""

import re
from dataclasses import replace
from functools import cache
from ipaddress import IPv6Network

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.intermediate_form import no_route
from tests.compilers.routed import routed
from tests.compilers.targets.read_routed import transit

FABRIC = """
name: lab
topology: {{family: polarfly, q: 2}}
inventory: inventory.yaml
base:
  management: {{length: {length}, gateway: "{gateway}"}}
  ntp: [192.0.2.250]
  syslog: [192.0.2.251]
vars: {{site: north, contact: {{name: operator, room: 7}}}}
"""


INVENTORY = """
node_types:
  box: {ports: [{name: "eth{}", count: 4}], names: {eos: "Ethernet{port}", nxos: "Ethernet1/{port}",
    junos: "et-0/0/{port}", srlinux: "ethernet-1/{port}", sonic: "Ethernet{port*4}"}}
groups: {odd: {site: south, rack: r1}}
nodes:
"""


def compiled(folder, address="192.0.2.{}", length=24, gateway="192.0.2.254", more=""):
    nodes = "".join(
        f"  - {{name: n{v}, type: box, management: '{address.format(v + 1)}'"
        + f", group: odd, vars: {{rack: r{v}}}" * (v % 2)
        + "}\n"
        for v in range(7)
    )
    (folder / "inventory.yaml").write_text(INVENTORY + nodes)
    (folder / "fabric.yaml").write_text(FABRIC.format(length=length, gateway=gateway) + more)
    return compile_fabric(load_fabric(folder / "fabric.yaml"))


SYSTEMS = ("eos", "nvue", "nxos", "junos", "srlinux", "sonic")


every = pytest.mark.parametrize("name", SYSTEMS)


@cache
def fabric(family="polarfly", hosts=1, ipv6="fd00::/48", **parameters):
    build = routed(family, hosts=hosts, **parameters)
    pool = IPv6Network(ipv6) if ipv6 else None
    plan = replace(build.addressing, ipv6=pool, hierarchy=build.topology.hierarchy)
    return replace(build, addressing=plan)


def avd_sections(text):
    """Sections as sets of lines: AVD orders routes by their texts."""
    blocks = re.split(r"\n(?=\S)", text)
    sections = [tuple(block.split("\n")) for block in blocks if not block.startswith("!")]
    return {(head, frozenset(filter(str.strip, rest)) - {"!"}) for head, *rest in sections}


TTL = 64


FLOWS = 3000


def hops(build, source, destination, dead=()):
    """Links from switch to switch by the rule of `Classes`, one hop after the other; None: lost."""
    w = build.wiring
    cable = {
        (v, int(port)): (int(far), int(at))
        for v in range(len(w.names))
        for port, far, at in zip(w.port[v], w.far[v], w.far_port[v], strict=True)
        if port
    }
    at, in_port = source, 0
    for count in range(TTL):
        if at == destination:
            return count
        egress = int(build.tables.routes.egress[at, destination])
        live = (p for p in transit(build, at, egress, in_port) if {at, cable[at, p][0]} != dead)
        port = next(live, None)
        if port is None:
            return None
        at, in_port = cable[at, port]
    return None


IPV6 = IPv6Network("fd00::/48")


def with_ipv6(build):
    plan = replace(build.addressing, ipv6=IPV6, hierarchy=build.topology.hierarchy)
    return replace(build, addressing=plan)


def rows(build, vertex):
    """(prefix text, class) of every route of a switch, in both families."""
    a, routes = build.addressing, build.tables.routes
    for prefix, egress in zip(routes.prefixes(vertex), routes.egress[vertex].tolist(), strict=True):
        if egress < no_route(routes.egress):
            yield str(a.network(int(prefix))), egress
            if a.ipv6:
                yield str(a.network6(int(prefix))), egress


def names(build, vertex, ports):
    return [{build.wiring.port_name(vertex, port): 1} for port in ports]
