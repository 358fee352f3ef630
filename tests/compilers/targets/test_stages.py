"""Stages of marked packets in VRFs: the text read back, packets followed by it, and who refuses."""

import json
import re
import shutil
from dataclasses import replace
from functools import cache
from ipaddress import ip_address, ip_interface, ip_network
from itertools import permutations

import pytest
import yaml

from compilers.audit.route_report import RouteReport
from compilers.proof.explanation import explain
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.targets.target_lookup import target
from controller.devices.device_push import DevicePush, PushSettings
from inventory.problems import InputError
from polarfab.fabric import Fabric
from tests.compilers.audit.device_tables import PRINTERS, rendered, write
from tests.vtysh import NEEDS_VTYSH, judged

ABLE = ("eos", "junos", "nvue", "nxos", "sonic")
every = pytest.mark.parametrize("name", ABLE)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The files of all switches of the PolarFly, by target."""
    made = {name: tmp_path_factory.mktemp(name) for name in ABLE}
    for name, folder in made.items():
        target(name).render(sprayed("polarfly"), folder)
    return made


FAMILIES = {
    "polarfly": ({"family": "polarfly", "q": 3}, 1, "fd00::/48"),
    "random": ({"family": "jellyfish", "nodes": 20, "degree": 6, "seed": 1}, 2, ""),
    "switches without hosts": ({"family": "oft", "q": 2}, 1, ""),
}


@cache
def sprayed(case):
    topology, hosts, ipv6 = FAMILIES[case]
    spec = {"name": "lab", "topology": topology, "hosts_per_node": hosts}
    spec["routing"] = {"balance": "spread"}
    if ipv6:
        spec["addressing"] = {"ipv6": ipv6}
    return Fabric.from_spec(spec).build


@every
def test_what_was_written_says_what_the_tables_say(name, folders):
    report = target(name).check_emitted(sprayed("polarfly"), folders[name])
    assert (report.examples, report.passed) == ((), True)


@pytest.mark.parametrize(("name", "case"), [("nvue", "random"), ("nxos", "switches without hosts")])
def test_what_was_written_of_other_families_says_so_too(name, case, tmp_path):
    target(name).render(sprayed(case), tmp_path)
    report = target(name).check_emitted(sprayed(case), tmp_path)
    assert (report.examples, report.passed) == ((), True)


@NEEDS_VTYSH
@pytest.mark.parametrize("name", ["nvue", "sonic"])
def test_vtysh_accepts_the_lines_for_frr(name, folders, tmp_path):
    path = folders["sonic"] / "4" / "frr.conf"
    if name == "nvue":
        (tree,) = yaml.safe_load((folders["nvue"] / "4" / "startup.yaml").read_text())
        path = tmp_path / "frr.conf"
        path.write_text(tree["set"]["system"]["config"]["snippet"]["frr.conf"])
        assert "vrf marked1" in path.read_text()
    assert judged(path) == (0, "", "")


def test_sonic_says_of_itself_what_its_schema_knows(folders):
    """sonic-device_metadata.yang of sonic-buildimage, August 2026, has no seed of a hash."""
    tree = json.loads((folders["sonic"] / "4" / "config_db.json").read_text())
    said = tree["DEVICE_METADATA"]["localhost"].keys()
    assert said == {"hostname", "type", "docker_routing_config_mode"}


INTERFACES = ("INTERFACE", "VLAN_INTERFACE", "VLAN_SUB_INTERFACE")


class Followed:
    """Packets by config_db.json of all switches: interfaces, VRFs, addresses, longest prefixes."""

    def __init__(self, folder):
        self.vrf, self.owner, self.routes, self.hosts, self.known = {}, {}, {}, {}, {}
        for path in folder.glob("*/config_db.json"):
            node, tree = path.parent.name, json.loads(path.read_text())
            for key, entry in self.entries(tree, *INTERFACES):
                interface, _, address = key.partition("|")
                if address:
                    self.owner[ip_interface(address).ip] = node, interface
                    if ip_interface(address).network.prefixlen < 31:
                        self.hosts[node] = ip_interface(address).network
                else:
                    self.vrf[node, interface] = entry.get("vrf_name", "default")
            for key, entry in self.entries(tree, "STATIC_ROUTE"):
                vrf, prefix = key.split("|")
                columns = (
                    entry.get(k, "").split(",") for k in ("nexthop", "ifname", "nexthop-vrf")
                )
                table = self.routes.setdefault((node, vrf), {})
                table[ip_network(prefix)] = list(zip(*columns, strict=False))

    @staticmethod
    def entries(tree, *tables):
        return [pair for table in tables for pair in tree.get(table, {}).items()]

    def onward(self, node, vrf, address):
        """The next nodes and their VRFs; the node itself where a host is delivered to."""
        if address in self.hosts.get(node, ()) and vrf.endswith("hosts"):
            return [(node, "delivered")]
        table = self.routes[node, vrf]
        best = max((p for p in table if address in p), key=lambda p: p.prefixlen)
        found = []
        for gateway, interface, other in table[best]:
            if gateway:
                assert self.vrf[node, interface] == (other or "default")
                host = ip_address(gateway) == address
                there, port = (node, "") if host else self.owner[ip_address(gateway)]
                found.append((there, "delivered" if host else self.vrf[there, port]))
        return found

    def paths(self, s, d, dead=frozenset()):
        """All paths of packets from a host of s to one of d, None among them if one is lost."""
        address = next(self.hosts[d].hosts()) + 1
        found, waiting = set(), [((s,), "Vrf-hosts")]
        while waiting:
            path, vrf = waiting.pop()
            assert len(path) <= 12
            key = path[-1], vrf, address
            if key not in self.known:
                self.known[key] = self.onward(*key)
            walks = [walk for walk in self.known[key] if frozenset((path[-1], walk[0])) not in dead]
            if not walks:
                found.add(None)
            for node, there in walks:
                if there == "delivered":
                    found.add(path)
                else:
                    waiting.append(((*path, node), there))
        return found


def test_packets_go_by_the_text_as_by_the_rule(tmp_path):
    """Followed by interfaces, VRFs and addresses alone, in SONiC's files."""
    build = sprayed("random")
    target("sonic").render(build, tmp_path)
    followed, names = Followed(tmp_path), build.wiring.names
    for s, d in [pair for pair in permutations(range(20), 2) if sum(pair) % 10 == 0]:
        told = explain(build, s, d)
        walks = zip((told.minimal, *told.alternates), told.weights, strict=True)
        wanted = {tuple(names[v] for v in path) for path, weight in walks if weight}
        assert followed.paths(names[s], names[d]) == wanted


