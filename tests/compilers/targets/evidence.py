"""Evidence for what targets can do: by target and ability the strongest check, and where it is.

A check is a test, `FILE::TEST` in `tests/`, or one by hand or a document, whose source is named.
"""

from __future__ import annotations

from dataclasses import dataclass

from compilers.spec.features import (
    BOUNCES,
    CHANNELS,
    INGRESS,
    INTERMEDIATES,
    MARKS,
    MULTIPATH,
    REPAIR,
    TRANSIT,
    UNEQUAL_SHARES,
)

EBGP = "eBGP"
REPAIRED = "alternates with eBGP"
ROUTES, ALTERNATES, UNEQUAL, EVERY_HOP = "minimal", "alternates", "unequal shares", "ECMP per hop"
REROUTE, SPREAD, VALIANT = "fast reroute", "spread", "valiant"
LOSSLESS = "lossless"
RUN, PARSED, READ = "ran here", "parser", "document"
"""On the system itself; by its own parser, model or component; only in documents."""
COLUMNS = {
    ROUTES: set(),
    ALTERNATES: {MULTIPATH, INGRESS},
    UNEQUAL: {UNEQUAL_SHARES},
    EVERY_HOP: {TRANSIT},
    REROUTE: {REPAIR, BOUNCES},
    SPREAD: {MARKS},
    VALIANT: {INTERMEDIATES},
    LOSSLESS: {CHANNELS},
    EBGP: {EBGP},
    REPAIRED: {REPAIRED},
}
"""The columns of the matrix, with the abilities of `Capabilities` that each needs, or EBGP and
REPAIRED, which a target has or refuses."""


@dataclass(frozen=True, slots=True)
class Check:
    """How strong a check is ("" for none), its source or the reason why not, and its test."""

    level: str
    source: str = ""
    test: str = ""

    @property
    def cell(self) -> str:
        """The cell of the matrix."""
        return ": ".join(filter(None, (self.level or "no", self.source)))


def ran(test: str) -> Check:
    return Check(RUN, "", test)


def parsed(source: str, test: str = "") -> Check:
    return Check(PARSED, source, test)


def read(source: str) -> Check:
    return Check(READ, source)


def no(reason: str = "") -> Check:
    return Check("", reason)


HERE = "compilers/targets/"
FILES = HERE + "test_network_systems_files.py::"
ROUTED_LIVE = HERE + "test_routed_live.py::"
SRV6_LIVE = "extensions/host_paths/test_srv6_live.py::"
FAILURES = "mininet_scenarios/engines/test_engine_failures_live.py::"
AVD = "pyavd 6.4"
VTYSH = "`vtysh -C`"
BATFISH = "Batfish, by hand"
NOKIA = "Nokia's YANG 25.3, by hand"
INTER_VRF = "EOS user manual 4.34, *Static Inter-VRF Route*"
WHY_NOT = {
    UNEQUAL: "Static routes have no weights",
    REROUTE: "The repair port depends on the ingress port, but a static route is the same for all"
    " ingress ports",
    VALIANT: "A route cannot write the intermediate switch into packets",
    LOSSLESS: "polarfab does not write it yet",
}
"""Of a column the usual reason, which the page has below the matrix."""
AVD_PRINTS = parsed(AVD, HERE + "test_avd.py::test_it_prints_the_same")
BIRD_LIVE = ran(HERE + "test_bird_live.py::test_every_pair_arrives")
BIRD_AND_FRR = ran(HERE + "test_bird_live.py::test_every_pair_arrives_between_systems")
ONE_TABLE = no("its static routes have one table")
NO_CHANNELS = no("Linux does not pause by priority")
BY_DESTINATION = no("one port per LID")
NO_INSTANCE = no("a next hop names no network instance")
FRR_HAS_IT = no("no daemons; choose frr")
HOSTS_CHOOSE = no("hosts choose")
NO_ROUTERS = no("a subnet has no routers")
CONTROLLER = no("the controller repairs")
SHARED_RUN = ran(ROUTED_LIVE + "test_flows_from_hosts_are_shared_by_weight")
MARKS_RUN = ran(
    HERE + "test_kernel_marks.py::test_kernels_carry_the_shares_that_paths_by_hand_have"
)
EVERY_HOP_RUN = ran(
    HERE + "test_kernel_every_hop.py::test_kernels_share_at_every_hop_and_answer_around_a_cut_link"
)
OPENSM_RUN = ran("extensions/infiniband/test_opensm.py::test_opensm_forwards_as_the_tables_say")
OVS_SHARES = ran(
    FAILURES + "test_entering_traffic_spreads_by_weight_and_packets_to_a_dead_switch_end"
)
SRV6_SHARES = ran(SRV6_LIVE + "test_flows_take_every_path_by_weight_link_by_link")

