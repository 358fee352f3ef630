"""Find the links between nodes from the cables of a site, also through panels.

`netbox_file` calls `site_links` with the tables of a site, and writes its cables into an inventory.
A *plug* is a device and one of its ports. A link between two nodes is one cable, or several cables
one after the other with panels between them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from inventory.document_errors import value_or_none
from inventory.floor import REACH_METRES, STOCK_LENGTHS, Cabling
from inventory.netbox.cable_types import MEDIA, media
from inventory.netbox.netbox_tables import CABLES_BY_ID, CsvRow
from inventory.netbox.panel_ports import Plug, follow_link
from inventory.netbox.site_files import Site
from inventory.problems import did_you_mean

METRES_OF_UNIT = {"m": 1.0, "cm": 0.01, "km": 1000.0, "ft": 0.3048, "in": 0.0254, "mi": 1609.344}
"""The metres of each unit of length."""
UNITS = {
    "meters": "m",
    "feet": "ft",
    "inches": "in",
    "centimeters": "cm",
    "kilometers": "km",
    "miles": "mi",
}
"""The units by the words that lists print."""
LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]*)")
"""A length, perhaps with its unit: `3.5 m`."""
TERMINATION = re.compile(r"((dcim\.)?(interface|(front|rear) ?port))?")
"""The type of a cable's end at an interface or a panel: `dcim.interface`, `rear port`, or none."""
AFTER_NAME = re.compile(r" \([^()]*\)$")
"""A label after the name of an interface, or an asset tag after the name of a device."""
CableKinds = dict[tuple[str, str], dict[str, Any]]
"""Types of cables as the inventory lists them, by medium and colour."""


@dataclass(frozen=True, slots=True)
class NetBoxCableEnds:
    """Finds the plugs at the ends of cables."""

    devices: Collection[str]
    """The names of all devices."""
    by_id: Mapping[str, Plug]
    """By id in the table of interfaces, the plug."""

    def of(self, row: CsvRow, end: str) -> Plug:
        """The plug at an end of a cable, `a` or `b`."""
        if row.get(f"{end}_id") in self.by_id:
            return self.by_id[row.get(f"{end}_id")]
        device, name = row.get(f"{end}_device"), row.get(f"{end}_name")
        if device not in self.devices:
            device = AFTER_NAME.sub("", device)
        return device, AFTER_NAME.sub("", name)


@dataclass(frozen=True, slots=True)
class SiteLinks:
    """The links between nodes."""

    cables: list[dict[str, Any]]
    """An entry of the inventory's `cables` for each link."""
    dead: list[dict[str, str]]
    """An entry of `dead_links` for each link that is being taken out of use."""


def site_links(site: Site, names: Collection[str], kinds: CableKinds) -> SiteLinks:
    """The links between interfaces of nodes; other cables are counted as left out.

    Args:
        site: has the tables; gets the number of cables that are left out, and problems.
        names: the names of the nodes.
        kinds: gets the types of cables. A link through panels has no type of its own.
    """
    rows = site.rows["cables"]
    links = SiteLinks([], [])
    used = set[int]()
    for cables, (a, a_port), (b, b_port) in _links(site, names):
        used |= {*cables}
        link: dict[str, Any] = {"a": a, "a_port": a_port, "b": b, "b_port": b_port}
        if len(cables) == 1:
            link |= _cable_facts(rows[cables[0]], kinds, site)
        links.cables.append(link)
        if any(rows[number].get("status").lower() == "decommissioning" for number in cables):
            links.dead.append({"a": a, "b": b})
    site.left_out.cables = len(rows) - len(used)
    return links


def _cable_facts(row: CsvRow, kinds: CableKinds, site: Site) -> dict[str, Any]:
    """The type, the length and the label of a cable, if its row has them."""
    facts: dict[str, Any] = {}
    kind = _cable_type(row, kinds, site) if row.get("type") else ""
    if kind:
        facts["type"] = kind
    if row.get("length"):
        facts["length"] = _length(row, site)
    if row.get("label"):
        facts["label"] = row.get("label")
    return facts


class _Link(NamedTuple):
    """A link between two nodes."""

    cables: list[int]
    """The numbers of its cables, one after the other."""
    a: Plug
    """The plug at one node."""
    b: Plug
    """The plug at the other node."""


class _Cable(NamedTuple):
    """A cable with one plug at each end."""

    number: int
    """The number of the cable."""
    a: Plug
    """The plug at one end."""
    b: Plug
    """The plug at the other end."""


