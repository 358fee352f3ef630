"""The node types that come with polarfab, from the files of `inventory/types`.

`inventory_file` adds those that an inventory uses to its own types. The names of their ports in a
system are in the system's folder of templates, in `ports.yaml`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from inventory.document_errors import validate
from inventory.model import NodeType
from inventory.yamlfile import read

TYPES = Path(__file__).with_name("types")
"""The folder of the node types, a file each."""
SYSTEMS = Path(__file__).parents[1] / "templates"
"""The folder of the systems' templates, a folder each."""


@cache
def library_names() -> tuple[str, ...]:
    """The names of the shipped types, in order."""
    return tuple(sorted(file.stem for file in TYPES.glob("*.yaml")))


@cache
def library_type(name: str) -> NodeType:
    """A shipped type by its name, one of `library_names()`."""
    node_type = validate(NodeType, read(TYPES / f"{name}.yaml"))
    names = {system: ports[name] for system, ports in _port_names().items() if name in ports}
    return node_type.model_copy(update={"names": names})


@cache
def _port_names() -> dict[str, dict[str, str]]:
    """By system and type, the pattern of the system's names of ports."""
    files = sorted(SYSTEMS.glob("*/ports.yaml"))
    return {file.parent.name: dict(read(file).data) for file in files}
