"""How each system says what a BGP speaker is: templates of statements (`statements`)."""

from __future__ import annotations

from dataclasses import dataclass

ROUTER = "router bgp <number> / "
OF_FAMILY = ROUTER + "address-family <family> unicast / "
ENTRY = "route-map <policy> permit <place>"
ANNOUNCED = "route-map announced-<family> permit 10"


@dataclass(frozen=True, slots=True)
class BgpDialect:
    """A system's words; every template has to be there where nothing else is said.

    once: with the fields number, id and most, the length of the longest path, or less, one less.
    family: of each address family, the first one where there is such a family: pool, least,
    longest of its prefixes. own: a prefix that the switch announces. session: of each neighbour,
    the first one where there is such a neighbour: peer, far. override: policy, of a neighbour with
    one of its own. entry: place, list and metric of an entry of a policy; six: the rest of one for
    IPv6. preferred: of each prefix of a list, the first one names it. everyone: of the entry for
    all other prefixes. bfd, watched: where BFD watches links, once and of each family. rooted:
    announces a prefix only while a route of its own has it. made: what makes a neighbour or a
    group, before which the system takes no other statement about it; none: the order is free.
    """

    once: tuple[str, ...]
    family: tuple[str, ...]
    own: str
    session: tuple[str, ...]
    override: tuple[str, ...]
    entry: tuple[str, ...]
    preferred: tuple[str, ...]
    bfd: tuple[str, ...]
    watched: tuple[str, ...]
    everyone: tuple[str, ...] = ()
    six: tuple[str, ...] = ()
    rooted: bool = False
    made: tuple[str, ...] = ()


def _frr(
    group: str, more: tuple[str, ...], session: tuple[str, ...], six: tuple[str, ...] = ()
) -> BgpDialect:
    """FRR, whose neighbours are in a group."""
    return BgpDialect(
        once=(
            "router bgp <number>",
            ROUTER + "bgp router-id <id>",
            ROUTER + "bgp always-compare-med",
            ROUTER + "bgp bestpath compare-routerid",
            ROUTER + "no bgp default ipv4-unicast",
            ROUTER + "no bgp network import-check",
            ROUTER + "bgp log-neighbor-changes",
            "bgp as-path access-list near seq 5 permit ^[0-9]+( [0-9]+){0,<less>}$",
        ),
        family=(
            "<word> prefix-list fabric-<family> seq 5 permit <pool> ge <least> le <longest>",
            "router bgp <number> / address-family <family> unicast",
            f"{ROUTER}neighbor {group} peer-group",
            f"{ROUTER}neighbor {group} timers 3 9",
            f"{ROUTER}neighbor {group} timers connect 1",
            *more,
            f"{OF_FAMILY}neighbor {group} activate",
            f"{OF_FAMILY}neighbor {group} route-map fabric-<family> in",
            f"{OF_FAMILY}neighbor {group} route-map announced-<family> out",
            OF_FAMILY + "maximum-paths 1",
            ANNOUNCED,
            ANNOUNCED + " / match <word> address prefix-list fabric-<family>",
        ),
        own=OF_FAMILY + "network <prefix>",
        session=session,
        override=(f"{OF_FAMILY}neighbor <peer> route-map <policy> in",),
        entry=(
            ENTRY,
            ENTRY + " / match as-path near",
            ENTRY + " / match <word> address prefix-list <list>",
            ENTRY + " / set metric <metric>",
        ),
        preferred=("<word> prefix-list <list> seq <row> permit <prefix>",),
        bfd=(
            "bfd",
            "bfd / profile fabric",
            "bfd / profile fabric / receive-interval 300",
            "bfd / profile fabric / transmit-interval 300",
            "bfd / profile fabric / detect-multiplier 3",
        ),
        watched=(f"{ROUTER}neighbor {group} bfd profile fabric",),
        six=six,
        made=(
            ROUTER + "neighbor <peer> peer-group",
            ROUTER + "neighbor <peer> remote-as <far>",
            ROUTER + "neighbor <peer> interface v6only remote-as <far>",
        ),
    )


