"""Every kind of event: its JSON and its lines."""

import json
import string
import types
import typing
from dataclasses import fields, is_dataclass

import pytest

from manual.reference import event_kinds

KINDS = list(event_kinds())
COUNTED = {"connected", "programmed", "complete"}
"""Kinds without a line: the reporter counts them."""


def own_fields(kind):
    return [(one.name, typing.get_type_hints(kind)[one.name]) for one in fields(kind)][1:]


def value(kind):
    """Something of this type that a text can be recognised by."""
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)[0]
    if typing.get_origin(kind) is types.UnionType:
        return value(typing.get_args(kind)[0])
    if typing.get_origin(kind) is tuple:
        return tuple(value(one) for one in typing.get_args(kind) if one is not ...)
    if is_dataclass(kind):
        return kind(*(value(hint) for hint in typing.get_type_hints(kind).values()))
    return {str: "{some} text", int: 7, float: 1.5}[kind]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.kind)
def event(request):
    kind = request.param
    return kind(*(value(hint) for _, hint in own_fields(kind)), at=1e9 + 0.1234)


def test_names_are_unique():
    names = [kind.kind for kind in KINDS]
    assert len(names) == len(set(names))


def test_an_event_is_json_with_all_its_fields(event):
    found = json.loads(json.dumps(event.record()))
    assert list(found) == ["event", "at", "node", "text", *(n for n, _ in own_fields(type(event)))]
    assert (found["event"], found["at"]) == (event.kind, 1e9 + 0.123)
    assert (found["node"], found["text"]) == (event.node, event.text)


def test_an_event_has_its_line(event):
    if event.kind in COUNTED:
        assert event.line == ""
        return
    assert str(event)
    assert "\n" not in str(event)
    named = {name for _, name, _, _ in string.Formatter().parse(event.line) if name}
    assert named <= {"node", "text"}
