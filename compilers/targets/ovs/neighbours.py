"""Reader of links that an OpenFlow controller has discovered, for `check wiring`.

The form is that of `/v1.0/topology/links` of Ryu's application `rest_topology`. os-ken has no such
application, but `Link.to_dict` of os_ken.topology.switches has the same form.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    NamedEnd,
    NeighbourForm,
    NeighbourSighting,
    NeighbourTable,
    as_list,
    as_mapping,
    nonempty,
)

OUTPUT_NAME = (
    "a JSON list of links with src and dst, each with dpid and port_no (ryu.app.rest_topology, "
    "or Link.to_dict of os-ken)"
)
"""The form of the source, as messages name it."""
LONGEST_ID = 16
"""The most hexadecimal digits of a datapath id."""


def fits(source: NeighbourTable) -> bool:
    """Whether a source is a list of links with a `src` and a `dst` each."""
    entries = as_list(source.data)
    return bool(entries) and all({"src", "dst"} <= set(as_mapping(entry)) for entry in entries)


def read(source: NeighbourTable) -> Iterator[NeighbourSighting]:
    """Both ends of every link; a link is listed once for each direction.

    Raises:
        InputError: an end has no `dpid` or `port_no` in hexadecimal digits.
    """
    for index, entry in enumerate(as_list(source.data)):
        link = as_mapping(entry)
        near, far = _end(link.get("src")), _end(link.get("dst"))
        if near is None or far is None:
            given = f"item {index} without a dpid or port_no in hexadecimal digits"
            raise source.wrong(OUTPUT_NAME, given)
        yield NeighbourSighting(near, far)


def _end(value: object) -> NamedEnd | None:
    """An end of a link; None: a number is missing or malformed."""
    fields = as_mapping(value)
    dpid, port = (_hexadecimal(fields.get(key)) for key in ("dpid", "port_no"))
    if dpid is None or port is None:
        return None
    return NamedEnd((f"dpid:{dpid:#x}",), nonempty(f"#{port}", fields.get("name")))


def _hexadecimal(value: object) -> int | None:
    """The number of a text of at most `LONGEST_ID` hexadecimal digits; None for other values."""
    if not isinstance(value, str) or len(value) > LONGEST_ID:
        return None
    try:
        return int(value, 16)
    except ValueError:
        return None


FORM = NeighbourForm("openflow", OUTPUT_NAME, fits, read, of_one_node=False)
"""The form of these outputs, which is `Target.neighbours` of target ovs."""
