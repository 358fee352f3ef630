"""Templates that are not the package's run in Jinja2's sandbox."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints, is_typeddict

import pytest

from compilers.tables.build import Build
from compilers.targets.node_facts import FabricFacts, NodeFacts
from compilers.targets.target_lookup import target, target_names
from inventory.problems import InputError
from templates import environment
from tests.compilers.fabrics import polarfly_build

BUILD = replace(polarfly_build(2), identity="0123456789abcdef")
ESCAPES = {
    "a shell": "{{ cycler.__init__.__globals__.os.popen('echo ran').read() }}",
    "classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "a format": "{{ '{0.__class__.__mro__}'.format(facts) }}",
    "a global of a filter": "{{ (facts|attr('__class__')).__mro__ }}",
    "a change": "{{ facts.links.append(1) or vars.update({'a': 1}) }}",
    "a long range": "{% for i in range(10**9) %}{% endfor %}",
    "a column of routes": "{{ ipv4_onward.prefix.tofile('ran') }}",
    "a column by its name": "{{ (ipv4_routes|attr('_tail')).tofile('ran') }}",
    "texts of prefixes": "{{ ipv4_routes.prefixes.line_starts('').tofile('ran') }}",
    "the build": "{{ fabric.build.wiring.far.tofile('ran') }}",
}
PLAIN = {str, int, bool, type(None), Any, ..., re.Pattern}


def own(root: Path, text: str) -> Path:
    (root / "own/frr").mkdir(parents=True)
    (root / "own/frr/more.txt.j2").write_text(text)
    return root / "own"


def refused(root: Path, folder: Path) -> str:
    with pytest.raises(InputError) as error:
        target("frr").render(BUILD, root / "out", folder)
    return str(error.value)


@pytest.mark.parametrize("what", ESCAPES)
def test_nothing_leads_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(tmp_path, own(tmp_path, ESCAPES[what]))
    assert said.count("own/frr/more.txt.j2") == 1
    assert "ran" not in said.replace("range", "").split("given")[0]
    assert not (tmp_path / "ran").exists()


def has_fields(kind: Any) -> bool:
    """Whether a type is a dataclass, a named tuple or a dict whose keys are named."""
    return is_dataclass(kind) or hasattr(kind, "_fields") or is_typeddict(kind)


def seen(kind: Any) -> Iterator[Any]:
    """The types of what a template in the sandbox reaches from a value of a type."""
    kind = kind.__value__ if hasattr(kind, "__value__") else kind
    if get_args(kind):
        yield from get_args(kind)
    elif has_fields(kind):
        yield from (value for name, value in get_type_hints(kind).items() if name[0] != "_")
        members = [] if is_typeddict(kind) else inspect.getmembers(kind)
        for name, member in members:
            function = member.fget if isinstance(member, property) else member
            if inspect.isfunction(function) and name[0] != "_":
                hints = get_type_hints(function)
                made = hints.pop("return")
                if Build not in hints.values():  # a template has none to call it with
                    yield made


def test_values_are_plain_down_to_the_last() -> None:
    """No array, path or build: the methods of those write files."""
    kinds = {kind for name in target_names() for kind in target(name).files.values()}
    left, reached = [NodeFacts, FabricFacts, *kinds], set()
    while left:
        kind = left.pop()
        if kind not in reached:
            reached.add(kind)
            left += seen(kind)
    leaves = {kind for kind in reached if not get_args(kind) and not has_fields(kind)}
    assert leaves <= PLAIN


def test_no_file_outside_the_folder_is_included(tmp_path: Path) -> None:
    (tmp_path / "secret.j2").write_text("root:x:0")
    folder = own(tmp_path, "{% include '../secret.j2' %}")
    assert "more.txt.j2:1: required a template that is there" in refused(tmp_path, folder)
    (folder / "frr/more.txt.j2").write_text("{% include ['frr/no.j2', '../secret' ~ '.j2'] %}")
    assert "root:x:0" not in refused(tmp_path, folder)


def test_templates_of_other_packages_are_in_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert environment(None, {"other": tmp_path / "other"}).sandboxed
    assert not environment(None, {}).sandboxed


def test_a_template_nested_too_deep(tmp_path: Path) -> None:
    said = refused(tmp_path, own(tmp_path, "{{ " + "(" * 99999 + " }}"))
    assert "more.txt.j2: required a Jinja2 template" in said  # without a line
