"""The lines of flows.txt and groups.txt as values, one line at a time.

What comes in are the rows and groups of a switch as `ovs-ofctl -O OpenFlow13` takes them
(`ProgramText`). What goes out are a value for each row (`parse_row`), by its purpose in the
pipeline of `compilers/targets/openflow`, and a `GroupText` for each group (`parse_group`). The
grammar `templates/ovs/flows.txt.grammar` says which rows there are. `ovs_reader` and
`single_table_reader` put the values together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from compilers.readers.emitted_forwarding import address_text, network_text
from compilers.readers.exact_text import bare, exact_lines, exact_number, read_exact, strange
from compilers.readers.grammar.rules import Verb, grammar

Entry = tuple[int, str]
"""The egress class to which a prefix is sent, and the prefix's address family."""
KindAndValue = tuple[str, tuple[str | int, ...]]
"""The kind and the value of a claim, a fact besides forwarding."""
SINGLE_TABLE = "single"
"""The word in the grammar for rows of switches with a single table. `OptionalFeatures.form` is the
word for other switches."""
ANY_PORT = 0
"""In place of an ingress port: packets from any port."""
ALL = (1 << 64) - 1
"""The mask of metadata that is matched as a whole."""
LARGEST_WEIGHT = (1 << 16) - 1
"""The largest weight of a bucket, which has 16 bits."""
NUMBER = "(0|[1-9][0-9]*)"
"""A decimal number without leading zeros, as a group of a regular expression."""
GROUP = re.compile(
    rf"group_id={NUMBER},type=(indirect|select|fast_failover|ff)((?:,bucket=[^=].*)?)"
)
"""A line of groups.txt, such as `group_id=7,type=indirect,bucket=actions=output:3`."""
BUCKET = re.compile(
    rf"(?:weight:{NUMBER},)?(?:watch_(port|group):{NUMBER},)?actions="
    r"(?:set_field:((?:[0-9a-f]{2}:){5}[0-9a-f]{2})->eth_dst,)?"
    rf"(?:(output|group):{NUMBER}|(in_port))"
)
"""A bucket behind `bucket=`, such as `weight:2,watch_port:3,actions=output:3`."""


class ProgramFiles(NamedTuple):
    """The names of the files of a switch."""

    flows: str
    """The file of rows."""
    groups: str
    """The file of groups."""


@dataclass(frozen=True, slots=True)
class ProgramText:
    """The rows and groups of a switch, a line each."""

    flows: Sequence[str]
    """The lines of rows."""
    groups: Sequence[str]
    """The lines of groups."""
    files: ProgramFiles
    """The names of the files."""

    @classmethod
    def read(cls, folder: Path) -> ProgramText:
        """Read the folder of a switch.

        Raises:
            OSError: a file is not there.
        """
        flows, groups = folder / "flows.txt", folder / "groups.txt"
        group_lines = exact_lines(read_exact(groups))
        files = ProgramFiles(str(flows), str(groups))
        return cls(exact_lines(read_exact(flows)), group_lines, files)


class ReadIntermediateRow(NamedTuple):
    """A row that routes packets to their intermediate."""

    mac: str
    """The address that names the intermediate."""
    egress: int
    """The egress class to the intermediate."""
    port: int
    """The port that has to be up; 0: no port has to."""


class ReadPrefix(NamedTuple):
    """A row of a single table, from a prefix to a group; only `single_table_reader` reads such."""

    family: str
    """The address family, `ip` or `ipv6`."""
    mac: str
    """The Ethernet address that packets have to have."""
    prefix: str
    """The prefix, as the row writes it."""
    in_port: int
    """The ingress port, or ANY_PORT."""
    group: int
    """The group to which packets go."""
    has_priority_of_length: bool
    """Whether the priority is that of the prefix's length."""


class ReadRoute(NamedTuple):
    """A row of table 1, from a prefix to an egress class."""

    prefix: str
    """The prefix, as the row writes it."""
    entry: Entry
    """The egress class and the address family."""
    is_masked: bool
    """Whether the row writes the class alone, and keeps the other bits of metadata."""


@dataclass(frozen=True, slots=True)
class ReadClass:
    """A row of table 2, from an egress class to a group, or to ports by a hash."""

    priority: int
    """The priority of the row."""
    in_port: int
    """The ingress port, or ANY_PORT."""
    metadata: int
    """The metadata that packets have to have in the bits of `mask`."""
    mask: int
    """The bits of metadata that are matched."""
    group: int
    """The group to which packets go; 0: they go to one of `members`."""
    basis: str = ""
    """The basis of the hash that chooses a member."""
    members: tuple[int, ...] = ()
    """The ports of which the hash chooses one."""


ReadRow = ReadRoute | ReadClass | ReadIntermediateRow | ReadPrefix | KindAndValue
"""A row of flows.txt, by its purpose; a `KindAndValue` is a row that states a claim."""


NO_WATCH = ("", 0)
"""In place of a watched element: the bucket is always live."""


@dataclass(frozen=True, slots=True)
class BucketText:
    """A bucket in the words of groups.txt."""

    weight: int
    """The weight in a select group."""
    watch: tuple[str, int]
    """The element on which its liveness depends: `port` or `group`, and its number; or NO_WATCH."""
    action: str
    """The kind of its action: `output`, `group` or `in_port`."""
    target: int
    """The number of the port or the group to which it sends; 0 with `in_port`."""
    marking_mac: str = ""
    """The destination address that it writes into packets to mark them; "": it marks none."""


