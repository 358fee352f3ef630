"""Rows of flows.txt for packets that carry their intermediate: kinds of claims and whole lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from typing import NamedTuple

from compilers.readers.emitted_forwarding import Claim
from compilers.readers.openflow.openflow_facts import FACTS, MAC, FactForms

BACK = rf"set_field:(?P<mac>{MAC})->eth_dst,load:0->NXM_OF_IN_PORT\[\],"
"""The gateway's address is set back, and the packet is one that came in nowhere."""
CARRIED_FACTS: FactForms = (
    (
        "intermediate drawn",
        re.compile(
            rf"table=0,priority=2,cookie=0x5046000000000003,(?P<f>ip|ipv6),in_port=(?P<port>\d+),"
            rf"eth_dst=(?P<mac>{MAC}),actions=dec_ttl,set_field:(?P<first>{MAC})->eth_dst,"
            r"multipath\(symmetric_l3l4\+udp,(?P<basis>\d+),modulo_n,(?P<count>\d+),0,"
            r"NXM_OF_ETH_DST\[0\.\.15\]\),goto_table:1"
        ),
        ("f", "port", "mac", "first", "basis", "count"),
    ),
    (
        "own block",
        re.compile(
            rf"table=0,priority=3,cookie=0x5046000000000003,(?P<f>ip|ipv6),eth_dst=(?P<mac>{MAC}),"
            r"(?P=f)_dst=(?P<n>[0-9a-f.:/]+),actions=dec_ttl,goto_table:1"
        ),
        ("f", "mac", "n"),
    ),
    (
        "carried",
        re.compile(
            r"table=0,priority=1,cookie=0x5046000000000003,(?P<f>ip|ipv6),"
            rf"eth_dst=(?P<first>{MAC})/ff:ff:ff:ff:00:00,actions=dec_ttl,goto_table:1"
        ),
        ("f", "first"),
    ),
    (
        "intermediate reached",
        re.compile(
            rf"table=1,priority=200,cookie=0x504600000000000f,eth_dst=(?P<own_mac>{MAC}),"
            rf"actions={BACK}resubmit\(,1\)"
        ),
        ("own_mac", "mac"),
    ),
    (
        "intermediate given up",
        re.compile(
            r"table=2,priority=4,cookie=0x504600000000000f,reg0=0xffff/0xffff,"
            rf"actions={BACK}load:0->NXM_NX_REG0\[0\.\.15\],resubmit\(,1\)"
        ),
        ("mac",),
    ),
)
OVS_FACTS: FactForms = (*FACTS, *CARRIED_FACTS)
"""Those of a switch that turns questions into answers by moves."""
ROW = re.compile(
    rf"table=1,priority=200,cookie=0x504600000000000f,eth_dst=({MAC}),actions="
    r"(?:bundle_load\(symmetric_l3l4\+udp,0,active_backup,ofport,NXM_NX_REG0\[0\.\.15\],"
    r"members:(\d+)\),)?write_metadata:(\d+)/0xffff,goto_table:2"
)


class ReadCarried(NamedTuple):
    """A row by an intermediate: its address, the class, the port that has to be up or 0."""

    mac: str
    egress: int
    port: int


def carried_row(text: str) -> ReadCarried | None:
    """What a row by an intermediate says."""
    found = ROW.fullmatch(text)
    return ReadCarried(found[1], int(found[3]), int(found[2] or 0)) if found else None


def carried_claims(
    rows: Iterable[tuple[int, ReadCarried]], routes: Iterable[tuple[str, int]], file: str
) -> Iterator[Claim]:
    """The rows by an intermediate as claims, which tell a class by the lowest of its networks.

    Args:
        rows: with their lines.
        routes: prefixes of IPv4, and their classes.
        file: of the rows.
    """
    lowest: dict[int, int] = {}
    for prefix, egress in routes:
        first = int(IPv4Network(prefix).network_address)
        lowest[egress] = min(first, lowest.get(egress, first))
    for line, row in rows:
        network = str(IPv4Network(lowest[row.egress])[0]) if row.egress in lowest else "no route"
        yield Claim("intermediate", (row.mac, network, row.port), file, line)
