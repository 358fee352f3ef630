"""Read the docstrings at the fields of models, for JSON schemas and the manual's page of keys.

A model is a pydantic class. The docstring below a field is what users read about the key.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel


def field_docs(kind: type) -> dict[str, str]:
    """By the name of a field, the docstring below it on one line, also of inherited fields."""
    docs = dict[str, str]()
    for base in reversed(kind.__mro__):
        if "__annotations__" in vars(base):
            docs |= _docs_of(base)
    return docs


def _docs_of(kind: type) -> dict[str, str]:
    """The docstrings of the fields that a class itself defines."""
    docs = dict[str, str]()
    statements = _classes_of(kind.__module__)[kind.__qualname__].body
    for statement, following in pairwise(statements):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = " ".join(text.split())
    return docs


@cache
def _classes_of(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module, by their qualified names; each module is parsed once."""
    return dict(_classes_in(ast.parse(inspect.getsource(sys.modules[module])).body, ""))


def _classes_in(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """The classes among statements, also those within classes, with their qualified names."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield prefix + statement.name, statement
            yield from _classes_in(statement.body, f"{prefix}{statement.name}.")


def with_field_docs(
    schema: dict[str, Any], models: Mapping[str, type[BaseModel]]
) -> dict[str, Any]:
    """The schema of a model, with the docstrings of its fields as descriptions.

    Args:
        schema: the schema of one of the models, with the schemas of others in `$defs`.
        models: the models by the titles of their schemas.
    """
    parts = {
        title: _with_descriptions(part, models) for title, part in schema.get("$defs", {}).items()
    }
    if parts:
        schema = {**schema, "$defs": parts}
    return _with_descriptions(schema, models)


def _with_descriptions(
    part: dict[str, Any], models: Mapping[str, type[BaseModel]]
) -> dict[str, Any]:
    """The schema of one model with its fields described."""
    model = models.get(part.get("title", ""))
    if model is None or "properties" not in part:
        return part
    docs = field_docs(model)
    properties = {
        name: {"description": docs[name], **value} if name in docs else value
        for name, value in part["properties"].items()
    }
    return part | {"properties": properties}
