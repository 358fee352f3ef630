"""Reader of the neighbours of Cisco NX-OS, from `show lldp neighbors [detail]` as text or JSON.

The forms are those of ntc-templates' test data and of Cisco's NX-API: local ports are short, such
as Eth1/1, and a long name has a line of its own. `check wiring` reads the outputs by `FORM`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    NeighbourForm,
    NeighbourRow,
    NeighbourSighting,
    NeighbourTable,
    OtherOutput,
    as_mapping,
    nonempty,
    seen_rows,
)
from compilers.targets.nxos.outputs import rows

OUTPUT_NAME = "the output of show lldp neighbors [detail], or | json of it, of NX-OS, a file a node"
"""The outputs that can be read, as messages name them."""
TABLES = ("nbor", "nbor_detail")
"""The tables of the JSON, without and with `detail`."""
HEADER = re.compile(r"Device ID +Local Intf +Hold-time +Capability +Port ID")
"""`Device ID            Local Intf      Hold-time  Capability  Port ID`, in the table."""
ROW = re.compile(
    r"(?P<name>\S.*?)?\s+(?P<local_port>\S+)\s+\d+\s+(?:[A-Z]{1,8}\s+)?(?P<port>\S+)\s*"
)
"""`spine.example   Eth1/1          120        BR          Ethernet7`, in the table; a long name is
on the line above."""
DETAIL_START = re.compile(r"^Local Port id: ", re.M)
"""`Local Port id: Eth1/1`, in detail only."""
DETAIL_LINE = re.compile(
    r"(?P<key>Chassis id|Port id|Local Port id|Port Description|System Name|Management Address)"
    r": *(?P<value>.*?)\s*"
)
"""`System Name: spine.example`, in detail."""
PLACEHOLDERS = {"null", "not advertised"}
"""The words that stand for no value."""
XML = OtherOutput(
    re.compile(r"<nf:rpc-reply|<__readonly__>"), "XML of NX-OS", "show lldp neighbors | json"
)
"""An output that is refused, with the command to use."""


def fits(source: NeighbourTable) -> bool:
    """Whether a source is an LLDP neighbour table of NX-OS, as text or JSON."""
    if source.data is not None:
        return any(f"TABLE_{table}" in as_mapping(source.data) for table in TABLES)
    output = source.output
    return bool(HEADER.search(output) or DETAIL_START.search(output))


def read(source: NeighbourTable) -> Iterator[NeighbourSighting]:
    """The neighbours that the table has."""
    if source.data is not None:
        neighbour_rows = _json_rows(source)
    elif DETAIL_START.search(source.output):
        neighbour_rows = _text_detail_rows(source.lines)
    else:
        neighbour_rows = _text_rows(source)
    return seen_rows(source, neighbour_rows)


def _json_rows(source: NeighbourTable) -> Iterator[NeighbourRow]:
    """The rows of the JSON, with and without `detail`."""
    for table in TABLES:
        for row in rows(source.data, table):
            names = _without_placeholders(
                row.get("sys_name"), row.get("chassis_id"), row.get("mgmt_addr")
            )
            ports = _without_placeholders(row.get("port_id"), row.get("port_desc"))
            yield nonempty(row.get("l_port_id")), names, ports


def _without_placeholders(*values: object) -> tuple[str, ...]:
    """The texts among the values, without the words that stand for no value."""
    return tuple(text for text in nonempty(*values) if text not in PLACEHOLDERS)


def _text_rows(source: NeighbourTable) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors`; a long name has a line of its own above its row.

    Raises:
        InputError: no row follows such a name.
    """
    lines = source.lines
    header = next(index for index, line in enumerate(lines) if HEADER.search(line))
    name = ""  # on the line above its row
    # Lines count from 1 in messages. The empty line ends a name without a row.
    for number, line in enumerate([*lines[header + 1 :], ""], header + 2):
        if line.startswith("Total entries"):
            return
        row = ROW.fullmatch(line)
        if name and (not row or row["name"]):
            raise source.wrong("five columns", repr(name), "collect it again", number - 1)
        if row:
            yield nonempty(row["local_port"]), nonempty(row["name"] or name), nonempty(row["port"])
        name = "" if row else line.strip()


def _text_detail_rows(lines: list[str]) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors detail`, a block each that begins with `Chassis id`."""
    block: dict[str, str] = {}
    end = "Chassis id: "  # as if another block began, so that the last one is yielded
    for line in [*lines, end]:
        if not (detail := DETAIL_LINE.fullmatch(line)):
            continue
        key, value = detail["key"], detail["value"]
        if key == "Chassis id":
            if block:
                name_keys = ("System Name", "Chassis id", "Management Address")
                names = (block.get(name_key) for name_key in name_keys)
                ports = _without_placeholders(block.get("Port id"), block.get("Port Description"))
                yield nonempty(block.get("Local Port id")), _without_placeholders(*names), ports
            block = {}
        block.setdefault(key, value)


FORM = NeighbourForm("nxos", OUTPUT_NAME, fits, read, not_read=(XML,))
"""The form of these outputs, which is `Target.neighbours` of target nxos."""
