"""Evidence for what targets can do: by target and ability the strongest check, and where it is.

A check is a test, `FILE::TEST` in `tests/`, or was done by hand and is told on a page of `docs/`.
"""

from __future__ import annotations

from compilers.spec.features import CHANNELS, INGRESS, MARKS, REPAIR, SHARES, WEIGHTS

ROUTES = "minimal routes"
EBGP = "eBGP"
REPAIRED = "alternates with eBGP"
RUN, PARSED, READ = "run", "parsed", "read"
"""On the system itself; by its own parser, model or component; only in documents."""
COLUMNS = {
    ROUTES: set(),
    "alternates": {WEIGHTS, INGRESS},
    SHARES: {SHARES},
    REPAIR: {REPAIR},
    "marked packets": {MARKS},
    "lossless": {CHANNELS},
    EBGP: {EBGP},
    REPAIRED: {REPAIRED},
}
"""The columns of the matrix, with the abilities of `Capabilities` that each needs, or EBGP and
REPAIRED, which a target has or refuses."""
HERE = "compilers/targets/"
ROUTED_LIVE = HERE + "test_routed_live.py::"
SRV6_LIVE = "extensions/host_paths/test_srv6_live.py::"
FAILURES = "mininet_scenarios/engines/test_engine_failures_live.py::"
STATIC = "static routes have no weights"
NO_IN_PORT = "a static route does not see where a packet came in"
NOT_YET = "not yet"
NO_CHANNELS = "Linux does not pause by priority"
BY_DESTINATION = "a linear table has one port per destination"

