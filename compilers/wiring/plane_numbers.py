"""Names and numbers that begin with the number of a plane, so that no two planes share them.

The *planes* of a fabric are parallel fabrics of one topology, numbered from 1. Plane 0 stands for
the only plane of a fabric.
"""

from __future__ import annotations


def plane_prefix(plane: int) -> str:
    """Return the prefix of the names of a plane's nodes and racks; "" for 0, the only plane.

    >>> plane_prefix(2)
    'p2-'
    """
    return f"p{plane}-" if plane else ""


def first_datapath_id(plane: int) -> int:
    """Return the datapath id of vertex 0.

    The plane is above the lower 48 bits, which Open vSwitch takes as a MAC address.
    """
    return ((max(plane, 1) - 1) << 48) + 1
