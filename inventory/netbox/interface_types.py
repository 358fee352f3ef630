"""Translate between NetBox's interfaces, listed one by one, and blocks of ports of a node type.

`blocks` finds runs of interfaces whose names count upwards. `interfaces` lists the ports of blocks.
The tables at the top translate NetBox's types of interfaces into speeds and connectors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from inventory.model import FASTEST, NodeType, PortBlock

SLUGS = {
    (1, "RJ45"): "1000base-t",
    (1, "SFP"): "1000base-x-sfp",
    (10, "RJ45"): "10gbase-t",
    (10, "SFP+"): "10gbase-x-sfpp",
    (25, "SFP28"): "25gbase-x-sfp28",
    (40, "QSFP+"): "40gbase-x-qsfpp",
    (50, "SFP56"): "50gbase-x-sfp56",
    (100, "QSFP28"): "100gbase-x-qsfp28",
    (100, "QSFP-DD"): "100gbase-x-qsfpdd",
    (200, "QSFP56"): "200gbase-x-qsfp56",
    (200, "QSFP-DD"): "200gbase-x-qsfpdd",
    (400, "QSFP112"): "400gbase-x-qsfp112",
    (400, "QSFP-DD"): "400gbase-x-qsfpdd",
    (400, "OSFP"): "400gbase-x-osfp",
    (800, "QSFP-DD"): "800gbase-x-qsfpdd",
    (800, "OSFP"): "800gbase-x-osfp",
}
"""NetBox's type of an interface, by speed in Gb/s and connector."""
KIND_OF_SLUG = {slug: kind for kind, slug in SLUGS.items()}
"""The speed in Gb/s and the connector, by NetBox's type of an interface."""
INFINIBAND = {"sdr": 10, "ddr": 20, "qdr": 40, "fdr10": 40, "fdr": 56, "edr": 100, "hdr": 200}
INFINIBAND |= {"ndr": 400, "xdr": 800}
"""The speeds of InfiniBand in Gb/s, by name."""
INFINIBAND_SLUG = re.compile(
    rf"infiniband-([a-z0-9]{{1,10}})|({'|'.join(INFINIBAND)}) \([0-9.]+ gbps\)"
)
"""An InfiniBand type, also as a table prints it: `infiniband-hdr`, `hdr (50 gbps)`."""
SLUG = re.compile(r"([0-9]{1,5}(?:\.[0-9])?)([gt]?)base-(?:x-)?([a-z0-9._-]{1,40})")
"""An Ethernet type: `400gbase-x-qsfpdd`, `1000base-lx`, `1.6tbase-dr8`, `100gbase-sr1.2`."""
LABEL = re.compile(r"([ -~]{1,40}) \((?:10/)?([0-9]{1,4}(?:\.[0-9])?)([mgt])e( .*)?\)")
"""An Ethernet type as a table of NetBox prints it: `QSFP-DD (400GE)`, `1000BASE-T (1GE)`."""
GIGABITS = {"": 0.001, "m": 0.001, "g": 1, "t": 1000}
"""Gb/s by unit."""
LARGEST_STEP = 1000
"""The largest step between the numbers of two interfaces of a block."""
LONGEST_NUMBER = 6
"""The most digits of a number in a name that is counted upwards."""
UNKNOWN = "other"
"""NetBox's type of an interface that has no type of its own."""
MANAGEMENT = "management"
"""The word in place of the type of a management interface, for reports."""


class DeviceInterface(NamedTuple):
    """An interface of a device type, in the words of NetBox."""

    name: str
    """The name of the interface."""
    type: str = UNKNOWN
    """NetBox's type of the interface."""
    label: str = ""
    """The text printed next to the interface; "" for its name."""


def carries_cable(interface: DeviceInterface) -> bool:
    """Whether a link of a fabric may end at an interface: at Ethernet, InfiniBand, or `other`.

    Virtual and wireless interfaces have no socket. Stacks, Fibre Channel, SONET and passive optical
    networks have sockets that carry no packets of a fabric. Unknown types count as such, too.
    """
    slug = interface.type.lower()
    patterns = (SLUG, LABEL, INFINIBAND_SLUG)
    return slug in ("", UNKNOWN) or any(pattern.fullmatch(slug) for pattern in patterns)


