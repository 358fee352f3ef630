"""The JSON schema of a model of YAML files, for editors.

`compilers.spec.fabric_file.schema` returns it. It has the checks of single values, but not the
checks between values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from inventory.field_docs import with_field_docs
from inventory.values import Model

BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
"""JSON Schema's words for bounds, by those of pydantic, which it writes if a value has a
validator."""


def schema_of(model: type[BaseModel]) -> dict[str, object]:
    """The JSON schema of a model, with the docstrings of its fields as their descriptions."""
    models = {subclass.__name__: subclass for subclass in _subclasses(Model)}
    for subclass in models.values():  # pydantic 2.7 writes defaults of built models only
        subclass.model_rebuild()
    schema = with_field_docs(_with_bounds(model.model_json_schema()), models)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _subclasses(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models that extend a model, directly or indirectly."""
    for subclass in model.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _with_bounds(value: Any) -> Any:
    """A schema with JSON Schema's own words for bounds."""
    if isinstance(value, list):
        return [_with_bounds(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {BOUNDS.get(word, word): _with_bounds(item) for word, item in value.items()}
