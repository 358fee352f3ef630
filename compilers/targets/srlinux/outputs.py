"""Mappings in JSON of SR Linux, whose keys may begin with the names of YANG modules.

The readers of neighbours and routes call `without_modules`.
"""

from __future__ import annotations

from typing import Any

from compilers.readers.devices.neighbour_facts import as_mapping


def without_modules(value: object) -> dict[str, Any]:
    """A mapping whose keys have no names of YANG modules; {} for any other value.

    >>> without_modules({"srl_nokia-interfaces:interface": []})
    {'interface': []}
    """
    return {str(key).rpartition(":")[2]: inner for key, inner in as_mapping(value).items()}
