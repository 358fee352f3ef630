"""Management, time and logs in every system, and the user's own variables."""

import json
from dataclasses import replace

import pytest

from compilers.tables.build_codec import arrays_of, from_json, to_json
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.targets.makers import compiled

SYSTEMS = ("eos", "nxos", "junos", "srlinux", "sonic")


def rendered(name, build, out):
    """The text of a switch's first file, once it has been read back without a difference."""
    target(name).render(build, out, only=[0])
    report = target(name).check_emitted(build, out, only={0})
    assert (report.differences, report.examples) == (0, ())
    return (out / "n0" / next(iter(target(name).files))).read_text()


WANTED = {
    "eos": """vrf instance MGMT
!
management api http-commands
   no shutdown
   !
   vrf MGMT
      no shutdown
!
management ssh
   !
   vrf MGMT
      no shutdown
!
interface Management1
   vrf MGMT
   ip address 192.0.2.1/24
!
ip route vrf MGMT 0.0.0.0/0 192.0.2.254
!
ntp server vrf MGMT 192.0.2.250
!
logging vrf MGMT host 192.0.2.251
""",
    "nxos": """vrf context management
  ip route 0.0.0.0/0 192.0.2.254
interface mgmt0
  vrf member management
  ip address 192.0.2.1/24
ntp server 192.0.2.250 use-vrf management
logging server 192.0.2.251 use-vrf management
""",
    "junos": """set system management-instance
set routing-instances mgmt_junos description management
set interfaces re0:mgmt-0 unit 0 family inet address 192.0.2.1/24
set routing-instances mgmt_junos routing-options static route 0.0.0.0/0 next-hop 192.0.2.254
set system ntp server 192.0.2.250 routing-instance mgmt_junos
set system syslog host 192.0.2.251 any notice
set system syslog host 192.0.2.251 routing-instance mgmt_junos
""",
    "sonic": """  "MGMT_INTERFACE": {
    "eth0|192.0.2.1/24": {
      "gwaddr": "192.0.2.254"
    }
  },
  "NTP_SERVER": {
    "192.0.2.250": {}
  },
""",
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_management_time_and_logs_are_printed_and_forward_nothing(name, tmp_path):
    text = rendered(name, compiled(tmp_path), tmp_path / "out")
    assert WANTED.get(name, "") in text


@pytest.mark.parametrize("name", ["eos", "sonic"])
def test_management_stands_beside_the_vrf_of_hosts(name, tmp_path):
    build = compiled(tmp_path, more="routing: {balance: compact-valiant}\n")
    assert WANTED[name] in rendered(name, build, tmp_path / "out")


def test_srlinux_has_a_network_instance_for_management(tmp_path):
    tree = json.loads(rendered("srlinux", compiled(tmp_path), tmp_path / "out"))
    instance = tree["srl_nokia-network-instance:network-instance"][-1]
    assert (instance["name"], instance["interface"]) == ("mgmt", [{"name": "mgmt0.0"}])
    system = tree["srl_nokia-system:system"]
    assert system["srl_nokia-ntp:ntp"]["server"] == [{"address": "192.0.2.250"}]
    assert system["srl_nokia-logging:logging"]["remote-server"] == [{"host": "192.0.2.251"}]


IPV6 = {
    "eos": ("   ipv6 address 2001:db8::1/64", "ipv6 route vrf MGMT ::/0 2001:db8::ff"),
    "nxos": ("  ipv6 address 2001:db8::1/64", "  ipv6 route ::/0 2001:db8::ff"),
    "junos": (
        "unit 0 family inet6 address 2001:db8::1/64",
        "routing-options rib mgmt_junos.inet6.0 static route ::/0 next-hop 2001:db8::ff",
    ),
    "srlinux": ('"ip-prefix": "2001:db8::1/64"', '"ip-address": "2001:db8::ff"'),
    "sonic": ('"eth0|2001:db8::1/64": {', '"gwaddr": "2001:db8::ff"'),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_management_may_be_ipv6_and_absent(name, tmp_path):
    build = compiled(tmp_path, "2001:db8::{}", 64, "2001:db8::ff")
    text = rendered(name, build, tmp_path / "six")
    assert all(line in text for line in IPV6[name])
    bare = replace(build, base={})
    assert "2001:db8" not in rendered(name, bare, tmp_path / "bare")
    unmanaged = replace(build.wiring, management=("", *build.wiring.management[1:]))
    text = rendered(name, replace(build, wiring=unmanaged), tmp_path / "without")
    assert "2001:db8" not in text.replace("2001:db8::ff", "")


def test_a_port_of_the_fabric_in_the_vrf_of_management_is_found(tmp_path):
    build = compiled(tmp_path)
    rendered("eos", build, tmp_path / "out")
    file = tmp_path / "out" / "n0" / "eos.cfg"
    file.write_text(file.read_text().replace("   no switchport\n", "   vrf MGMT\n", 1))
    assert target("eos").check_emitted(build, tmp_path / "out", only={0}).differences


def test_variables_of_node_group_and_fabric_reach_templates_and_survive_the_disk(tmp_path):
    build = compiled(tmp_path)
    arrays = {field.name: array for field, array in arrays_of(build)}
    more = {"inputs": build.inputs, "identity": "0" * 16}
    again = from_json(json.loads(to_json(build)), arrays, **more)
    own = tmp_path / "own" / "eos"
    own.mkdir(parents=True)
    words = "{{ vars.site }} {{ vars.rack | default('none') }} {{ vars.contact.room }}\n"
    (own / "site.txt.j2").write_text(words)
    target("eos").render(again, tmp_path / "out", templates=tmp_path / "own")
    assert (tmp_path / "out" / "n0" / "site.txt").read_text() == "north none 7\n"
    assert (tmp_path / "out" / "n3" / "site.txt").read_text() == "south r3 7\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gateway": "198.51.100.1"}, "with /24 and 198.51.100.1 (base.management), given"),
        ({"length": 64}, "inventory.yaml:7: nodes[0].management: required an address in one"),
    ],
)
def test_a_gateway_that_no_switch_reaches_is_refused(given, message, tmp_path):
    with pytest.raises(InputError) as error:
        compiled(tmp_path, **given)
    assert message in str(error.value)
