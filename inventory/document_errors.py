"""Validate documents against pydantic's models, and report mistakes in the words of the file.

The readers of inventories and of fabric specs call it with a YAML file (`inventory.yamlfile`) and
its model. `validate` raises all mistakes of a document; `value_and_findings` returns them.
`value_or_none` and `well_formed` give the well-formed parts of a document that has mistakes, so
that checks between values can still run on these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from inventory.problems import Finding, InputError, KeyPath, did_you_mean, nearest, shown
from inventory.yamlfile import Document

M = TypeVar("M", bound=BaseModel)
"""A model of a document or of a part of it."""
Detail = Mapping[str, Any]
"""A mistake as pydantic describes it: `type`, `loc`, `msg`, `input`, and `ctx` for some types."""
MOST_DIGITS = 40
"""The most digits of a number that a message repeats."""
DIGITS = re.compile(r"-?[0-9]+")
"""A whole number, also with leading zeros."""
MEGABITS = 1000
"""Mbit/s in a Gbit/s."""
GIGABITS = re.compile(r"([0-9]+) ?(?:G|GE|GbE|Gbps|Gb/s|Gbit/s)", re.IGNORECASE)
"""A speed with its unit, as people write it: `100G` or `100 Gbit/s`."""


def validate(model: type[M], document: Document) -> M:
    """Read a document as a value of a model.

    Raises:
        InputError: the document has mistakes; all of them.
    """
    value, findings = value_and_findings(model, document.data)
    if value is None:
        raise InputError(document.report(findings))
    return value


def value_and_findings(
    model: type[M], data: Mapping[str, Any], context: Mapping[str, Any] | None = None
) -> tuple[M | None, list[Finding]]:
    """Read a document's data as a value of a model, and collect its mistakes.

    Args:
        model: the model.
        data: the data.
        context: passed to validators: the `folder` of files that the document names.

    Returns:
        The value, or None if there are mistakes; and the mistakes.
    """
    try:
        return model.model_validate(data, context=context), []
    except ValidationError as error:
        return None, _findings(model, data, error)


def value_or_none(
    model: type[M], value: object, context: Mapping[str, Any] | None = None
) -> M | None:
    """Read a part of a document as a value of a model; None if it has mistakes."""
    try:
        return model.model_validate(value, context=context)
    except ValidationError:
        return None


def well_formed(
    model: type[M], value: object, context: Mapping[str, Any] | None = None
) -> M | None:
    """Read a mapping as a value of a model, with the defaults for keys that have mistakes.

    Returns:
        The value; None if there is no mapping, or a required key has a mistake.
    """
    try:
        return model.model_validate(value, context=context)
    except ValidationError as error:
        wrong = {detail["loc"][0] for detail in error.errors(include_url=False) if detail["loc"]}
    if not wrong or not isinstance(value, dict):
        return value_or_none(model, {}, context) if wrong else None
    sound_items = {key: item for key, item in value.items() if key not in wrong}
    return value_or_none(model, sound_items, context)


def _findings(
    model: type[BaseModel], data: Mapping[str, Any], error: ValidationError
) -> list[Finding]:
    """The mistakes of a document in the words of its format.

    Args:
        model: the model of the document.
        data: the data of the document.
        error: the mistakes as pydantic reports them.
    """
    details = [(_path(detail["loc"]), detail) for detail in error.errors(include_url=False)]
    intended = _intended_keys(model, data, details)
    misspelt = {(*path[:-1], key) for path, key in intended.items()}
    findings = []
    for path, detail in details:
        if detail["type"] == "refused_rows":
            findings += _row_findings(path, detail["ctx"])
        elif detail["type"] == "extra_forbidden":
            findings.append(_unknown_key(model, path, intended[path]))
        elif detail["type"] == "missing":
            if path not in misspelt:  # the unknown key is reported already
                findings.append(
                    Finding(path, f"the key {path[-1]}", "nothing", f"add `{path[-1]}: …`")
                )
        elif not _lacks_wrong_items(detail):
            findings.append(_wrong_value(model, path, detail))
    return findings


def _intended_keys(
    model: type[BaseModel], data: Mapping[str, Any], details: Iterable[tuple[KeyPath, Detail]]
) -> dict[KeyPath, str]:
    """By the path of each unknown key, the most similar known key; "" for none."""
    intended = {}
    for path, detail in details:
        if detail["type"] == "extra_forbidden":
            present = _value_at(data, path[:-1])
            unused = [key for key in _keys_at(model, path[:-1]) if key not in present]
            intended[path] = nearest(str(path[-1]), unused)
    return intended


def _lacks_wrong_items(detail: Detail) -> bool:
    """Whether a list counts as too short because some of its items are wrong.

    Other details report these items.
    """
    if detail["type"] != "too_short" or not isinstance(detail["input"], list | tuple | dict):
        return False
    return len(detail["input"]) >= int(detail["ctx"]["min_length"])


def _row_findings(path: KeyPath, context: Mapping[str, Any]) -> list[Finding]:
    """The mistakes in rows of a file that the value at a path names."""
    return [
        Finding(path, required, given, todo, row=(context["file"], line))
        for line, required, given, todo in context["rows"]
    ]


def _path(loc: Iterable[str | int]) -> KeyPath:
    """The path of a value, from pydantic's location."""
    return tuple(part for part in loc if part != "[key]")


