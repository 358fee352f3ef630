"""The node types that come with polarfab, by name: the files of `inventory/types`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from inventory.model import NodeType
from inventory.validate import validate
from inventory.yamlfile import read


@cache
def library_names() -> tuple[str, ...]:
    """The names of the shipped types, in order."""
    folder = files("inventory") / "types"
    return tuple(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".yaml")))


@cache
def library_type(name: str) -> NodeType:
    """A shipped type by one of `library_names()`."""
    return validate(NodeType, read(str(files("inventory") / "types" / f"{name}.yaml")))
