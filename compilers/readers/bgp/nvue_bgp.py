"""Reader of eBGP in NVUE's startup.yaml, in the words of Cumulus Linux before 5.15."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compilers.readers.bgp.bgp_dialects import BgpDialect
from compilers.readers.bgp.bgp_files import numbered
from compilers.readers.bgp.bgp_speaker import BgpSwitch, Speaker
from compilers.readers.routers.nvue_yaml import read_nvue
from compilers.readers.routers.router_files import read_router
from compilers.readers.routers.router_forwarding import forwarding
from compilers.readers.routers.router_text import RouterText
from compilers.readers.statements import Statements, in_tree

POLICY = "router / policy / "
NEAR = POLICY + "as-path-list / near / rule / 10 / "
FABRIC = POLICY + "prefix-list / fabric-<family> / "
LISTED = POLICY + "prefix-list / <list> / "
RULE = POLICY + "route-map / <policy> / rule / <place> / "
ANNOUNCED = POLICY + "route-map / announced-<family> / rule / 10 / "
UNICAST = "address-family / <family>-unicast / "
GROUP = "bgp / peer-group / fabric-<family> / "
PEER = "bgp / neighbor / <peer> / "
NVUE = BgpDialect(
    once=(
        "router / bgp / enable on",
        "router / bgp / autonomous-system <number>",
        "router / bgp / router-id <id>",
        "bgp / enable on",
        "bgp / path-selection / med / compare-always on",
        "bgp / path-selection / routerid-compare on",
        NEAR + "action permit",
        NEAR + "aspath-exp ^[0-9]+(_[0-9]+){0,<less>}$",
    ),
    family=(
        FABRIC + "rule / 10 / match / <pool> / min-prefix-len <least>",
        FABRIC + "rule / 10 / match / <pool> / max-prefix-len <longest>",
        FABRIC + "rule / 10 / action permit",
        FABRIC + "type <family>",
        "bgp / " + UNICAST + "enable on",
        "bgp / " + UNICAST + "multipaths / ebgp 1",
        GROUP + "timers / keepalive 3",
        GROUP + "timers / hold 9",
        GROUP + "timers / connection-retry 1",
        GROUP + UNICAST + "enable on",
        GROUP + UNICAST + "policy / inbound / route-map fabric-<family>",
        GROUP + UNICAST + "policy / outbound / route-map announced-<family>",
        ANNOUNCED + "action / permit",
        ANNOUNCED + "match / type <family>",
        ANNOUNCED + "match / ip-prefix-list fabric-<family>",
    ),
    own="bgp / " + UNICAST + "network / <prefix>",
    session=(PEER + "peer-group fabric-<family>", PEER + "remote-as <far>"),
    override=(
        PEER + UNICAST + "policy / inbound / route-map <policy>",
        PEER + UNICAST + "enable on",
        POLICY + "prefix-list / <policy> / type <family>",
    ),
    entry=(
        RULE + "action / permit",
        RULE + "match / type <family>",
        RULE + "match / ip-prefix-list <list>",
        RULE + "match / as-path-list near",
        RULE + "set / metric <metric>",
    ),
    six=(RULE + "set / ipv6-nexthop-prefer-global on",),
    preferred=(LISTED + "rule / <row> / match / <prefix>", LISTED + "rule / <row> / action permit"),
    bfd=(),
    watched=(
        GROUP + "bfd / enable on",
        GROUP + "bfd / detect-multiplier 3",
        GROUP + "bfd / min-rx-interval 300",
        GROUP + "bfd / min-tx-interval 300",
    ),
    rooted=True,
)
OTHERS = ("bgp / peer-group / fabric-ipv6 / address-family / ipv4-unicast / enable off",)
"""With both address families: IPv4 would be on in every session."""


def nvue(folder: Path, bfd: bool) -> BgpSwitch:
    """A folder of target nvue whose switch speaks BGP; bfd: whether BFD is to watch its links.

    Raises:
        OSError: the file is not there.
        ValueError: (file, line, text) it makes no sense.
    """
    about: dict[str, Any] = {}

    def apart(text: str, name: str) -> RouterText:
        return read_nvue(text, name, about)

    router = read_router(apart, folder / "startup.yaml")
    speaker = Speaker.read(Statements(dict(in_tree(about))), NVUE, bfd)
    if speaker.families[1:]:
        speaker.said.need(OTHERS, {})
    return numbered(router, speaker, forwarding(router))