def interfaces(node_type: NodeType) -> list[DeviceInterface]:
    """The interfaces of a node type in the order of port numbers: its ports, or their sockets."""
    listed, labels = [], iter(node_type.labels())
    for block in node_type.ports:
        slug = SLUGS.get((block.speed or 0, block.connector or ""), UNKNOWN)
        for name, sockets in zip(block.port_names(), block.sockets(), strict=True):
            label = next(labels)
            listed += [DeviceInterface(s, slug, label if label != name else "") for s in sockets]
    return listed


def blocks(listed: Sequence[DeviceInterface]) -> list[PortBlock]:
    """The blocks of ports of some interfaces: one for each run of names that count upwards."""
    port_blocks = []
    start = 0
    while start < len(listed):
        run = _run(listed, start)
        speed, connector = _kind(listed[start].type)
        label = _label(listed[start : start + run.count], run.first, run.step)
        optional = {"speed": speed, "connector": connector, "label": label}
        stated = {key: value for key, value in optional.items() if value is not None}
        port_blocks.append(PortBlock.model_validate(asdict(run) | stated))
        start += run.count
    return port_blocks


def _kind(slug: str) -> tuple[int | None, str | None]:
    """The speed in Gb/s and the connector of a type; None for what it does not say."""
    slug = slug.lower()
    if slug in KIND_OF_SLUG:
        return KIND_OF_SLUG[slug]
    infiniband = INFINIBAND_SLUG.fullmatch(slug)
    if infiniband:
        return INFINIBAND.get(infiniband[1] or infiniband[2]), None
    label = LABEL.fullmatch(slug)
    if label:
        if "base-" in label[1]:
            return _kind(label[1].partition("/")[0])
        return _gigabits(label[2], label[3]), label[1].upper()
    ethernet = SLUG.fullmatch(slug)
    if ethernet:
        return _gigabits(ethernet[1], ethernet[2]), ethernet[3].upper()
    return None, None


def _gigabits(number: str, unit: str) -> int | None:
    """A speed in whole Gb/s; None if it is no whole number."""
    speed = float(number) * GIGABITS[unit]
    return round(speed) if 1 <= speed <= FASTEST and abs(speed - round(speed)) < 1e-6 else None


def _numbers(name: str) -> list[str]:
    """The name in parts: text, number, text, number, …"""
    return re.split(r"([0-9]+)", name)


@dataclass(frozen=True, slots=True)
class _Run:
    """Interfaces that make one block; the fields are keys of `PortBlock`."""

    name: str
    """Their names, with {} for the number."""
    count: int = 1
    """How many there are."""
    first: int = 1
    """The first number."""
    step: int = 1
    """The distance between two numbers."""


def _run(listed: Sequence[DeviceInterface], start: int) -> _Run:
    """The longest run of interfaces of one type from `start` whose names count upwards."""
    alone = _Run(listed[start].name)
    if start + 1 == len(listed):
        return alone
    parts, following = _numbers(listed[start].name), _numbers(listed[start + 1].name)
    if len(parts) != len(following):
        return alone
    differ = [i for i, part in enumerate(parts) if part != following[i]]
    # Numbers have odd places.
    if len(differ) != 1 or differ[0] % 2 == 0:
        return alone
    place = differ[0]
    if max(len(parts[place]), len(following[place])) > LONGEST_NUMBER:
        return alone
    first = int(parts[place])
    step = int(following[place]) - first
    if not 1 <= step <= LARGEST_STEP:
        return alone
    before, after = "".join(parts[:place]), "".join(parts[place + 1 :])
    count = 0
    for interface in listed[start:]:
        expected = f"{before}{first + step * count}{after}"
        if (interface.name, interface.type) != (expected, listed[start].type):
            break
        count += 1
    return _Run(f"{before}{{}}{after}", count, first, step) if count > 1 else alone


def _label(run: Sequence[DeviceInterface], first: int, step: int) -> str | None:
    """The labels of a block as a pattern.

    Args:
        run: the interfaces of the block.
        first: the first number in their names.
        step: the distance between two numbers.

    Returns:
        The pattern; None if the labels do not count like the names, or have braces, which stand
        for the number in a pattern.
    """
    if any(brace in interface.label for interface in run for brace in "{}"):
        return None
    patterns = {i.label.replace(str(first + step * n), "{}", 1) for n, i in enumerate(run)}
    pattern = patterns.pop()
    is_only_pattern = not patterns
    is_label = re.fullmatch(r"[A-Za-z0-9._/:{}-]{1,64}", pattern)
    counts = len(run) == 1 or "{}" in pattern
    return pattern if is_only_pattern and is_label and counts else None
