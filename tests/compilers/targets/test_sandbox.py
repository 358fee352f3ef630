"""Templates that are not the package's run in Jinja2's sandbox."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compilers.targets.target_lookup import target
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
}


def own(root: Path, text: str) -> Path:
    (root / "own/frr").mkdir(parents=True)
    (root / "own/frr/more.txt.j2").write_text(text)
    return root / "own"


def refused(root: Path, folder: Path) -> str:
    with pytest.raises(InputError) as error:
        target("frr").render(BUILD, root / "out", folder)
    return str(error.value)


@pytest.mark.parametrize("what", ESCAPES)
def test_nothing_leads_out(tmp_path: Path, what: str) -> None:
    said = refused(tmp_path, own(tmp_path, ESCAPES[what]))
    assert "own/frr/more.txt.j2" in said
    assert "ran" not in said.replace("range", "").split("given")[0]


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
