"""Variables of templates: the fields of a dataclass, and the facts that every template has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FABRIC_FACTS = frozenset({"fabric", "vars"})
SWITCH_FACTS = FABRIC_FACTS | {"facts"}
"""The variables that every template of a switch has besides (`compilers.targets.node_facts`);
vars: the user's own."""


class UserVariables(dict[str, Any]):
    """`vars` of a template: the user's own variables, of fabric, group and node."""


def shown(values: DataclassInstance) -> dict[str, Any]:
    """The variables of a template by name."""
    return {field.name: getattr(values, field.name) for field in fields(values)}


def names_by_file(files: Mapping[str, type], whole_fabric: bool) -> dict[str, frozenset[str]]:
    """The names of the variables of each file's template."""
    facts = FABRIC_FACTS if whole_fabric else SWITCH_FACTS
    return {file: facts | {field.name for field in fields(kind)} for file, kind in files.items()}
