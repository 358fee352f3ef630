"""Mappings in JSON of SR Linux, whose keys may begin with the names of YANG modules.

The readers of neighbours and routes call `bare`.
"""

from __future__ import annotations

from typing import Any

from compilers.readers.devices.neighbour_facts import as_mapping


def bare(value: object) -> dict[str, Any]:
    """A mapping whose keys have no names of modules: `interface` for `srl_nokia…:interface`."""
    return {str(key).rpartition(":")[2]: inner for key, inner in as_mapping(value).items()}
