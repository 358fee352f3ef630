"""Validation of documents: a model value, or mistakes in the words of the file's format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from inventory.problems import Finding, InputError, KeyPath, did_you_mean, nearest, shown
from inventory.yamlfile import Document

M = TypeVar("M", bound=BaseModel)
MOST_DIGITS = 40
DIGITS = re.compile(r"-?[0-9]+")
MEGABITS = 1000
"""Mbit/s in a Gbit/s."""
GIGABITS = re.compile(r"([0-9]+) ?(?:G|GE|GbE|Gbps|Gb/s|Gbit/s)", re.IGNORECASE)


def validate(model: type[M], document: Document) -> M:
    """The document as a value of `model`.

    Raises:
        InputError: every mistake in it.
    """
    value, findings = checked(model, document.data)
    if value is None:
        raise InputError(document.report(findings))
    return value


def checked(
    model: type[M], data: Mapping[str, Any], context: Mapping[str, Any] | None = None
) -> tuple[M | None, list[Finding]]:
    """A document's data as a value of `model`, or None and every mistake in it.

    context: what validators need besides: the `folder` of files that the document names.
    """
    try:
        return model.model_validate(data, context=context), []
    except ValidationError as error:
        return None, _findings(model, data, error)


def part(model: type[M], value: object, context: Mapping[str, Any] | None = None) -> M | None:
    """A part of a document as a value of `model`; None where it is wrong (`checked` says why)."""
    try:
        return model.model_validate(value, context=context)
    except ValidationError:
        return None


def sound(model: type[M], value: object, context: Mapping[str, Any] | None = None) -> M | None:
    """The well-formed keys of a mapping as a value of `model`, the others at their defaults.

    None where it is no mapping, or where a key that must be there is wrong.
    """
    try:
        return model.model_validate(value, context=context)
    except ValidationError as error:
        wrong = {e["loc"][0] for e in error.errors(include_url=False) if e["loc"]}
        left = {k: v for k, v in value.items() if k not in wrong} if isinstance(value, dict) else {}
        return part(model, left, context) if wrong else None


def _findings(
    model: type[BaseModel], data: Mapping[str, Any], error: ValidationError
) -> list[Finding]:
    details = [(_path(detail["loc"]), detail) for detail in error.errors(include_url=False)]
    meant = {}
    for path, detail in details:
        if detail["type"] == "extra_forbidden":
            present = _at(data, path[:-1])
            unused = [word for word in _keys(model, path[:-1]) if word not in present]
            meant[path] = nearest(str(path[-1]), unused)
    mistyped = {(*path[:-1], word) for path, word in meant.items()}
    findings = []
    for path, detail in details:
        listed = isinstance(detail["input"], list | tuple | dict)
        if (
            detail["type"] == "too_short"
            and listed
            and len(detail["input"]) >= detail["ctx"]["min_length"]
        ):
            continue  # its items are wrong, and said to be
        if detail["type"] == "refused_rows":
            file = detail["ctx"]["file"]
            findings += [
                Finding(path, required, given, todo, row=(file, line))
                for line, required, given, todo in detail["ctx"]["rows"]
            ]
            continue
        if detail["type"] == "extra_forbidden":
            required, given, todo = _unknown(model, path, meant[path])
        elif detail["type"] == "missing":
            if path in mistyped:
                continue
            required, given, todo = f"the key {path[-1]}", "nothing", f"add `{path[-1]}: …`"
        else:
            required, given, todo = _wrong(model, path, detail)
        findings.append(Finding(path, required, given, todo))
    return findings


def _path(loc: Iterable[str | int]) -> KeyPath:
    return tuple(part for part in loc if part != "[key]")


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


def _unknown(model: type[BaseModel], path: KeyPath, meant: str) -> tuple[str, str, str]:
    keys = ", ".join(_keys(model, path[:-1]))
    todo = f"did you mean {meant}?" if meant else f"remove it; the keys here are {keys}"
    return "a known key", shown(path[-1]), todo


def _wrong(
    model: type[BaseModel], path: KeyPath, detail: Mapping[str, Any]
) -> tuple[str, str, str]:
    """Required, given and todo of a value that is there and wrong."""
    context, value = detail.get("ctx", {}), detail["input"]
    if detail["type"] == "refused":
        return context["required"], shown(value), context["todo"]
    if detail["type"] == "literal_error":
        words = re.findall(r"'([^']*)'", context["expected"])
        todo = did_you_mean(value, words) if isinstance(value, str) else ""
        return f"one of {', '.join(words)}", shown(value), todo
    if detail["type"] == "int_type" and isinstance(value, str) and DIGITS.fullmatch(value):
        if len(value) > MOST_DIGITS:
            return f"a whole number of at most {MOST_DIGITS} digits", shown(value), ""
        return "a whole number", f"the text {value!r}", "write it without quotes and leading zeros"
    if detail["type"] == "int_type" and path[-1:] == ("speed",):
        unit = GIGABITS.fullmatch(value) if isinstance(value, str) else None
        return "a whole number of Gbit/s", shown(value), f"write {unit[1]}" if unit else ""
    if detail["type"] == "less_than_equal" and path[-1:] == ("speed",):
        speed, rest = divmod(value, MEGABITS)
        todo = f"write {speed}" if not rest and speed <= context["le"] else ""
        return f"a speed in Gbit/s of at most {context['le']:,}", shown(value), todo
    if detail["type"] in ("model_type", "model_attributes_type"):
        keys = ", ".join(_keys(model, path))
        return (
            f"a mapping with the keys {keys}",
            shown(value),
            "" if value is not None else "fill it in or remove it",
        )
    required = REQUIRED.get(detail["type"])
    return required(context) if required else detail["msg"], shown(value), ""


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


def _keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The keys of the model at `path` within `model`."""
    annotation: Any = model
    for step in path:
        annotation = _bare(annotation)
        if get_origin(annotation) is None:
            annotation = annotation.model_fields[step].annotation
        else:  # dict[name, model] or tuple[model, ...]
            annotation = get_args(annotation)[1 if get_origin(annotation) is dict else 0]
    return list(_bare(annotation).model_fields)


def _bare(annotation: Any) -> Any:
    """X for `X | None` and for `Annotated[X, …]`."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        annotation = get_args(annotation)[0]
    return annotation
