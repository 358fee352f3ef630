"""Templates that are not the package's print values and do nothing else."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from jinja2.exceptions import SecurityError

from compilers.targets.target_lookup import target
from inventory.problems import InputError
from templates import environment, sandbox
from templates.sandbox import TrustedFolder
from tests.compilers.fabrics import polarfly_build

BUILD = replace(polarfly_build(2), identity="0123456789abcdef")
SHELL = "{{ cycler.__init__.__globals__.os.popen('echo ran').read() }}"
ESCAPES = {
    "a shell": SHELL,
    "classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "a format": "{{ '{0.__class__.__mro__}'.format(facts) }}",
    "a global of a filter": "{{ (facts|attr('__class__')).__mro__ }}",
    "a change": "{{ facts.links.append(1) or vars.update({'a': 1}) }}",
}
ENDLESS = {
    "a long range": "{% for i in range(10**9) %}{% endfor %}",
    "loops in loops": "{% for a in range(99999) %}{% for b in range(99999) %}"
    "{% endfor %}{% endfor %}",
    "a large number": "{{ 10**(10**10) }}",
    "a long text": "{{ 'x' * 10**10 }}",
    "a wide filter": "{{ 'x'|center(9999999999) }}",
    "a wide format": "{{ '%9999999999d' % 1 }}",
    "much text": "{% for a in range(99999) %}{{ 'x' * 4000 }}{% endfor %}",
    "text that doubles": "{% set n = namespace(s='x') %}{% for a in range(99) %}"
    "{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s|length }}",
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
    assert "ran" not in said.replace("`trust", "").replace("range", "").split("given")[0]


@pytest.mark.parametrize("what", ENDLESS)
def test_everything_ends(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "SECONDS", 0.5)
    said = refused(tmp_path, own(tmp_path, ENDLESS[what]))
    assert "own/frr/more.txt.j2" in said
    assert "required a template in its sandbox" in said
    assert "`trust_templates`" in said


def test_a_slow_constant_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jinja2 calculates it while it compiles, and catches every `Exception` there."""
    monkeypatch.setattr(sandbox, "SECONDS", 0.5)
    slow = """{{ "0 ab"|center(800000)|wordwrap(5)|length }}"""
    assert "more than 0.5 s of processor time" in refused(tmp_path, own(tmp_path, slow))


def test_no_file_outside_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.j2").write_text("{{ root:x:0 }}")
    folder = own(tmp_path, "{% include 'frr/link.j2' %}")
    (folder / "frr/link.j2").symlink_to(tmp_path / "secret.j2")
    assert "outside" in refused(tmp_path, folder)
    (folder / "frr/link.j2").unlink()
    (folder / "frr/more.txt.j2").write_text("{% include '../secret.j2' %}")
    assert "outside" in refused(tmp_path, folder)
    (folder / "frr/more.txt.j2").write_text("{% include ['frr/no.j2', '../secret' ~ '.j2'] %}")
    assert "root:x:0" not in refused(tmp_path, folder)


def test_a_trusted_folder_may_do_all(tmp_path: Path) -> None:
    target("frr").render(BUILD, tmp_path / "out", TrustedFolder(own(tmp_path, SHELL)))
    assert (tmp_path / "out/0/more.txt").read_text().startswith("ran")


def test_templates_of_other_packages_are_in_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert environment(None, {"other": tmp_path / "other"}).sandboxed
    assert not environment(None, {}).sandboxed


def test_arrays_do_not_write_files(tmp_path: Path) -> None:
    shown = environment(tmp_path).from_string("{{ a.tolist() }} {{ a.tofile(f) }}")
    with pytest.raises(Exception, match="tofile"):
        shown.render(a=BUILD.wiring.far, f=str(tmp_path / "far"))
    assert not (tmp_path / "far").exists()


def test_a_template_nested_too_deep(tmp_path: Path) -> None:
    said = refused(tmp_path, own(tmp_path, "{{ " + "(" * 99999 + " }}"))
    assert "more.txt.j2: required a Jinja2 template" in said  # without a line


def _spin(_: bytearray | None = None) -> None:
    while True:
        pass


def test_limits_are_put_back_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with sandbox.limited():
        assert resource.getrlimit(resource.RLIMIT_AS) != before
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    with pytest.raises(KeyError), sandbox.limited():
        raise KeyError
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    with pytest.raises(SecurityError, match="bytes"), sandbox.limited():
        bytearray(2 * sandbox.MORE_MEMORY)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    monkeypatch.setattr(sandbox, "SECONDS", 0.1)
    with pytest.raises(SecurityError, match="processor time"), sandbox.limited():
        _spin()
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert threading.active_count() == 1


def test_other_threads_keep_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is of the whole process, so there is none beside other threads; growth is seen."""
    before, over = resource.getrlimit(resource.RLIMIT_AS), threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with sandbox.limited():
            assert resource.getrlimit(resource.RLIMIT_AS) == before
        monkeypatch.setattr(sandbox, "MORE_MEMORY", 1 << 24)
        with pytest.raises(SecurityError, match="bytes"), sandbox.limited():
            _spin(bytearray(b"x" * (1 << 26)))
    finally:
        over.set()
        other.join()
    assert resource.getrlimit(resource.RLIMIT_AS) == before


TRACED = """
import sys
from jinja2.exceptions import SecurityError
from templates import sandbox
with sandbox.limited():
    pass
sandbox.SECONDS = 0.01
try:
    with sandbox.limited():
        while True:
            pass
except SecurityError:
    pass
sys.settrace(lambda *_: None)
(lambda: None)()
"""


def test_python_can_be_traced_afterwards() -> None:
    """By a debugger, a profiler or a count of what tests run."""
    subprocess.run([sys.executable, "-c", TRACED], check=True, timeout=60)