EVIDENCE: dict[str, dict[str, tuple[str, str]]] = {
    "eos": {
        ROUTES: (
            PARSED,
            HERE + "test_network_systems_files.py::test_avd_takes_its_config_and_prints_the_other",
        ),
        "alternates": (READ, "eos.md"),
        SHARES: ("", "EOS has announced weights of static routes, but not how they are written"),
        REPAIR: ("", NO_IN_PORT),
        "marked packets": (PARSED, HERE + "test_stages.py::test_avd_prints_the_same"),
        "lossless": (
            PARSED,
            "extensions/lossless/test_lossless_eos.py::test_avd_prints_the_same_words",
        ),
        EBGP: (
            PARSED,
            HERE + "test_bgp_files.py::test_avd_takes_the_speakers_and_prints_the_other",
        ),
        REPAIRED: (READ, "bgp.md"),
    },
    "frr": {
        ROUTES: (RUN, ROUTED_LIVE + "test_frr_every_pair_answers_over_minimal_paths"),
        "alternates": (RUN, ROUTED_LIVE + "test_flows_from_hosts_are_shared_by_weight"),
        SHARES: ("", "static routes have weights from 10.7 on (`version=10.7`: only read)"),
        REPAIR: (RUN, ROUTED_LIVE + "test_frr_repairs_in_the_order_of_the_tables"),
        "marked packets": (
            RUN,
            HERE + "test_kernel_marks.py::test_kernels_carry_the_shares_that_paths_by_hand_have",
        ),
        "lossless": ("", NO_CHANNELS),
        EBGP: (RUN, HERE + "test_bgp_live.py::test_dead_cables"),
        REPAIRED: (RUN, HERE + "test_bgp_live.py::test_alternates_beside_a_fabric_by_hand"),
    },
    "junos": {
        ROUTES: (PARSED, "junos.md"),
        "alternates": (PARSED, "junos.md"),
        SHARES: ("", STATIC),
        REPAIR: ("", NO_IN_PORT),
        "marked packets": (
            "",
            "not yet: it would take a unit, a filter and an instance for each link",
        ),
        "lossless": ("", NOT_YET),
        EBGP: (PARSED, "bgp.md"),
        REPAIRED: (READ, "bgp.md"),
    },
    "linux": {
        ROUTES: (RUN, ROUTED_LIVE + "test_linux_every_pair_answers_over_minimal_paths"),
        "alternates": (RUN, ROUTED_LIVE + "test_flows_from_hosts_are_shared_by_weight"),
        SHARES: (RUN, ROUTED_LIVE + "test_flows_from_hosts_are_shared_by_weight"),
        REPAIR: (RUN, ROUTED_LIVE + "test_linux_repairs_in_the_order_of_the_tables"),
        "marked packets": (
            RUN,
            HERE + "test_kernel_marks.py::test_kernels_carry_the_shares_that_paths_by_hand_have",
        ),
        "lossless": ("", NO_CHANNELS),
        EBGP: ("", "no daemons; target frr has it"),
        REPAIRED: ("", "no daemons; target frr has it"),
    },
    "nvue": {
        ROUTES: (READ, "nvue.md"),
        "alternates": ("", NO_IN_PORT),
        SHARES: ("", STATIC),
        REPAIR: ("", NO_IN_PORT),
        "marked packets": ("", "a static route names no VRF of a next hop"),
        "lossless": ("", NOT_YET),
        EBGP: (READ, "nvue.md"),
        REPAIRED: (READ, "nvue.md"),
    },
    "nxos": {
        ROUTES: (PARSED, "nxos.md"),
        "alternates": (PARSED, "nxos.md"),
        SHARES: ("", STATIC),
        REPAIR: ("", NO_IN_PORT),
        "marked packets": (READ, "nxos.md"),
        "lossless": ("", NOT_YET),
        EBGP: (PARSED, "bgp.md"),
        REPAIRED: (READ, "bgp.md"),
    },
    "opensm": {
        ROUTES: (
            RUN,
            "extensions/infiniband/test_opensm.py::test_opensm_forwards_as_the_tables_say",
        ),
        "alternates": ("", BY_DESTINATION),
        SHARES: ("", BY_DESTINATION),
        REPAIR: ("", BY_DESTINATION),
        "marked packets": ("", BY_DESTINATION),
        "lossless": (
            RUN,
            "extensions/infiniband/test_opensm.py::test_opensm_forwards_as_the_tables_say",
        ),
        EBGP: ("", "a subnet has no routers"),
        REPAIRED: ("", "a subnet has no routers"),
    },
    "ovs": {
        ROUTES: (
            RUN,
            HERE + "test_ovs_live.py::test_hosts_reach_each_other_with_one_ttl_less_a_switch",
        ),
        "alternates": (
            RUN,
            FAILURES + "test_entering_traffic_spreads_by_weight_and_packets_to_a_dead_switch_end",
        ),
        SHARES: (
            RUN,
            FAILURES + "test_entering_traffic_spreads_by_weight_and_packets_to_a_dead_switch_end",
        ),
        REPAIR: (RUN, FAILURES + "test_every_link_of_q3_goes_down_in_turn"),
        "marked packets": (
            RUN,
            FAILURES + "test_marked_packets_are_spread_by_the_next_switch_and_links_go_down",
        ),
        "lossless": ("", "OpenFlow has no PFC"),
        EBGP: ("", "the controller repairs"),
        REPAIRED: ("", "the controller repairs"),
    },
    "sonic": {
        ROUTES: (
            PARSED,
            HERE + "test_network_systems_files.py::test_vtysh_accepts_sonics_frr_conf",
        ),
        "alternates": (
            PARSED,
            HERE + "test_host_vrf_live.py::test_every_pair_answers_over_compiled_ways",
        ),
        SHARES: ("", f"{STATIC}; with `srv6` hosts choose"),
        REPAIR: ("", NO_IN_PORT),
        "marked packets": (PARSED, HERE + "test_stages.py::test_vtysh_accepts_sonics_frr_conf"),
        "lossless": (PARSED, "sonic.md"),
        EBGP: (PARSED, HERE + "test_bgp_files.py::test_vtysh_accepts_the_speakers"),
        REPAIRED: (PARSED, HERE + "test_bgp_files.py::test_vtysh_accepts_the_speakers"),
    },
    "srlinux": {
        ROUTES: (PARSED, "srlinux.md"),
        "alternates": ("", "a next hop names no network instance"),
        SHARES: ("", STATIC),
        REPAIR: ("", NO_IN_PORT),
        "marked packets": ("", "a next hop names no network instance"),
        "lossless": ("", NOT_YET),
        EBGP: (PARSED, "bgp.md"),
        REPAIRED: ("", "a next hop names no network instance"),
    },
    "srv6": {
        ROUTES: (
            RUN,
            SRV6_LIVE + "test_every_pair_answers_through_carriers",
        ),
        "alternates": (
            RUN,
            SRV6_LIVE + "test_flows_take_every_path_by_weight_link_by_link",
        ),
        SHARES: (
            RUN,
            SRV6_LIVE + "test_flows_take_every_path_by_weight_link_by_link",
        ),
        REPAIR: ("", "a host does not learn that a path is broken"),
        "marked packets": ("", "hosts choose ways, and write all of them"),
        "lossless": ("", NO_CHANNELS),
        EBGP: ("", "hosts choose"),
        REPAIRED: ("", "hosts choose"),
    },
}
