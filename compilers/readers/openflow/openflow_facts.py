"""Facts that rows of flows.txt state beside routes and classes: kinds of claims and whole lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAC = r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"
FactForms = Sequence[tuple[str, re.Pattern[str], tuple[str, ...]]]
FACTS: FactForms = (
    (
        "host",
        re.compile(
            rf"table=1,priority=(?:32|128),cookie=0x5046000000000005,(?:ip,ip|ipv6,ipv6)_dst="
            rf"(?P<a>[0-9a-f.:]+),actions=set_field:(?P<gateway>{MAC})->eth_src,"
            rf"set_field:(?P<mac>{MAC})->eth_dst,output:(?P<port>\d+)"
        ),
        ("a", "mac", "gateway", "port"),
    ),
    (
        "address of a host",
        re.compile(
            r"table=0,priority=4,cookie=0x5046000000000001,arp,in_port=(?P<port>\d+),arp_op=1,"
            r"arp_tpa=(?P<a>[0-9.]+),actions=drop"
        ),
        ("a", "port"),
    ),
    (
        "address of a host",
        re.compile(
            r"table=0,priority=4,cookie=0x5046000000000001,icmp6,in_port=(?P<port>\d+),"
            r"icmpv6_type=135,nd_target=(?P<a>[0-9a-f:]+),actions=drop"
        ),
        ("a", "port"),
    ),
    (
        "answered block",
        re.compile(
            r"table=0,priority=3,cookie=0x5046000000000002,arp,arp_op=1,arp_tpa=(?P<n>[0-9./]+),"
            r"actions=move:arp_tpa->reg0,move:arp_spa->arp_tpa,move:reg0->arp_spa,"
            rf"move:arp_sha->arp_tha,set_field:(?P<mac>{MAC})->arp_sha,set_field:2->arp_op,"
            r"move:eth_src->eth_dst,set_field:(?P=mac)->eth_src,in_port"
        ),
        ("n", "mac"),
    ),
    (
        "solicited block",
        re.compile(
            r"table=0,priority=3,cookie=0x5046000000000002,icmp6,icmpv6_type=135,"
            r"nd_target=(?P<n>[0-9a-f:/]+),actions=move:ipv6_src->ipv6_dst,"
            r"move:nd_target->ipv6_src,set_field:136->icmpv6_type,set_field:2->nd_options_type,"
            r"set_field:0xe0000000->nd_reserved,goto_table:3"
        ),
        ("n",),
    ),
    (
        "neighbour answer",
        re.compile(
            r"table=3,priority=3,cookie=0x5046000000000002,icmp6,icmpv6_type=136,actions="
            rf"set_field:(?P<mac>{MAC})->nd_tll,move:eth_src->eth_dst,"
            r"set_field:(?P=mac)->eth_src,in_port"
        ),
        ("mac",),
    ),
    (
        "forwarded",
        re.compile(
            rf"table=0,priority=1,cookie=0x5046000000000003,(?P<f>ip|ipv6),eth_dst=(?P<mac>{MAC}),"
            r"actions=dec_ttl,goto_table:1"
        ),
        ("f", "mac"),
    ),
    (
        "forwarded",
        re.compile(
            r"table=0,priority=2,cookie=0x5046000000000003,(?P<f>ip|ipv6),in_port=(?P<port>\d+),"
            rf"eth_dst=(?P<mac>{MAC}),"
            r"actions=dec_ttl,write_metadata:0x10000/0x10000,goto_table:1"
        ),
        ("f", "mac", "port"),
    ),
    (
        "marked",
        re.compile(
            rf"table=0,priority=1,cookie=0x5046000000000003,(?P<f>ip|ipv6),"
            rf"eth_dst=(?P<mark>{MAC}),actions=dec_ttl,set_field:(?P<mac>{MAC})->eth_dst,"
            r"write_metadata:0x20000/0x20000,goto_table:1"
        ),
        ("f", "mark", "mac"),
    ),
    (
        "spread",
        re.compile(
            r"table=2,priority=3,cookie=0x504600000000000e,in_port=(?P<port>\d+),"
            r"metadata=(?P<marks>\d+/0x[0-9a-f]+),actions=(?:set_field:(?P<mark>"
            rf"{MAC})->eth_dst,)?bundle\(symmetric_l3l4\+udp,(?P<basis>\d+),hrw,"
            r"ofport,members:(?P<ports>\d+(?:,\d+)*)\)"
        ),
        ("port", "marks", "mark", "basis", "ports"),
    ),
    (
        "identity",
        re.compile(r"table=0,priority=0,cookie=0x504[75](?P<id>[0-9a-f]{12}),actions=drop"),
        ("id",),
    ),
)
"""Every other row: a kind of claim, what the whole line is, and which parts it claims."""
BY_MOVES = frozenset({"address of a host", "answered block", "solicited block", "neighbour answer"})
"""What a switch claims that turns questions into answers by moves."""
REPLY = re.compile(
    rf"table=0,priority=3,cookie=0x5046000000000002,arp,in_port=(?P<port>\d+),arp_op=1,"
    rf"arp_tpa=(?P<a>[0-9.]+),actions=set_field:(?P<host>{MAC})->eth_dst,"
    rf"set_field:(?P<mac>{MAC})->eth_src,set_field:2->arp_op,set_field:(?P=mac)->arp_sha,"
    r"set_field:(?P=a)->arp_spa,set_field:(?P=host)->arp_tha,set_field:(?P<own>[0-9.]+)->arp_tpa,"
    r"in_port"
)
FACTS_IN_CONSTANTS: FactForms = (
    ("answered address", REPLY, ("a", "port", "host", "own", "mac")),
    *(fact for fact in FACTS if fact[0] not in BY_MOVES),
)
"""Rows of a switch that answers in constants."""
