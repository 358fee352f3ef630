"""The names of cables and bundles on labels, by their numbers.

All names of a plane begin with the plane's number, unless the fabric has one plane only.
"""

from __future__ import annotations


def cable_name(number: int, plane: int = 0) -> str:
    """The name of a cable.

    >>> cable_name(12), cable_name(12, plane=2)
    ('C00012', 'P2-C00012')
    """
    return f"{label_prefix(plane)}C{number:05d}"


def bundle_name(number: int, plane: int = 0) -> str:
    """The name of a bundle; "" for number 0, no bundle.

    >>> bundle_name(12), bundle_name(0)
    ('B0012', '')
    """
    return f"{label_prefix(plane)}B{number:04d}" if number else ""


def host_cable_name(vertex: int, host: int, plane: int = 0) -> str:
    """The name of the cable to a host, by the vertex of its switch and its number there.

    >>> host_cable_name(12, 0)
    'H00012-0'
    """
    return f"{label_prefix(plane)}H{vertex:05d}-{host}"


def label_prefix(plane: int) -> str:
    """What the labels of a plane begin with; "" for plane 0, the only one."""
    return f"P{plane}-" if plane else ""
