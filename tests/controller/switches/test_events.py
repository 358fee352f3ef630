"""Every kind of event: its JSON, its lines, and the table of them in the docs."""

import json
import string
import types
import typing
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from controller.management import action_log
from controller.switches import events
from extensions.load_balancing import adaptation

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "events.md"
KINDS = [
    kind
    for module in (events, action_log, adaptation)
    for kind in vars(module).values()
    if isinstance(kind, type)
    and kind.__module__ == module.__name__
    and issubclass(kind, events.Event)
    and hasattr(kind, "kind")
]
COUNTED = {"connected", "programmed", "complete"}
"""Kinds without a line: the reporter counts them."""
WORDS = {str: "text", int: "integer", float: "number", type(None): "null"}


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


def in_words(kind):
    """A type as the docs call it."""
    if typing.get_origin(kind) is typing.Literal:
        return "text"
    if typing.get_origin(kind) is types.UnionType:
        return " or ".join(map(in_words, typing.get_args(kind)))
    if typing.get_origin(kind) is tuple:
        return f"list of {in_words(typing.get_args(kind)[0])}"
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind).items()
        return "{" + ", ".join(f"`{name}` {in_words(hint)}" for name, hint in hints) + "}"
    return WORDS[kind]


def row(kind):
    """A line of the table."""
    told = ", ".join(f"`{name}` {in_words(hint)}" for name, hint in own_fields(kind))
    return f"| `{kind.kind}` | {' '.join(kind.__doc__.split())} | {told} |"


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


def test_the_docs_have_every_event():
    """Put what is missing there by hand: the assertion shows the lines."""
    _, _, rest = PAGE.read_text().partition(
        "| event | what has happened | fields |\n|---|---|---|\n"
    )
    table = rest.partition("\n\n")[0].splitlines()
    assert table == [row(kind) for kind in KINDS]
