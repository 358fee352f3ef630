"""The node types that come with polarfab, by name: the files of `inventory/types`.

What a system calls their ports is in its folder of templates, `ports.yaml`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from inventory.document_errors import validate
from inventory.model import NodeType
from inventory.yamlfile import read

TYPES = Path(__file__).with_name("types")
SYSTEMS = Path(__file__).parents[1] / "templates"


@cache
def library_names() -> tuple[str, ...]:
    """The names of the shipped types, in order."""
    return tuple(sorted(file.stem for file in TYPES.glob("*.yaml")))


@cache
def library_type(name: str) -> NodeType:
    """A shipped type by one of `library_names()`."""
    node_type = validate(NodeType, read(TYPES / f"{name}.yaml"))
    names = {system: ports[name] for system, ports in _port_names().items() if name in ports}
    return node_type.model_copy(update={"names": names})


@cache
def _port_names() -> dict[str, dict[str, str]]:
    """By system, what it calls the ports of each type."""
    files = sorted(SYSTEMS.glob("*/ports.yaml"))
    return {file.parent.name: dict(read(file).data) for file in files}
