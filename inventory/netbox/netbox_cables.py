"""The cables of a site as links between nodes, through panels."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inventory.document_errors import part
from inventory.floor import Cabling
from inventory.netbox.cable_types import MEDIA, media
from inventory.netbox.netbox_tables import CABLES_BY_ID, CsvRow
from inventory.netbox.panel_ports import Plug, far_end
from inventory.netbox.site_files import Site
from inventory.problems import did_you_mean

METRES_OF_UNIT = {"m": 1.0, "cm": 0.01, "km": 1000.0, "ft": 0.3048, "in": 0.0254, "mi": 1609.344}
UNITS = {"meters": "m", "feet": "ft", "inches": "in", "centimeters": "cm", "kilometers": "km"}
UNITS |= {"miles": "mi"}
LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]*)")
TERMINATION = re.compile(r"((dcim\.)?(interface|(front|rear) ?port))?")
BEHIND_NAME = re.compile(r" \([^()]*\)$")
"""A label behind the name of an interface, an asset tag behind that of a device."""
CableKinds = dict[tuple[str, str], dict[str, Any]]
"""Types of cables, by medium and colour."""


@dataclass(frozen=True, slots=True)
class PlugNames:
    """How tables name the interfaces of devices."""

    devices: Collection[str]
    """The names of all devices."""
    by_id: Mapping[str, Plug]
    """The interface of each id in a table of interfaces."""

    def of(self, row: CsvRow, end: str) -> Plug:
        """The plug at an end of a cable, `a` or `b`."""
        if row.get(f"{end}_id") in self.by_id:
            return self.by_id[row.get(f"{end}_id")]
        device, name = row.get(f"{end}_device"), row.get(f"{end}_name")
        if device not in self.devices:
            device = BEHIND_NAME.sub("", device)
        return device, BEHIND_NAME.sub("", name)


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
        site: the tables; gets the number of cables that are left out, and problems.
        names: of the nodes.
        kinds: gets the types of cables as they come; a link through panels has none of its own.
    """
    rows = site.rows["cables"]
    links = SiteLinks([], [])
    used = set[int]()
    for run, (a, a_port), (b, b_port) in _links(site, names):
        used |= {*run}
        link: dict[str, Any] = {"a": a, "a_port": a_port, "b": b, "b_port": b_port}
        if len(run) == 1:
            link |= _cable_facts(rows[run[0]], kinds, site)
        links.cables.append(link)
        if any(rows[number].get("status").lower() == "decommissioning" for number in run):
            links.dead.append({"a": a, "b": b})
    site.left_out.cables = len(rows) - len(used)
    return links


def _cable_facts(row: CsvRow, kinds: CableKinds, site: Site) -> dict[str, Any]:
    """The type, the length and the label of a cable, as far as its row has them."""
    facts: dict[str, Any] = {}
    if row.get("type") and (kind := _cable_type(row, kinds, site)):
        facts["type"] = kind
    if row.get("length"):
        facts["length"] = _length(row, site)
    if row.get("label"):
        facts["label"] = row.get("label")
    return facts


def _links(site: Site, names: Collection[str]) -> Iterator[tuple[list[int], Plug, Plug]]:
    """The cables of each link, by their numbers, and its ends at nodes."""
    models = {row.get("name"): site.model(row) for row in site.rows["devices"]}
    panels = {name: site.panels[model] for name, model in models.items() if model in site.panels}
    passed_over = {
        name: {interface.name for interface in site.passed_over.get(model, ())}
        for name, model in models.items()
    }
    cables = [
        (number, a, b)
        for number, a, b in _single_cables(site, names)
        if not any(port in passed_over.get(device, ()) for device, port in (a, b))
    ]
    cabled: dict[Plug, tuple[Plug, int]] = {}
    for number, a, b in cables:
        cabled[a], cabled[b] = (b, number), (a, number)
    far_ends = set[Plug]()
    for number, a, b in cables:
        at_nodes = [plug for plug in (a, b) if plug[0] in names]
        if len(at_nodes) == 2:
            yield [number], a, b
        elif at_nodes and at_nodes[0] not in far_ends:
            far, run = far_end(at_nodes[0], cabled, panels)
            if far and far[0] in names:
                far_ends.add(far)
                yield run, at_nodes[0], far


def _single_cables(site: Site, names: Collection[str]) -> Iterator[tuple[int, Plug, Plug]]:
    """Each cable with one port at both ends, by its number; breakouts between nodes are noted."""
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
            site.problems.append(unnamed[0].fault("a_id", required, "ids alone", todo))
            return
    plugs = PlugNames({row.get("name") for row in site.rows["devices"]}, by_id)
    for number, row in enumerate(site.rows["cables"]):
        if not all(TERMINATION.fullmatch(row.get(f"{end}_type").lower()) for end in "ab"):
            continue
        a, b = plugs.of(row, "a"), plugs.of(row, "b")
        if any("," in text for text in (*a, *b)):
            _note_breakout(row, f"{a[0]},{b[0]}", names, site)
        else:
            yield number, a, b


def _note_breakout(row: CsvRow, devices: str, names: Collection[str], site: Site) -> None:
    """Note a cable with several ports at an end, which is left out, if it joins nodes.

    Args:
        row: of the cable.
        devices: the names of the devices at its ends, with commas between them.
        names: of the nodes.
        site: gets the note.
    """
    plain_names = [BEHIND_NAME.sub("", name) for name in devices.split(",")]
    joined = [name for name in dict.fromkeys(plain_names) if name in names]
    if len(joined) > 1:
        note = f"{row.file}:{row.line} joins {', '.join(joined)}"
        site.left_out.breakouts.append(note)


def _by_id_only(row: CsvRow) -> bool:
    return not row.get("a_device") and all(row.get(word) for word in CABLES_BY_ID)


def stock(cabling: object) -> list[dict[str, Any]]:
    """The types of cables of a section `cabling`, of the usual one where it has none."""
    usual = part(Cabling, cabling or {}) or Cabling()
    return [kind.model_dump(mode="json") for kind in usual.types]


def _cable_type(row: CsvRow, kinds: CableKinds, site: Site) -> str:
    """The name of a type in the inventory; "" for Nautobot's `other`, which says nothing."""
    text, colour = row.get("type"), row.get("color").lower().removeprefix("#")
    if text.lower() == "other":
        return ""
    medium = media(text)
    if medium is None:
        todo = did_you_mean(text.lower(), MEDIA, f"there are: {', '.join(sorted(MEDIA))}")
        site.problems.append(row.problem("type", "a type of cable that carries links", text, todo))
        return ""
    name = f"{medium}-{colour}" if colour else medium
    kind: dict[str, Any] = {"name": name, "media": medium} | ({"colour": colour} if colour else {})
    return str(kinds.setdefault((medium, colour), kind)["name"])


def _length(row: CsvRow, site: Site) -> float:
    """Metres."""
    match = LENGTH.fullmatch(row.get("length").lower())
    unit = (match[2] if match else "") or row.get("length_unit").lower() or "m"
    unit = UNITS.get(unit, unit)
    if match is None or unit not in METRES_OF_UNIT:
        required = f"a length in {', '.join(METRES_OF_UNIT)}"
        site.problems.append(row.problem("length", required, f"{row.get('length')} {unit}"))
        return 0.0
    return round(float(match[1]) * METRES_OF_UNIT[unit], 3)