def test_with_a_link_down_as_many_pairs_lose_packets_by_the_text(folders):
    build = sprayed("polarfly")
    followed, names = Followed(folders["sonic"]), build.wiring.names
    (report,) = verify(build, ProofOptions(failures=("link",), method="walk")).failures
    far = build.wiring.far
    cables = [frozenset((names[s], names[r])) for s in range(13) for r in far[s] if r > s]
    lost = sum(
        None in followed.paths(names[s], names[d], {cable})
        for cable in cables
        for s, d in permutations(range(13), 2)
    )
    assert (report.cases, lost) == (len(cables), report.lost_pairs)


WRONG = {
    "eos": (
        ("eos.cfg", "   encapsulation dot1q vlan 3", "   encapsulation dot1q vlan 4"),
        ("eos.cfg", "   vrf marked1\n", "   vrf marked2\n"),
        ("eos.cfg", "   vrf marked1\n", ""),
        ("eos.cfg", "ip routing vrf marked1\n", ""),
        ("eos.cfg", "egress-vrf marked1 Ethernet1.3", "egress-vrf default Ethernet1.3"),
        ("eos.cfg", r"egress-vrf marked1 Ethernet1.3 (\S+)", r"egress-vrf default Ethernet1 \1"),
        ("eos.cfg", r"ip route vrf marked1 \S+/30 egress-vrf default .*\n", ""),
        (
            "eos.cfg",
            r"ip route vrf marked1 (\S+/32) egress-vrf hosts",
            r"ip route vrf marked1 \1 egress-vrf default",
        ),
        ("avd.json", '"vlan": 3', '"vlan": 4'),
    ),
    "junos": (
        ("junos.set", "unit 3 vlan-id 3", "unit 3 vlan-id 4"),
        ("junos.set", r"set interfaces \S+ unit 3 vlan-id 3\n", ""),
        ("junos.set", r"native-vlan-id 1\n", "native-vlan-id 2\n"),
        ("junos.set", r"set interfaces \S+ flexible-vlan-tagging\n", ""),
        ("junos.set", r"set .* filter input marked1-inet\n", ""),
        ("junos.set", r"set .* filter input marked1-inet6\n", ""),
        ("junos.set", "filter input marked1-inet6", "filter input marked3-inet6"),
        ("junos.set", "filter marked1-inet term fabric then routing-instance marked1", ""),
        ("junos.set", "then routing-instance marked1", "then routing-instance marked2"),
        ("junos.set", r"set .* marked1-inet term fabric from .*\n", ""),
        ("junos.set", r"(marked1-inet term fabric from \S+ 10.0.0.0)/26", r"\1/27"),
        ("junos.set", r"set .* marked1-inet term others .*\n", ""),
        ("junos.set", r"set .* import-rib marked1.inet.0\n", ""),
        ("junos.set", r"set .* import-rib marked1.inet6.0\n", ""),
        ("junos.set", r"set routing-instances marked1 instance-type .*\n", ""),
        ("junos.set", r"set routing-instances marked1 .* 10.0.0.0/26 next-hop .*\n", ""),
        ("junos.set", r"set routing-instances marked1 .* 10.0.0.\d+/30 next-hop .*\n", ""),
        ("junos.set", r"set routing-instances marked1 .* rib marked1.*\n", ""),
        ("junos.set", "routing-options rib marked1.inet6.0", "routing-options rib marked2.inet6.0"),
        ("junos.set", r"set forwarding-options .*\n", ""),
    ),
    "nvue": (
        ("startup.yaml", "vlan: 3", "vlan: 4"),
        ("startup.yaml", "base-interface: swp1\n", "base-interface: swp2\n"),
        ("startup.yaml", "type: sub", "type: swp"),
        ("startup.yaml", "vrf: marked1\n", "vrf: marked3\n"),
        ("startup.yaml", r"          vrf: marked1\n", ""),
        ("startup.yaml", r"      marked1: \{\}\n", ""),
        ("startup.yaml", r"(vrf marked1\n) +ip route .*\n", r"\1"),
        ("startup.yaml", r"(vrf marked1\n +ip route \S+ \S+ \S+ nexthop-vrf) default", r"\1 hosts"),
        ("startup.yaml", r"nexthop-vrf marked2", "nexthop-vrf marked1"),
    ),
    "nxos": (
        ("nxos.cfg", "  encapsulation dot1q 3", "  encapsulation dot1q 4"),
        ("nxos.cfg", "  vrf member marked1\n", "  vrf member marked2\n"),
        ("nxos.cfg", r"universal-id \d+", "universal-id 99"),
        ("nxos.cfg", r"ip load-sharing .*\n", ""),
        ("nxos.cfg", r"(vrf context marked1\n  ip route \S+ \S+ \S+) vrf default", r"\1 vrf hosts"),
        ("nxos.cfg", r"(vrf context marked1\n)  ip route .*\n", r"\1"),
        ("nxos.cfg", r"vrf context marked1\n(  .*\n)+", ""),
    ),
    "sonic": (
        ("config_db.json", '"vlan": "3"', '"vlan": "4"'),
        ("config_db.json", '"vrf_name": "Vrf-marked1"', '"vrf_name": "Vrf-marked2"'),
        (
            "frr.conf",
            r"(vrf Vrf-marked1\n ip route \S+ \S+ \S+ nexthop-vrf) default",
            r"\1 Vrf-hosts",
        ),
        ("frr.conf", r"(vrf Vrf-marked1\n) ip route .*\n", r"\1"),
        ("frr.conf", r"nexthop-vrf Vrf-marked2", "nexthop-vrf Vrf-marked1"),
    ),
}