def _links(site: Site, names: Collection[str]) -> Iterator[_Link]:
    """The links between nodes."""
    models = {row.get("name"): site.model(row) for row in site.rows["devices"]}
    panels = {name: site.panels[model] for name, model in models.items() if model in site.panels}
    passed_over = {
        name: {interface.name for interface in site.passed_over.get(model, ())}
        for name, model in models.items()
    }
    cables = [
        cable
        for cable in _single_cables(site, names)
        if not any(port in passed_over.get(device, ()) for device, port in (cable.a, cable.b))
    ]
    cabled: dict[Plug, tuple[Plug, int]] = {}
    for number, a, b in cables:
        cabled[a], cabled[b] = (b, number), (a, number)
    # A link over panels is found from the first of its plugs at nodes; the other one is noted here.
    far_ends = set[Plug]()
    for number, a, b in cables:
        at_nodes = [plug for plug in (a, b) if plug[0] in names]
        if len(at_nodes) == 2:
            yield _Link([number], a, b)
        elif at_nodes and at_nodes[0] not in far_ends:
            far, numbers = follow_link(at_nodes[0], cabled, panels)
            if far and far[0] in names:
                far_ends.add(far)
                yield _Link(numbers, at_nodes[0], far)


def _single_cables(site: Site, names: Collection[str]) -> Iterator[_Cable]:
    """The cables with one port at each end; breakout cables between nodes are noted."""
    by_id = {
        row.get("id"): (row.get("device"), row.get("name"))
        for row in site.rows["interfaces"]
        if row.get("id")
    }
    if not by_id:
        unnamed = [row for row in site.rows["cables"] if _by_id_only(row)]
        if unnamed:
            required = "cables whose interfaces are named"
            todo = "export the list of interfaces, too, with their ids"
            site.problems.append(unnamed[0].problem_in_words("a_id", required, "ids alone", todo))
            return
    plugs = NetBoxCableEnds({row.get("name") for row in site.rows["devices"]}, by_id)
    for number, row in enumerate(site.rows["cables"]):
        if not all(TERMINATION.fullmatch(row.get(f"{end}_type").lower()) for end in "ab"):
            continue
        a, b = plugs.of(row, "a"), plugs.of(row, "b")
        if any("," in text for text in (*a, *b)):
            _note_breakout(row, f"{a[0]},{b[0]}", names, site)
        else:
            yield _Cable(number, a, b)


def _note_breakout(row: CsvRow, devices: str, names: Collection[str], site: Site) -> None:
    """Note a cable with several ports at an end, which is left out, if it joins nodes.

    Args:
        row: the row of the cable.
        devices: the names of the devices at its ends, with commas between them.
        names: the names of the nodes.
        site: gets the note.
    """
    plain_names = [AFTER_NAME.sub("", name) for name in devices.split(",")]
    joined = [name for name in dict.fromkeys(plain_names) if name in names]
    if len(joined) > 1:
        note = f"{row.file}:{row.line} joins {', '.join(joined)}"
        site.left_out.breakouts.append(note)


def _by_id_only(row: CsvRow) -> bool:
    """Whether a row names the ends of its cable by their ids only."""
    return not row.get("a_device") and all(row.get(word) for word in CABLES_BY_ID)


def types_in_stock(cabling: object) -> list[dict[str, Any]]:
    """The types of cables in a section `cabling`; the default types if it has none."""
    section = value_or_none(Cabling, cabling or {}) or Cabling()
    return [kind.model_dump(mode="json") for kind in section.types]


def _cable_type(row: CsvRow, kinds: CableKinds, site: Site) -> str:
    """The name of a cable's type in the inventory; "" for an unknown type or Nautobot's `other`."""
    text, colour = row.get("type"), row.get("color").lower().removeprefix("#")
    if text.lower() == "other":
        return ""
    medium = media(text)
    if medium is None:
        todo = did_you_mean(text.lower(), MEDIA, f"there are: {', '.join(sorted(MEDIA))}")
        site.problems.append(row.problem("type", "a type of cable that carries links", text, todo))
        return ""
    name = f"{medium}-{colour}" if colour else medium
    kind: dict[str, Any] = {"name": name, "media": medium}
    if medium in REACH_METRES:
        kind["lengths"] = [metres for metres in STOCK_LENGTHS if metres <= REACH_METRES[medium]]
    if colour:
        kind["colour"] = colour
    return str(kinds.setdefault((medium, colour), kind)["name"])


def _length(row: CsvRow, site: Site) -> float:
    """The length of a cable in metres; 0 if it cannot be read, which is a problem."""
    match = LENGTH.fullmatch(row.get("length").lower())
    unit = (match[2] if match else "") or row.get("length_unit").lower() or "m"
    unit = UNITS.get(unit, unit)
    if match is None or unit not in METRES_OF_UNIT:
        required = f"a length in {', '.join(METRES_OF_UNIT)}"
        site.problems.append(row.problem("length", required, f"{row.get('length')} {unit}"))
        return 0.0
    return round(float(match[1]) * METRES_OF_UNIT[unit], 3)
