"""Library code names parameters; the verb prints its options for them. Messages say what to do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from inventory.problems import InputError, Problem, at_key
from polarfab import Fabric
from polarfab.output.verb_output import named_options, named_problem
from polarfab.verb_list import verb, verb_names
from tests.polarfab.conftest import Run

ROOT = Path(__file__).parents[2]
OWN_COMMAND_LINE = {"controller/composition.py"}
"""What the controller says of itself."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "lab.yaml").write_text("{name: lab, topology: {family: polarfly, q: 2}}\n")
    Fabric.from_spec(folder / "lab.yaml").compile().save(folder / "build")
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("simulate build --pattern nope", "--pattern: required one of uniform"),
        ("simulate build --fail nope@5", "--fail: required a node, a vertex number"),
        ("simulate build --scheme valley --vcs 1", "; --vcs 2, or --scheme single, which may"),
        ("explain build 0 1 --fail nope", "--fail: required a node, a vertex number"),
        ("draw build --mark nope -o x.svg", "--mark: required a cluster: quadrics"),
        ("render build --target frr --set b=1 -o x --unverified", "--set: required an option"),
        ("render build --target frr --set wcmp=on -o x --unverified", "; add --set routing=bgp"),
        ("controller build --tls-key lab.yaml", "--tls-cert: required all three of a TLS server's"),
        (
            "status --token-file nope",
            "nope: --token-file: required a file of tokens in ASCII, one a line, given No such "
            "file or directory; make one with: (umask 077; openssl rand -hex 32 > nope)",
        ),
        (
            "compile empty.yaml",
            "empty.yaml: required a mapping (key: value), given an empty file; polarfab init DIR "
            "writes a fabric.yaml and an inventory.yaml to start from\n",
        ),
        ("explain build 0 1 2", "explain takes BUILD SRC DST; given 2 as well; polarfab explain"),
        ("emulate --engine model", "name the SCENARIO that these options are for"),
        ("push build --target linux --overrule lines", "--overrule: required names, ports, given"),
        ("status x", "status takes no argument; given x; polarfab status --help shows"),
    ],
)
def test_what_is_said(
    words: str, said: str, polarfab: Run, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lab)
    (lab / "empty.yaml").touch()
    code, _, err = polarfab(*words.split())
    assert (code, said in err) == (2, True), err


def test_a_parameter_is_named_outside_a_verb() -> None:
    problem = Problem("x", "y", "take `scheduler ADDRESS`", key="pattern")
    assert named_problem(problem) == problem
    assert named_options("take `scheduler`") == "take `scheduler`"


def test_problems_get_the_key_of_the_parameter_but_keep_their_own() -> None:
    def refused(own: str) -> str:
        with pytest.raises(InputError) as error, at_key("fail"):
            raise InputError.of("a node", "x", key=own)
        return error.value.problems[0].key

    assert [refused(""), refused("SRC")] == ["fail", "SRC"]


def test_no_library_message_names_an_option() -> None:
    options = {
        word
        for name in verb_names()
        for command in (verb(name), *getattr(verb(name), "commands", {}).values())
        for each in command.params
        for word in (*each.opts, *each.secondary_opts)
        if word.startswith("--")
    }
    found = [
        f"{file}:{line}: {text}"
        for room in ("compilers", "controller", "inventory", "extensions")
        for file in sorted((ROOT / room).rglob("*.py"))
        if not file.name.endswith("_verb.py")
        and str(file.relative_to(ROOT)) not in OWN_COMMAND_LINE
        for line, text in _texts_of_errors(file)
        if {*re.findall(r"--[a-z][a-z-]+(?![a-z=-])", text)} & options
        and not re.search("polarfab |^sysctl ", text)
    ]
    assert found == []


def _texts_of_errors(file: Path) -> Iterator[tuple[int, str]]:
    """Texts of a module that are no docstring; a whole command may have its options."""
    tree = ast.parse(file.read_text())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


def test_help_texts_are_phrases_that_begin_with_what_they_are_about() -> None:
    commands = [
        one
        for name in verb_names()
        for one in (verb(name), *getattr(verb(name), "commands", {}).values())
    ]
    helps = {getattr(each, "help", None) or "" for one in commands for each in one.params}
    assert [text for text in helps if text.startswith(("Of ", "Its ", "Our ", "Between "))] == []
    assert [text for text in helps if text and len(text.split()) < 2] == []