@every
def test_what_is_wrong_is_found(name, folders, tmp_path):
    build = sprayed("polarfly")
    shutil.copytree(folders[name] / "4", tmp_path / "4")
    assert target(name).check_emitted(build, tmp_path, only=[4]).passed
    for file, before, after in WRONG[name]:
        shutil.copytree(folders[name] / "4", tmp_path / "4", dirs_exist_ok=True)
        text, count = re.subn(before, after, (tmp_path / "4" / file).read_text(), count=1)
        assert count == 1, before
        (tmp_path / "4" / file).write_text(text)
        assert not target(name).check_emitted(build, tmp_path, only=[4]).passed, before


def test_a_link_whose_subinterfaces_have_the_addresses_of_the_port_is_found(folders, tmp_path):
    """Each is at the end of its own network, but marked packets would come in as others do."""
    shutil.copytree(folders["nxos"], tmp_path, dirs_exist_ok=True)
    path = tmp_path / "4" / "nxos.cfg"
    swapped = re.sub(
        r"100\.64\.0\.(\d+)\b", lambda m: f"100.64.0.{int(m[1]) ^ 2}", path.read_text()
    )
    path.write_text(swapped)
    report = target("nxos").check_emitted(sprayed("polarfly"), tmp_path)
    assert any("without that address" in str(example) for example in report.examples)


