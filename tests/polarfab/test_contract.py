"""The library as a contract: wrong arguments end in documented errors, and in no other."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polarfab
from compilers.entry_points import FUNCTIONS, registered
from compilers.readers.emitted_report import EmittedWrongError
from inventory.problems import InputError
from tests.fuzzing import ten_minutes

DOCUMENTED = (TypeError, ValueError, InputError, EmittedWrongError, polarfab.EngineError)
SPEC = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}
JUNK: tuple[Any, ...] = (
    *(None, True, "no", "", -1, 0, 3, 2**70, 1.5, float("nan"), float("inf"), b"x", object()),
    *([], {}, (), [[]], {1: 2}, ["a", 1], np.int64(3), np.float64(0.5), np.array([1, 2])),
    *(Path("no/such"), "\x00", lambda: None),
)
ELSEWHERE = ("running", "apply", "push", "emulate", "rehearse", "probing", "simulate")
"""Of these only types are tried: they talk to machines, or run for long."""


@cache
def fabric() -> polarfab.Fabric:
    return polarfab.Fabric.from_spec(SPEC).compile()


@dataclass(frozen=True)
class Call:
    """A public function, and arguments that it takes."""

    name: str
    function: Callable[..., object]
    given: dict[str, Any]


def calls(folder: Path) -> Iterator[Call]:
    """Every public function with good values for what it needs."""
    good: dict[str, Any] = {
        **{"spec": SPEC, "folder": str(folder / "out"), "source": 0, "destination": "3"},
        **{"target": "ovs", "clusters": "nucleus", "larger": fabric(), "other": fabric()},
        **{"new": fabric(), "fabric": fabric(), "show": "racks", "form": "svg", "files": []},
        **{"facts": [], "family": "polarfly", "topology": fabric().topology, "radix": 8},
        **{"url": "http://127.0.0.1:1", "fabrics": [fabric()], "old": fabric(), "loads": [0.1]},
    }
    members = inspect.getmembers(polarfab.Fabric, inspect.isroutine)
    found = {name: getattr(fabric(), name) for name, member in members if name[0] != "_"}
    public = {name: getattr(polarfab, name) for name in (*polarfab.__all__, *registered(FUNCTIONS))}
    found |= {name: each for name, each in public.items() if inspect.isfunction(each)}
    for name, function in found.items():
        if not callable(function):
            continue
        needed = {
            p.name: good.get(p.name, "x")
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        }
        if name == "topology":
            needed["q"] = 2
        yield Call(name, function, needed)


def wrong_calls(call: Call) -> Iterator[dict[str, Any]]:
    """The call with one argument of each kind of junk."""
    for name, parameter in inspect.signature(call.function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        for value in JUNK:
            yield {**call.given, name: value}


def tried(call: Call, given: dict[str, Any]) -> str:
    """What is undocumented of what a call ended in; "" for nothing."""
    try:
        found = call.function(**given)
        if call.name == "usable":
            with found:  # type: ignore[attr-defined]
                pass
    except DOCUMENTED:
        return ""
    except Exception as error:
        return f"{call.name}({given!r:.200}): {type(error).__name__}: {error!s:.200}"
    return ""


def test_junk_ends_in_documented_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    every = [
        (call, given)
        for call in calls(tmp_path)
        if call.name not in ELSEWHERE
        for given in wrong_calls(call)
    ]
    assert len(every) > 1500
    chosen = random.Random(1).sample(every, 700)  # noqa: S311
    assert [said for each in chosen if (said := tried(*each))] == []


def test_those_that_talk_to_machines_check_types_first(tmp_path: Path) -> None:
    """No port is opened, no switch asked: a wrong type of any argument is refused at the door."""
    tried = 0
    for call in calls(tmp_path):
        kinds = inspect.signature(call.function).parameters if call.name in ELSEWHERE else {}
        for name, parameter in kinds.items():
            if any(word in str(parameter.annotation) for word in ("Any", "object")):
                continue
            tried += 1
            with pytest.raises(TypeError, match=" is to be "):
                call.function(**{**call.given, name: object()})
    assert tried > 30


@pytest.mark.long
def test_ten_minutes_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One or two arguments of junk."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    every = [
        call for call in calls(tmp_path) if call.name not in ELSEWHERE and [*wrong_calls(call)]
    ]

    def case(chance: random.Random) -> str:
        call = chance.choice(every)
        wrong = [*wrong_calls(call)]
        given = dict(chance.choice(wrong))
        if chance.random() < 0.3:
            other = chance.choice(wrong)
            given |= {name: value for name, value in other.items() if name not in call.given}
        return tried(call, given) or "accepted"

    ten_minutes("library", case)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fabric().render("ovs", "x", unverified="no"),
        lambda: fabric().render("ovs", "x", nodes="0"),
        lambda: fabric().verify(sample="3"),
        lambda: fabric().verify(seed=True),
        lambda: polarfab.cables(fabric(), phases=1.5),
        lambda: polarfab.Fabric.load(b"x"),
        lambda: polarfab.topology(7),
        lambda: polarfab.topology("polarfly", q=2.5),
        lambda: polarfab.emulate("x", unverified="no"),
    ],
)
def test_wrong_types_are_refused_at_the_door(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"\w+: \w+ is to be "):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: polarfab.trees(fabric(), kind="low-dept"),
            "kind: required one of disjoint, .*low",
        ),
        (lambda: fabric().verify(method="wolk"), "method: required one of auto, walk, local"),
        (lambda: polarfab.draw(fabric(), form="png"), "form: required one of svg, html, given png"),
        (lambda: polarfab.chart(fabric(), "rack"), "show: .*given rack.*racks"),
        (lambda: polarfab.draw(fabric().topology, form=""), "form: required one of svg"),
        (
            lambda: polarfab.emulate(fabric(), engine="mininets"),
            "engine: .*given mininets.*mininet",
        ),
        (lambda: polarfab.emulate("x", framework="pox"), "framework: required one of ryu, os-ken"),
    ],
)
def test_words_to_choose_from(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
    with pytest.raises(TypeError, match="kind is to be TreeKind"):
        polarfab.trees(fabric(), kind=1)  # type: ignore[arg-type]


def test_scalars_of_numpy_and_paths_are_taken(tmp_path: Path) -> None:
    assert polarfab.topology("polarfly", q=np.int64(3)).graph.order == 13
    assert fabric().explain(np.int32(0), np.uint8(3))
    saved = fabric().save(tmp_path / "b")
    assert saved.render("frr", tmp_path / "out", unverified=np.bool_(True))
    assert len(polarfab.design(np.int64(8), np.int16(1)))


def test_every_public_function_is_at_the_door(tmp_path: Path) -> None:
    without = [call.name for call in calls(tmp_path) if not hasattr(call.function, "__wrapped__")]
    assert without == []
