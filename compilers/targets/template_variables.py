"""Variables of templates: the fields of a dataclass, and the facts that every template has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FACTS = frozenset({"facts", "fabric"})
"""The variables that every template has besides (`compilers.targets.facts`)."""


def shown(values: DataclassInstance) -> dict[str, Any]:
    """The variables of a template by name."""
    return {field.name: getattr(values, field.name) for field in fields(values)}


def names_by_file(files: Mapping[str, type]) -> dict[str, frozenset[str]]:
    """The names of the variables of each file's template."""
    return {file: FACTS | {field.name for field in fields(kind)} for file, kind in files.items()}