@pytest.mark.parametrize("name", [name for name in ABLE if name in PRINTERS])
def test_tables_as_rendered_are_right(name, folders, tmp_path):
    build = sprayed("polarfly")
    held = rendered(name, folders[name] / "4")
    write(tmp_path / "in" / "4.json", PRINTERS[name](held))
    report = RouteReport.of(build, [tmp_path / "in"])
    assert (report.target, report.differences) == (name, ())
    key = next(key for key in held if "marked1" in key[0])
    write(tmp_path / "in" / "4.json", PRINTERS[name]({k: v for k, v in held.items() if k != key}))
    report = RouteReport.of(build, [tmp_path / "in"])
    assert [(one.switch, one.table, one.prefix) for one in report.differences] == [("4", *key)]


def test_push_refuses_them(tmp_path):
    with pytest.raises(InputError, match=r"routing\.balance: required another balance: push"):
        DevicePush(sprayed("polarfly"), "eos", {}, tmp_path, PushSettings()).run()


def test_lossless_priorities_are_refused(tmp_path):
    with pytest.raises(InputError, match="required off with marked packets"):
        target("sonic").render(sprayed("polarfly"), tmp_path, options={"lossless": "hop"})


def test_next_hop_groups_and_routes_are_held_against_the_node_type(tmp_path):
    """q = 3, 4 links: 12 routes by 4 classes, and for each link a group and 1 + 4 + 1 routes."""
    (tmp_path / "inventory.yaml").write_text(
        "node_types:\n  box:\n    tables: {lpm_rows: 50}\n"
        "    ports: [{name: 'Ethernet{}', count: 5}]\nnodes:\n"
        + "".join(f"  - {{name: n{v}, type: box}}\n" for v in range(13))
    )
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 3},
        "inventory": "inventory.yaml",
    }
    spec["routing"] = {"balance": "spread"}
    fabric = Fabric.from_spec(spec, tmp_path / "inventory.yaml")
    box = fabric.build.hardware.types[0]

    def limited(**limits):
        types = (replace(box, limits=limits),)
        return replace(fabric.build, hardware=replace(fabric.build.hardware, types=types))

    target("sonic").check(limited(lpm_rows=50, groups=12, ecmp_width=4))
    with pytest.raises(InputError) as error:
        target("sonic").check(limited(lpm_rows=49, groups=11, ecmp_width=3))
    for text in ("50 routes in all VRFs", "12 ECMP groups", "4 members per ECMP group"):
        assert f"at least {text} for alternates on target sonic" in str(error.value)


def test_ports_of_spread_that_do_not_ascend_with_the_neighbours(tmp_path):
    """Links of a switch are dealt to its two modules in turn."""
    nodes = [{"name": f"n{v}", "type": "box"} for v in range(13)]
    box = {"ports": [{"name": "m{module}/{}", "modules": 2, "count": 4, "role": "any"}]}
    inventory = {"node_types": {"box": box}, "nodes": nodes}
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(inventory))
    spec = {"name": "lab", "topology": FAMILIES["polarfly"][0], "inventory": "inventory.yaml"}
    spec["routing"] = {"balance": "spread"}
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(spec))
    build = Fabric.from_spec(tmp_path / "fabric.yaml").build
    ports = [[port for port, _, _ in build.wiring.links_of(v)] for v in range(13)]
    assert any(numbers != sorted(numbers) for numbers in ports)
    target("ovs").render(build, tmp_path / "out")
    assert target("ovs").check_emitted(build, tmp_path / "out").passed