BY_VTYSH = parsed(VTYSH, HERE + "test_stages.py::test_vtysh_accepts_the_lines_for_frr")

EVIDENCE: dict[str, dict[str, Check]] = {
    "bird": {
        ROUTES: BIRD_LIVE,
        ALTERNATES: ONE_TABLE,
        UNEQUAL: no("at every hop shares are equal"),
        EVERY_HOP: BIRD_AND_FRR,
        REROUTE: no(),
        SPREAD: no("its static routes have one table"),
        VALIANT: no(),
        LOSSLESS: NO_CHANNELS,
        EBGP: BIRD_LIVE,
        REPAIRED: ONE_TABLE,
    },
    "eos": {
        ROUTES: AVD_PRINTS,
        ALTERNATES: read(INTER_VRF),
        UNEQUAL: no("how EOS writes weights was not found"),
        EVERY_HOP: AVD_PRINTS,
        REROUTE: no(),
        SPREAD: AVD_PRINTS,
        VALIANT: no(),
        LOSSLESS: parsed(
            AVD, "extensions/lossless/test_lossless_eos.py::test_avd_prints_the_same_words"
        ),
        EBGP: AVD_PRINTS,
        REPAIRED: read(INTER_VRF),
    },
    "frr": {
        ROUTES: ran(ROUTED_LIVE + "test_frr_every_pair_answers_over_minimal_paths"),
        ALTERNATES: SHARED_RUN,
        UNEQUAL: no("only with `version=10.7`, whose weights we did not run"),
        EVERY_HOP: EVERY_HOP_RUN,
        REROUTE: ran(ROUTED_LIVE + "test_frr_repairs_in_the_order_of_the_tables"),
        SPREAD: MARKS_RUN,
        VALIANT: no(),
        LOSSLESS: NO_CHANNELS,
        EBGP: ran(HERE + "test_bgp_live.py::test_dead_cables"),
        REPAIRED: ran(HERE + "test_bgp_live.py::test_alternates_beside_a_fabric_by_hand"),
    },
    "junos": {
        ROUTES: parsed("Juniper's YANG 24.4R1, by hand"),
        ALTERNATES: parsed("Juniper's YANG 24.4R1, by hand"),
        UNEQUAL: no(),
        EVERY_HOP: read("Junos *Load Balancing for a BGP Session*"),
        REROUTE: no(),
        SPREAD: read("Junos *Filter-Based Forwarding*; *Configuring Flexible VLAN Tagging*"),
        VALIANT: no(),
        LOSSLESS: no(),
        EBGP: parsed(BATFISH),
        REPAIRED: read(
            "Junos CLI reference, *resolve (Routing Options)*, *resolution*; "
            "*Configuring Per-Packet Load Balancing*"
        ),
    },
    "linux": {
        ROUTES: ran(ROUTED_LIVE + "test_linux_every_pair_answers_over_minimal_paths"),
        ALTERNATES: SHARED_RUN,
        UNEQUAL: SHARED_RUN,
        EVERY_HOP: EVERY_HOP_RUN,
        REROUTE: ran(ROUTED_LIVE + "test_linux_repairs_in_the_order_of_the_tables"),
        SPREAD: MARKS_RUN,
        VALIANT: no("hosts do, with srv6 (`intermediates=hosts`)"),
        LOSSLESS: NO_CHANNELS,
        EBGP: FRR_HAS_IT,
        REPAIRED: FRR_HAS_IT,
    },
    "nvue": {
        ROUTES: read("NVUE Command Reference, *Static Routing*"),
        ALTERNATES: BY_VTYSH,
        UNEQUAL: no(),
        EVERY_HOP: read("Cumulus Linux 5.9, *BGP Weighted Equal Cost Multipath*"),
        REROUTE: no(),
        SPREAD: BY_VTYSH,
        VALIANT: no(),
        LOSSLESS: no(),
        EBGP: read("Cumulus Linux 5.9, *Basic BGP Configuration*; NVUE Command Reference, *BGP*"),
        REPAIRED: read("Cumulus Linux 5.9, *NVUE Snippets*, */etc/frr/frr.conf Snippets*"),
    },
    "nxos": {
        ROUTES: parsed(BATFISH),
        ALTERNATES: parsed(BATFISH),
        UNEQUAL: no(),
        EVERY_HOP: read("NX-OS Unicast Routing Configuration Guide, *Configuring Advanced BGP*"),
        REROUTE: no(),
        SPREAD: read("NX-OS Interfaces Configuration Guide, *Configuring a Subinterface*"),
        VALIANT: no(),
        LOSSLESS: no(),
        EBGP: parsed(BATFISH),
        REPAIRED: read(
            "NX-OS Unicast Routing Configuration Guide, *Remote Next Hops for Static Routes*"
        ),
    },
    "opensm": {
        ROUTES: OPENSM_RUN,
        ALTERNATES: BY_DESTINATION,
        UNEQUAL: BY_DESTINATION,
        EVERY_HOP: BY_DESTINATION,
        REROUTE: BY_DESTINATION,
        SPREAD: BY_DESTINATION,
        VALIANT: BY_DESTINATION,
        LOSSLESS: OPENSM_RUN,
        EBGP: NO_ROUTERS,
        REPAIRED: NO_ROUTERS,
    },
    "ovs": {
        ROUTES: ran(
            HERE + "test_ovs_live.py::test_hosts_reach_each_other_with_one_ttl_less_a_switch"
        ),
        ALTERNATES: OVS_SHARES,
        UNEQUAL: OVS_SHARES,
        EVERY_HOP: ran(
            "compilers/routing/test_every_hop_live.py::"
            "test_packets_take_every_shortest_path_and_none_is_lost"
        ),
        REROUTE: ran(FAILURES + "test_every_link_of_q3_goes_down_in_turn"),
        SPREAD: ran(
            FAILURES + "test_marked_packets_are_spread_by_the_next_switch_and_links_go_down"
        ),
        VALIANT: ran(
            HERE + "test_intermediates_live.py::test_every_intermediate_has_its_share_of_flows"
        ),
        LOSSLESS: no("OpenFlow has no PFC"),
        EBGP: CONTROLLER,
        REPAIRED: CONTROLLER,
    },
    "sonic": {
        ROUTES: parsed(VTYSH, FILES + "test_vtysh_accepts_sonics_frr_conf"),
        ALTERNATES: parsed(
            "FRR 8.4's daemons",
            HERE + "test_host_vrf_live.py::test_every_pair_answers_over_compiled_paths",
        ),
        UNEQUAL: no("with `srv6` hosts choose"),
        EVERY_HOP: read("SONiC Weighted ECMP (doc/wcmp/wcmp-design.md), 2.2"),
        REROUTE: no(),
        SPREAD: BY_VTYSH,
        VALIANT: no(),
        LOSSLESS: parsed("SONiC's YANG (086b03b), by hand"),
        EBGP: parsed(VTYSH, HERE + "test_bgp_files.py::test_vtysh_accepts_the_speakers"),
        REPAIRED: parsed(VTYSH, HERE + "test_bgp_files.py::test_vtysh_accepts_the_speakers"),
    },
    "srlinux": {
        ROUTES: parsed(NOKIA),
        ALTERNATES: NO_INSTANCE,
        UNEQUAL: no(),
        EVERY_HOP: parsed(NOKIA),
        REROUTE: no(),
        SPREAD: NO_INSTANCE,
        VALIANT: no(),
        LOSSLESS: no(),
        EBGP: parsed(NOKIA),
        REPAIRED: NO_INSTANCE,
    },
    "srv6": {
        ROUTES: ran(SRV6_LIVE + "test_every_pair_answers_through_carriers"),
        ALTERNATES: SRV6_SHARES,
        UNEQUAL: SRV6_SHARES,
        EVERY_HOP: no("hosts write the whole path"),
        REROUTE: no("a host does not learn that a path is broken"),
        SPREAD: no("hosts write the whole path"),
        VALIANT: ran(
            "extensions/host_paths/test_srv6_intermediates.py::"
            "test_every_link_has_what_all_intermediates_send_over_it"
        ),
        LOSSLESS: NO_CHANNELS,
        EBGP: HOSTS_CHOOSE,
        REPAIRED: HOSTS_CHOOSE,
    },
}
