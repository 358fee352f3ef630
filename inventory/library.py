"""The node types that come with polarfab, by name: the files of `inventory/types`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from inventory.document_errors import validate
from inventory.model import NodeType
from inventory.yamlfile import read

TYPES = Path(__file__).with_name("types")


@cache
def library_names() -> tuple[str, ...]:
    """The names of the shipped types, in order."""
    return tuple(sorted(file.stem for file in TYPES.glob("*.yaml")))


@cache
def library_type(name: str) -> NodeType:
    """A shipped type by one of `library_names()`."""
    return validate(NodeType, read(TYPES / f"{name}.yaml"))
