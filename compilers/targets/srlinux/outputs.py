"""JSON of SR Linux, whose keys may begin with the names of YANG modules."""

from __future__ import annotations

from typing import Any

from compilers.readers.devices.neighbour_facts import mapping


def bare(value: object) -> dict[str, Any]:
    """A mapping with keys without the names of modules, as `interface` for
    `srl_nokia…:interface`.
    """
    return {str(key).rpartition(":")[2]: inner for key, inner in mapping(value).items()}