class GroupText(NamedTuple):
    """A group in the words of groups.txt."""

    number: int
    """The number of the group."""
    kind: str
    """The type: `indirect`, `select`, `fast_failover` or `ff`."""
    buckets: tuple[BucketText, ...]
    """Its buckets, in order."""


def statements(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither empty nor comments, with their numbers."""
    for number, line in enumerate(lines, 1):
        if (text := bare(line)) and text[0] != "#":
            yield number, text


class _RowRule(NamedTuple):
    """A rule of the grammar for rows."""

    head: str
    """How such rows begin."""
    pattern: re.Pattern[str]
    """The regular expression that they match."""
    meaning: Verb
    """What they mean: a verb and its arguments."""


@lru_cache
def _rules(form: str) -> tuple[_RowRule, ...]:
    """The rules for rows of a form of pipeline.

    Args:
        form: `OptionalFeatures.form`, or SINGLE_TABLE.
    """
    rules = grammar("ovs", "flows.txt").rules
    # The first verb of a rule names the forms of pipelines that have such rows.
    return tuple(
        _RowRule(rule.text_before_fields, rule.pattern, rule.verbs[1])
        for rule in rules
        if form in rule.verbs[0][1:]
    )


def claim_kinds_of(form: str) -> frozenset[str]:
    """The kinds of claims that rows of a form make."""
    meanings = (rule.meaning for rule in _rules(form))
    return frozenset(meaning[1] for meaning in meanings if meaning[0] == "claim")


@lru_cache(1 << 17)
def parse_row(text: str, form: str) -> ReadRow | None:
    """A row of flows.txt; None: there is no such row. Switches share most of their rows.

    Args:
        text: the line.
        form: `OptionalFeatures.form`, or SINGLE_TABLE.
    """
    if strange(text):
        return None
    for head, pattern, meaning in _rules(form):
        if text.startswith(head) and (match := pattern.fullmatch(text)):
            fields = {name: word for name, word in match.groupdict().items() if word is not None}
            try:
                return _row(meaning, fields)
            except ValueError:  # an address or a prefix that is none
                return None
    return None


def _row(meaning: Verb, fields: Mapping[str, str]) -> ReadRow | None:
    """The row by the meaning of its rule.

    Args:
        meaning: a verb of the grammar, with its arguments.
        fields: the fields of the row.
    """
    port, metadata = _number(fields.get("port")), _number(fields.get("metadata"))
    match meaning:
        case ["route"]:
            entry = metadata, fields["f"]
            prefix = f"{fields['a']}/{fields['length']}"
            return ReadRoute(prefix, entry, is_masked="mask" in fields)
        case ["class"]:
            members = fields["members"].split(",") if "members" in fields else []
            return ReadClass(
                priority=_number(fields["priority"]),
                in_port=port,
                metadata=metadata,
                mask=int(fields["mask"], 16) if "mask" in fields else ALL,
                group=_number(fields.get("group")),
                basis=fields.get("basis", ""),
                members=tuple(map(exact_number, members)),
            )
        case ["carried"]:
            return ReadIntermediateRow(fields["mac"], metadata, port)
        case ["prefix"]:
            # Rows with an ingress port go before the row of the same prefix for all ports.
            priority = 2 * _number(fields["length"]) + (0 if port == ANY_PORT else 1)
            return ReadPrefix(
                family=fields["f"],
                mac=fields["mac"],
                prefix=f"{fields['a']}/{fields['length']}",
                in_port=port,
                group=_number(fields["group"]),
                has_priority_of_length=_number(fields["priority"]) == priority,
            )
        case [_, kind, *names]:
            return kind, tuple(_value(name, fields.get(name, "")) for name in names)
    return None


def _value(name: str, text: str) -> str | int:
    """A part of a claim's value, by the name of its field; addresses in their canonical form."""
    if name == "port":
        return _number(text)
    if name == "src":
        return address_text(text) if text else ""
    return {"a": address_text, "own": address_text, "n": network_text}.get(name, str)(text)


def _number(text: str | None) -> int:
    """The number that a text is; 0 without a text."""
    return exact_number(text) if text else 0


@lru_cache(1 << 14)
def parse_group(text: str) -> GroupText | None:
    """The group in a line of groups.txt; None: the line is no group."""
    match = GROUP.fullmatch(text)
    if not match or strange(text):
        return None
    number, kind, bucket_texts = match.groups()
    buckets: list[BucketText] = []
    for bucket_text in bucket_texts.split(",bucket=")[1:]:
        bucket = _bucket(bucket_text, kind)
        if bucket is None:
            return None
        buckets.append(bucket)
    return GroupText(exact_number(number), kind, tuple(buckets))


def _bucket(text: str, kind: str) -> BucketText | None:
    """A bucket of a group of some type; None: it is no bucket of such a group.

    Only buckets of select groups have weights, and all but those of indirect groups watch a port.
    """
    match = BUCKET.fullmatch(text)
    if not match:
        return None
    weight, watch, watched, marking_mac, action, target, in_port = match.groups()
    if (kind == "select") != (weight is not None) or _number(weight) > LARGEST_WEIGHT:
        return None
    if (kind != "indirect") != (watch is not None):
        return None
    return BucketText(
        weight=_number(weight or "1"),
        watch=(watch, _number(watched)) if watch else NO_WATCH,
        action=action or in_port,
        target=_number(target),
        marking_mac=marking_mac or "",
    )