FRR = _frr(
    "fabric",
    (ROUTER + "neighbor fabric capability extended-nexthop",),
    (
        ROUTER + "neighbor <peer> interface v6only remote-as <far>",
        ROUTER + "neighbor <peer> peer-group fabric",
    ),
)
"""Sessions over the link itself, each for both address families."""
FRR_UNDER_SONIC = _frr(
    "fabric-<family>",
    (),
    (
        ROUTER + "neighbor <peer> peer-group fabric-<family>",
        ROUTER + "neighbor <peer> remote-as <far>",
    ),
    six=(ENTRY + " / set ipv6 next-hop prefer-global",),
)
"""FRR would take the link-local next hop that comes along; SONiC knows no such neighbours."""
EOS_FAMILY = ROUTER + "address-family <family> / "
EOS = BgpDialect(
    once=(
        "router bgp <number>",
        ROUTER + "router-id <id>",
        ROUTER + "no bgp default ipv4-unicast",
        ROUTER + "maximum-paths 1 ecmp 1",
        ROUTER + "bgp always-compare-med",
        ROUTER + "bgp bestpath tie-break router-id",
        ROUTER + "timers bgp 3 9",
    ),
    family=(
        "<word> prefix-list fabric-<family> / seq 5 permit <pool> ge <least> le <longest>",
        "<word> prefix-list fabric-<family>",
        ROUTER + "neighbor fabric-<family> peer group",
        ROUTER + "neighbor fabric-<family> maximum-routes 0",
        ROUTER + "address-family <family>",
        EOS_FAMILY + "neighbor fabric-<family> activate",
        EOS_FAMILY + "neighbor fabric-<family> route-map fabric-<family> in",
        EOS_FAMILY + "neighbor fabric-<family> route-map announced-<family> out",
        ANNOUNCED,
        ANNOUNCED + " / match <word> address prefix-list fabric-<family>",
    ),
    own=EOS_FAMILY + "network <prefix>",
    session=(
        ROUTER + "neighbor <peer> peer group fabric-<family>",
        ROUTER + "neighbor <peer> remote-as <far>",
    ),
    override=(
        EOS_FAMILY + "neighbor <peer> route-map <policy> in",
        "<word> prefix-list <policy>",
    ),
    entry=(
        ENTRY,
        ENTRY + " / match as-path length <= <most>",
        ENTRY + " / match <word> address prefix-list <list>",
        ENTRY + " / set metric <metric>",
    ),
    preferred=("<word> prefix-list <list> / seq <row> permit <prefix>",),
    bfd=("router bfd", "router bfd / interval 300 min-rx 300 multiplier 3 default"),
    watched=(ROUTER + "neighbor fabric-<family> bfd",),
    rooted=True,
    made=(
        ROUTER + "neighbor <peer> peer group",
        ROUTER + "neighbor <peer> peer group <group>",
        ROUTER + "neighbor <peer> remote-as <far>",
    ),
)
AVD_ROUTER, AVD_ENTRY = "router_bgp / ", "route_maps <policy> / sequence_numbers <place> / "
AVD_FAMILY = AVD_ROUTER + "address_family_<family> / "
AVD_GROUP = AVD_FAMILY + "peer_groups fabric-<family> / "
AVD_ANNOUNCED = "route_maps announced-<family> / sequence_numbers 10 / "
AVD = BgpDialect(
    once=(
        AVD_ROUTER + "as <number>",
        AVD_ROUTER + "router_id <id>",
        AVD_ROUTER + "bgp / default / ipv4_unicast false",
        AVD_ROUTER + "maximum_paths / paths 1",
        AVD_ROUTER + "maximum_paths / ecmp 1",
        AVD_ROUTER + "bgp_defaults bgp always-compare-med",
        AVD_ROUTER + "bgp_defaults bgp bestpath tie-break router-id",
        AVD_ROUTER + "bgp_defaults timers bgp 3 9",
    ),
    family=(
        "<avd>prefix_lists fabric-<family> / sequence_numbers 5 / "
        "action permit <pool> ge <least> le <longest>",
        AVD_ROUTER + "peer_groups fabric-<family> / maximum_routes 0",
        AVD_GROUP + "activate true",
        AVD_GROUP + "route_map_in fabric-<family>",
        AVD_GROUP + "route_map_out announced-<family>",
        AVD_ANNOUNCED + "type permit",
        AVD_ANNOUNCED + "match <word> address prefix-list fabric-<family>",
    ),
    own=AVD_FAMILY + "networks <prefix>",
    session=(
        AVD_ROUTER + "neighbors <peer> / peer_group fabric-<family>",
        AVD_ROUTER + "neighbors <peer> / remote_as <far>",
    ),
    override=(AVD_FAMILY + "neighbors <peer> / route_map_in <policy>",),
    entry=(
        AVD_ENTRY + "type permit",
        AVD_ENTRY + "match as-path length <= <most>",
        AVD_ENTRY + "match <word> address prefix-list <list>",
        AVD_ENTRY + "set metric <metric>",
    ),
    preferred=("<avd>prefix_lists <list> / sequence_numbers <row> / action permit <prefix>",),
    bfd=("router_bfd / interval 300", "router_bfd / min_rx 300", "router_bfd / multiplier 3"),
    watched=(AVD_ROUTER + "peer_groups fabric-<family> / bfd true",),
)
NXOS_FAMILY = ROUTER + "address-family <family> unicast"
NXOS_PEER = ROUTER + "template peer fabric-<family>"
NXOS_IN = NXOS_PEER + " / address-family <family> unicast"
NXOS_OWN = ROUTER + "neighbor <peer> / address-family <family> unicast"
NXOS = BgpDialect(
    once=(
        "feature bgp",
        "feature lldp",
        "router bgp <number>",
        ROUTER + "router-id <id>",
        ROUTER + "bestpath always-compare-med",
        ROUTER + "bestpath compare-routerid",
        ROUTER + "maxas-limit <most>",
        ROUTER + "reconnect-interval 1",
        ROUTER + "log-neighbor-changes",
    ),
    family=(
        "<word> prefix-list fabric-<family> seq 5 permit <pool> ge <least> le <longest>",
        NXOS_FAMILY,
        NXOS_FAMILY + " / additional-paths install backup",
        NXOS_PEER,
        NXOS_PEER + " / timers 3 9",
        NXOS_IN,
        NXOS_IN + " / route-map fabric-<family> in",
        NXOS_IN + " / route-map announced-<family> out",
        ANNOUNCED,
        ANNOUNCED + " / match <word> address prefix-list fabric-<family>",
    ),
    own=NXOS_FAMILY + " / network <prefix>",
    session=(
        ROUTER + "neighbor <peer> / inherit peer fabric-<family>",
        ROUTER + "neighbor <peer>",
        ROUTER + "neighbor <peer> / remote-as <far>",
    ),
    override=(NXOS_OWN + " / route-map <policy> in", NXOS_OWN),
    entry=(
        ENTRY,
        ENTRY + " / match <word> address prefix-list <list>",
        ENTRY + " / set metric <metric>",
    ),
    preferred=("<word> prefix-list <list> seq <row> permit <prefix>",),
    bfd=("feature bfd", "bfd interval 300 min_rx 300 multiplier 3"),
    watched=(NXOS_PEER + " / bfd",),
    rooted=True,
)
SRL_BGP = "protocols / srl_nokia-bgp:bgp / "
SRL_ROUTING = "srl_nokia-routing-policy:routing-policy / "
SRL_GROUP = SRL_BGP + "group fabric-<family> / "
SRL_FAMILY = SRL_BGP + "afi-safi srl_nokia-common:<family>-unicast / "
SRL_LIST = SRL_ROUTING + "prefix-set <list> / prefix <prefix> / mask-length-range "
SRL_POLICY = SRL_ROUTING + "policy <policy> / "
SRL_ENTRY = SRL_POLICY + "statement <place> / "
SRL_ANNOUNCED = SRL_ROUTING + "policy announced-<family> / "
SRLINUX = BgpDialect(
    once=(
        SRL_BGP + "admin-state enable",
        SRL_BGP + "autonomous-system <number>",
        SRL_BGP + "router-id <id>",
        SRL_BGP + "best-path-selection / always-compare-med true",
    ),
    family=(
        SRL_ROUTING
        + "prefix-set fabric-<family> / prefix <pool> / mask-length-range <least>..<longest>",
        SRL_FAMILY + "admin-state enable",
        SRL_FAMILY + "<family>-unicast / backup-paths / install true",
        SRL_GROUP + "afi-safi srl_nokia-common:<family>-unicast / admin-state enable",
        SRL_GROUP + "failure-detection / fast-failover true",
        SRL_GROUP + "timers / connect-retry 1",
        SRL_GROUP + "timers / hold-time 9",
        SRL_GROUP + "timers / keepalive-interval 3",
        SRL_GROUP + "timers / minimum-advertisement-interval 1",
        SRL_GROUP + "import-policy fabric-<family>",
        SRL_GROUP + "export-policy announced-<family>",
        SRL_ANNOUNCED + "default-action / policy-result reject",
        SRL_ANNOUNCED + "statement 10 / match / prefix / prefix-set fabric-<family>",
        SRL_ANNOUNCED + "statement 10 / action / policy-result accept",
    ),
    own="",
    session=(
        SRL_BGP + "neighbor <peer> / peer-group fabric-<family>",
        SRL_BGP + "neighbor <peer> / peer-as <far>",
    ),
    override=(SRL_BGP + "neighbor <peer> / import-policy <policy>",),
    entry=(
        SRL_POLICY + "default-action / policy-result reject",
        SRL_ENTRY + "match / prefix / prefix-set <list>",
        SRL_ENTRY + "match / bgp / as-path-length / operator le",
        SRL_ENTRY + "match / bgp / as-path-length / value <most>",
        SRL_ENTRY + "action / policy-result accept",
        SRL_ENTRY + "action / bgp / med / operation set",
        SRL_ENTRY + "action / bgp / med / value <metric>",
    ),
    preferred=(SRL_LIST + "exact",),
    bfd=(),
    watched=(SRL_GROUP + "failure-detection / enable-bfd true",),
)
SRL_OTHERS = (
    SRL_BGP + "group fabric-ipv4 / afi-safi srl_nokia-common:ipv6-unicast / admin-state disable",
    SRL_BGP + "group fabric-ipv6 / afi-safi srl_nokia-common:ipv4-unicast / admin-state disable",
)
"""With both address families: each has sessions of its own."""
SRL_LINK = "srl_nokia-bfd:bfd / subinterface <port>.0 / "
SRL_WATCHED = (
    SRL_LINK + "admin-state enable",
    SRL_LINK + "desired-minimum-transmit-interval 300000",
    SRL_LINK + "required-minimum-receive 300000",
    SRL_LINK + "detection-multiplier 3",
)
"""BFD of a link of SR Linux."""
JUNOS_BGP = "protocols bgp "
JUNOS_GROUP = JUNOS_BGP + "group fabric-<family> "
JUNOS_POLICY = "policy-options policy-statement <policy> term <place> "
JUNOS_ANNOUNCED = "policy-options policy-statement announced-<family> term "
JUNOS_RANGE = "from route-filter <pool> prefix-length-range /<least>-/<longest>"
JUNOS = BgpDialect(
    once=(
        "routing-options autonomous-system <number>",
        "routing-options router-id <id>",
        JUNOS_BGP + "path-selection always-compare-med",
        JUNOS_BGP + "path-selection external-router-id",
        "protocols lldp interface all",
        'policy-options as-path near ".{1,<most>}"',
    ),
    family=(
        JUNOS_ANNOUNCED + "10 " + JUNOS_RANGE,
        JUNOS_ANNOUNCED + "10 then accept",
        JUNOS_ANNOUNCED + "others then reject",
        JUNOS_GROUP + "type external",
        JUNOS_GROUP + "family <inet> unicast",
        JUNOS_GROUP + "import fabric-<family>",
        JUNOS_GROUP + "export announced-<family>",
        JUNOS_GROUP + "hold-time 9",
    ),
    own="",
    session=(JUNOS_GROUP + "neighbor <peer> peer-as <far>",),
    override=(JUNOS_GROUP + "neighbor <peer> import <policy>",),
    entry=(
        JUNOS_POLICY + "from as-path near",
        JUNOS_POLICY + "then metric <metric>",
        JUNOS_POLICY + "then accept",
        "policy-options policy-statement <policy> term others then reject",
    ),
    everyone=("policy-options policy-statement <policy> term 20 " + JUNOS_RANGE,),
    preferred=("policy-options policy-statement <list> term 10 from route-filter <prefix> exact",),
    bfd=(),
    watched=(
        JUNOS_GROUP + "bfd-liveness-detection minimum-interval 300",
        JUNOS_GROUP + "bfd-liveness-detection multiplier 3",
    ),
)
NVUE_POLICY = "router / policy / "
NVUE_NEAR = NVUE_POLICY + "as-path-list / near / rule / 10 / "
NVUE_FABRIC = NVUE_POLICY + "prefix-list / fabric-<family> / "
NVUE_LISTED = NVUE_POLICY + "prefix-list / <list> / "
NVUE_RULE = NVUE_POLICY + "route-map / <policy> / rule / <place> / "
NVUE_ANNOUNCED = NVUE_POLICY + "route-map / announced-<family> / rule / 10 / "
NVUE_UNICAST = "address-family / <family>-unicast / "
NVUE_GROUP = "bgp / peer-group / fabric-<family> / "
NVUE_PEER = "bgp / neighbor / <peer> / "
NVUE = BgpDialect(
    once=(
        "router / bgp / enable on",
        "router / bgp / autonomous-system <number>",
        "router / bgp / router-id <id>",
        "bgp / enable on",
        "bgp / path-selection / med / compare-always on",
        "bgp / path-selection / routerid-compare on",
        NVUE_NEAR + "action permit",
        NVUE_NEAR + "aspath-exp ^[0-9]+(_[0-9]+){0,<less>}$",
    ),
    family=(
        NVUE_FABRIC + "rule / 10 / match / <pool> / min-prefix-len <least>",
        NVUE_FABRIC + "rule / 10 / match / <pool> / max-prefix-len <longest>",
        NVUE_FABRIC + "rule / 10 / action permit",
        NVUE_FABRIC + "type <family>",
        "bgp / " + NVUE_UNICAST + "enable on",
        "bgp / " + NVUE_UNICAST + "multipaths / ebgp 1",
        NVUE_GROUP + "timers / keepalive 3",
        NVUE_GROUP + "timers / hold 9",
        NVUE_GROUP + "timers / connection-retry 1",
        NVUE_GROUP + NVUE_UNICAST + "enable on",
        NVUE_GROUP + NVUE_UNICAST + "policy / inbound / route-map fabric-<family>",
        NVUE_GROUP + NVUE_UNICAST + "policy / outbound / route-map announced-<family>",
        NVUE_ANNOUNCED + "action / permit",
        NVUE_ANNOUNCED + "match / type <family>",
        NVUE_ANNOUNCED + "match / ip-prefix-list fabric-<family>",
    ),
    own="bgp / " + NVUE_UNICAST + "network / <prefix>",
    session=(NVUE_PEER + "peer-group fabric-<family>", NVUE_PEER + "remote-as <far>"),
    override=(
        NVUE_PEER + NVUE_UNICAST + "policy / inbound / route-map <policy>",
        NVUE_PEER + NVUE_UNICAST + "enable on",
        NVUE_POLICY + "prefix-list / <policy> / type <family>",
    ),
    entry=(
        NVUE_RULE + "action / permit",
        NVUE_RULE + "match / type <family>",
        NVUE_RULE + "match / ip-prefix-list <list>",
        NVUE_RULE + "match / as-path-list near",
        NVUE_RULE + "set / metric <metric>",
    ),
    six=(NVUE_RULE + "set / ipv6-nexthop-prefer-global on",),
    preferred=(
        NVUE_LISTED + "rule / <row> / match / <prefix>",
        NVUE_LISTED + "rule / <row> / action permit",
    ),
    bfd=(),
    watched=(
        NVUE_GROUP + "bfd / enable on",
        NVUE_GROUP + "bfd / detect-multiplier 3",
        NVUE_GROUP + "bfd / min-rx-interval 300",
        NVUE_GROUP + "bfd / min-tx-interval 300",
    ),
    rooted=True,
)
NVUE_OTHERS = ("bgp / peer-group / fabric-ipv6 / address-family / ipv4-unicast / enable off",)
"""With both address families: IPv4 would be on in every session."""
