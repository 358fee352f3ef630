"""Links that a controller found: `/v1.0/topology/links` of Ryu's `rest_topology`.

os-ken has no such application. `Link.to_dict` of its os_ken.topology.switches gives the same form.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    End,
    NeighbourTables,
    Seen,
    Source,
    items,
    mapping,
    words,
)

PRINTED_BY = (
    "a JSON list of links with src and dst, each with dpid and port_no (ryu.app.rest_topology, "
    "or Link.to_dict of os-ken)"
)
LONGEST_ID = 16


def fits(source: Source) -> bool:
    """Whether the table looks like this."""
    entries = items(source.data)
    return bool(entries) and all({"src", "dst"} <= set(mapping(entry)) for entry in entries)


def read(source: Source) -> Iterator[Seen]:
    """A fact per link and direction."""
    for i, entry in enumerate(items(source.data)):
        ends = [_end(mapping(entry).get(side)) for side in ("src", "dst")]
        if None in ends:
            raise source.wrong(
                PRINTED_BY, f"item {i} without a dpid or port_no in hexadecimal digits"
            )
        near, far = ends
        if near and far:
            yield Seen(near, far)


def _end(value: object) -> End | None:
    known = mapping(value)
    dpid, port = (_hexadecimal(known.get(word)) for word in ("dpid", "port_no"))
    if dpid is None or port is None:
        return None
    return End((f"dpid:{dpid:#x}",), words(f"#{port}", known.get("name")))


def _hexadecimal(value: object) -> int | None:
    if not isinstance(value, str) or len(value) > LONGEST_ID:
        return None
    try:
        return int(value, 16)
    except ValueError:
        return None


FORM = NeighbourTables("openflow", PRINTED_BY, fits, read, of_one_node=False)
