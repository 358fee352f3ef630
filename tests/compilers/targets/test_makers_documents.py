"""Statements of routers, each with the maker's document that asks for it.

A file without such a statement is not read back as what the build says.
"""

from dataclasses import replace

import pytest

from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.routed import agreed
from tests.compilers.targets.makers import compiled
from tests.compilers.targets.test_port_names import compiled as with_ports

MANAGED = """management api http-commands
   no shutdown
   !
   vrf MGMT
      no shutdown
!
management ssh
   !
   vrf MGMT
      no shutdown
"""
STATIC = [
    # A management interface in a VRF is out of reach of SSH and eAPI, which answer in the default
    # VRF: EOS User Manual, "Session Management Commands", `management ssh`, `management api
    # http-commands`; Arista, "Introduction to Managing EOS Devices", 1.1 VRF Aware Management.
    ("eos", MANAGED),
    # LLDP is off: Cisco Nexus 9000 System Management Configuration Guide, "Configuring LLDP".
    ("nxos", "feature lldp\n"),
    # LLDP is off on some models: Junos CLI Reference, `lldp`.
    ("junos", "set protocols lldp interface all\n"),
    # `container lldp` has "presence": srl_nokia-lldp 25.3.
    ("srlinux", '    "srl_nokia-lldp:lldp": {\n      "admin-state": "enable"\n    },\n'),
    # `any any` sends debugging, too: Junos System Log Explorer, severities.
    ("junos", "set system syslog host 192.0.2.251 any notice\n"),
]
SESSIONS = [
    # AVD, router_bgp.peer_groups.ttl_maximum_hops.
    ("eos", "   neighbor fabric-ipv4 ttl maximum-hops 1\n"),
    ("eos", "   neighbor 100.64.0.3 description n1 Ethernet1\n"),
    # cisco.nxos, nxos_bgp_templates, ttl_security.
    ("nxos", "    ttl-security hops 1\n"),
    # Cisco Nexus 5500 NX-OS Unicast Command Reference, `neighbor`: "up to 80 characters".
    ("nxos", "    description n1 Ethernet1/1\n"),
    # junipernetworks.junos, junos_bgp_global, `ttl`: "TTL value for the single-hop peer".
    ("junos", "set protocols bgp group fabric-ipv4 ttl 255\n"),
    # Junos CLI Reference, `log-updown (Protocols BGP)`: off unless it is there.
    ("junos", "set protocols bgp group fabric-ipv4 log-updown\n"),
    (
        "junos",
        'set protocols bgp group fabric-ipv4 neighbor 100.64.0.3 description "n1 et-0/0/0"\n',
    ),
    # srl_nokia-bgp 25.3, `neighbor/description`; the module has no TTL security.
    ("srlinux", '"description": "n1 ethernet-1/1",\n              "peer-address"'),
    # FRR user guide, "BGP", `neighbor PEER ttl-security hops NUMBER` (RFC 5082).
    ("sonic", " neighbor fabric-ipv4 ttl-security hops 1\n"),
    ("sonic", " neighbor 100.64.0.3 description n1 Ethernet0\n"),
]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """Renders the files of a system once, and reads a switch back."""
    folder = tmp_path_factory.mktemp("makers")
    build = compiled(folder)
    known = {}

    def of(name, **options):
        key = (name, *options.items())
        if key not in known:
            known[key] = folder / f"out{len(known)}"
            target(name).render(agreed(build, options), known[key])
        _, chosen = target(name).check(agreed(build, options))
        file = known[key] / "n0" / list(target(name).files)[-1 if name == "sonic" else 0]
        return file, lambda: target(name).reader(chosen)(known[key] / "n0")

    return of


@pytest.mark.parametrize(
    ("name", "statement", "options"),
    [
        *((*row, {}) for row in STATIC),
        *((*row, {"routing": "bgp"}) for row in SESSIONS),
    ],
)
def test_a_file_without_it_is_not_what_the_build_says(name, statement, options, rendered):
    file, read = rendered(name, **options)
    text = file.read_text()
    assert statement in text
    switch = read()
    assert not switch.wrong
    assert not switch.unread
    without = text.replace(statement, '"peer-address"' if "peer-address" in statement else "")
    try:
        file.write_text(without)
        switch = read()
        assert switch.wrong or "syslog server" not in {claim.kind for claim in switch.claims}
    finally:
        file.write_text(text)


def test_a_neighbour_described_as_another_is_found(rendered):
    file, read = rendered("sonic", routing="bgp")
    text = file.read_text()
    try:
        file.write_text(text.replace("description n1 Ethernet0", "description n2 Ethernet0"))
        (wrong,) = read().wrong
        assert wrong[2] == "a neighbor at Ethernet0 described n2 Ethernet0"
    finally:
        file.write_text(text)


def with_mtu(build, *sizes):
    """A build whose ports have these MTUs, by their blocks."""
    (box,) = build.hardware.types
    blocks = tuple(replace(b, mtu=size) for b, size in zip(box.blocks, sizes, strict=True))
    return replace(build, hardware=replace(build.hardware, types=(replace(box, blocks=blocks),)))


def test_switchports_of_nxos_have_one_mtu(tmp_path):
    """`mtu` is behind `switchport`, and is that of `system jumbomtu`: Cisco Nexus 9000 Interfaces
    Configuration Guide, "Configuring Basic Interface Parameters", MTU.
    """
    build = with_ports(tmp_path)
    target("nxos").render(build, tmp_path / "out")
    text = (tmp_path / "out" / "leaf0" / "nxos.cfg").read_text()
    assert "system jumbomtu 9000\n" in text
    assert "  switchport access vlan 2\n  mtu 9000\n" in text
    file = tmp_path / "out" / "leaf0" / "nxos.cfg"
    for old, new in (("jumbomtu 9000", "jumbomtu 9216"), ("  no switchport\n  mtu 9000\n", "")):
        file.write_text(text.replace(old, new + "  mtu 9000\n  no switchport\n" * (not new), 1))
        assert not target("nxos").check_emitted(build, tmp_path / "out").passed
    largest = with_mtu(build, 9216, 0)  # the usual `system jumbomtu`, which NX-OS does not show
    target("nxos").render(largest, tmp_path / "largest")
    assert "jumbo" not in (tmp_path / "largest" / "leaf0" / "nxos.cfg").read_text()
    assert target("nxos").check_emitted(largest, tmp_path / "largest").passed
    with pytest.raises(InputError, match="one MTU at the ports of hosts of a switch"):
        target("nxos").render(with_mtu(build, 9000, 1500), tmp_path / "two")
    for size in 1400, 9300:
        with pytest.raises(InputError, match=f"an MTU from 1500 to 9216.*given {size} at leaf0"):
            target("nxos").render(with_mtu(build, size, size), tmp_path / "beyond")
