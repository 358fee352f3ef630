"""Every kind of event: its JSON and its lines."""

import ast
import json
import string
from pathlib import Path

import pytest

from controller.switches.events import KINDS, ActionTaken

ROOT = Path(__file__).parents[3]
COUNTED = {"connected", "programmed", "complete"}
"""Kinds without a line: the reporter counts them."""
VALUES = {"text": "{some} text", "integer": 7, "number": 1.5, "integer or null": None}
VALUES |= {"number or null": None, "list of text": ("here", "there")}
SHIFT = [{"egress_class": 1, "port": "eth0", "parts": 2}]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def event(request):
    values = (VALUES.get(form, SHIFT) for form in request.param.types.values())
    return request.param(*values, at=1e9 + 0.1234)


def test_names_are_unique():
    names = [kind.name for kind in KINDS]
    assert len(names) == len(set(names))


def test_an_event_is_json_with_all_its_fields(event):
    found = json.loads(json.dumps(event.record()))
    assert list(found) == ["event", "at", "node", "text", *event.type.types]
    assert (found["event"], found["at"]) == (event.kind, 1e9 + 0.123)
    assert (found["node"], found["text"]) == (event.node, event.text)


def test_an_event_has_its_line(event):
    if event.kind in COUNTED:
        assert event.type.line == ""
        return
    assert str(event)
    assert "\n" not in str(event)
    named = {name for _, name, _, _ in string.Formatter().parse(event.type.line) if name}
    assert named <= {"node", "text"}


def test_whoever_reports_an_event_gives_all_its_fields():
    """No type says so: a call that lacks one would end in an internal error, perhaps in a year."""
    names = _named()
    calls = [
        (file, call, name)
        for room in ("controller", "extensions")
        for file in (ROOT / room).rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and (name := _last_name(call.func)) in names
    ]
    assert {name for _, _, name in calls} > {"LinkDown", "SwitchDrained", "StoreChanged"}
    for file, call, name in calls:
        required = len(names[name].types)
        given = len(call.args) + len(call.keywords)
        starred = any(isinstance(arg, ast.Starred) for arg in call.args)
        assert given <= required if starred else given == required, (file, call.lineno)


def _last_name(function):
    """`LinkDown` of `LinkDown` and of `events.LinkDown`."""
    return getattr(function, "attr", getattr(function, "id", ""))


def _named():
    from controller.switches import events

    return {name: kind for name, kind in vars(events).items() if isinstance(kind, events.Kind)}


def test_the_line_of_a_change_that_no_client_requested_has_no_brackets() -> None:
    """It was `reload  ( ): asked`."""
    assert str(ActionTaken("on the machine", "", "", "reload", "", "asked")) == (
        "on the machine: reload: asked"
    )