def _value_at(data: Any, path: KeyPath) -> Any:
    """The value at a path."""
    for part in path:
        data = data[part]
    return data


def _unknown_key(model: type[BaseModel], path: KeyPath, intended: str) -> Finding:
    """The finding of an unknown key.

    Args:
        model: the model of the document.
        path: the path of the key.
        intended: the most similar known key; "" for none.
    """
    keys = ", ".join(_keys_at(model, path[:-1]))
    todo = f"did you mean {intended}?" if intended else f"remove it; the keys here are {keys}"
    return Finding(path, "a known key", shown(path[-1]), todo)


def _wrong_value(model: type[BaseModel], path: KeyPath, detail: Detail) -> Finding:
    """The finding of a value that the document has and that is wrong."""
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    actual, todo = shown(value), ""
    if kind == "refused":
        required, todo = context["required"], context["todo"]
    elif kind == "literal_error":
        words = re.findall(r"'([^']*)'", context["expected"])
        required = f"one of {', '.join(words)}"
        todo = did_you_mean(value, words) if isinstance(value, str) else ""
    elif kind == "int_type" and isinstance(value, str) and DIGITS.fullmatch(value):
        required = f"a whole number of at most {MOST_DIGITS} digits"
        if len(value) <= MOST_DIGITS:
            required, actual = "a whole number", f"the text {value!r}"
            todo = "write it without quotes and leading zeros"
    elif kind in ("int_type", "less_than_equal") and path[-1:] == ("speed",):
        return _wrong_speed(path, detail)
    elif kind in ("model_type", "model_attributes_type"):
        required = f"a mapping with the keys {', '.join(_keys_at(model, path))}"
        todo = "" if value is not None else "fill it in or remove it"
    elif kind in REQUIRED:
        required = REQUIRED[kind](context)
    else:
        required = detail["msg"]
    return Finding(path, required, actual, todo)


def _wrong_speed(path: KeyPath, detail: Detail) -> Finding:
    """The finding of a speed with a unit, or of a speed that is too large, as in Mbit/s."""
    value, todo = detail["input"], ""
    if detail["type"] == "int_type":
        required = "a whole number of Gbit/s"
        speed = GIGABITS.fullmatch(value) if isinstance(value, str) else None
        if speed:
            todo = f"write {speed[1]}"
    else:
        largest = detail["ctx"]["le"]
        required = f"a speed in Gbit/s of at most {largest:,}"
        gigabits, megabits = divmod(value, MEGABITS)
        if megabits == 0 and gigabits <= largest:
            todo = f"write {gigabits}"
    return Finding(path, required, shown(value), todo)


REQUIRED: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "int_type": lambda _: "a whole number",
    "string_type": lambda _: "a text",
    "bool_parsing": lambda _: "true or false",
    "bool_type": lambda _: "true or false",
    "path_type": lambda _: "a file name",
    "tuple_type": lambda _: "a list",
    "dict_type": lambda _: "a mapping (key: value)",
    "too_short": lambda context: f"{context['min_length']} or more",
    "too_long": lambda context: f"at most {context['max_length']} of them",
    "greater_than_equal": lambda context: f"at least {context['ge']:,}",
    "less_than_equal": lambda context: f"at most {context['le']:,}",
}
"""By the type of a mistake, a function that gives the required value from its context."""


def _keys_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The keys of the model at a path within a model."""
    annotation: Any = model
    for step in path:
        annotation = _without_optional(annotation)
        if get_origin(annotation) is None:
            annotation = annotation.model_fields[step].annotation
        else:  # dict[name, model] or tuple[model, ...]
            annotation = get_args(annotation)[1 if get_origin(annotation) is dict else 0]
    return list(_without_optional(annotation).model_fields)


def _without_optional(annotation: Any) -> Any:
    """An annotation without `| None` and `Annotated`: X for `X | None` and `Annotated[X, …]`."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        annotation = get_args(annotation)[0]
    return annotation
