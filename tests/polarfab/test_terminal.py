"""What people see: tables at 80 and 120 columns, colours, --quiet, --verbose, errors."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from polarfab.cli import cli
from polarfab.output.emulation_output import Narrator
from polarfab.output.verb_output import fitting, painted, print_table
from polarfab.verb_list import verb_names
from tests.polarfab.conftest import Run

COLUMNS = ["switch", "mean_distance", "what was found there", "cost_per_host", "result"]
ROWS = [
    ["n12", 1.86, "a next hop that the tables do not have, by the cable to n45", 933, "pass"],
    ["spine-a", 12.5, "nothing", 1_000_000, "FAIL"],
]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_fits(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table("what was seen", COLUMNS, ROWS)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    golden(out, f"table-{columns}.txt")


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "words",
    [
        ("design", "--radix", "8..16"),
        ("analyse", "polarfly", "--q", "5"),
        ("targets",),
        ("targets", "sonic"),
    ],
)
def test_the_tables_of_verbs_fit(
    polarfab: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, _ = polarfab(*words)
    assert code == 0
    assert max(map(len, out.splitlines())) <= columns
    assert words[0] not in ("design", "analyse") or "_" not in out, "headings are words"


def test_numbers_are_whole_and_columns_that_do_not_fit_go() -> None:
    heads, cells = ["a", "number", "number"], [["x" * 50, "1,000,000", "2,000,000"]]
    assert fitting(heads, cells, [False, True, True], 80) == [50, 9, 9]
    assert fitting(heads, cells, [False, True, True], 40) == [12, 9, 9], "text is broken"
    assert fitting(["n"] * 4, [["1,000,000"] * 4], [True] * 4, 40) == [9, 9, 9], "the last goes"
    assert fitting(heads, cells, [False, True, True], 10) == [22], "one column stays"


def test_columns_that_go_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_table("", ["name", "first_number", "other_number"], [["x", 10**9, 10**9]])
    seen = capsys.readouterr()
    assert "1,000,000,000" in seen.out
    assert seen.err == "left out for want of width: other number; --json has all\n"


def test_long_lists_are_folded(polarfab: Run, tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text("name: x\ntopology: {family: polarfly, q: 3}\n")
    words = ("design", "--radix", "8..20", "--json")
    assert polarfab(*words)[0] == 0
    _, out, err = polarfab("design", "--radix", "8..20")
    assert "more rows: --verbose prints them, --json has all" in err
    assert len(out.splitlines()) < 50
    _, full, err = polarfab("design", "--radix", "8..20", "--verbose")
    assert "more rows" not in err
    assert len(full.splitlines()) > len(out.splitlines())
    assert polarfab("design", "--radix", "8..20", "--quiet")[2] == ""


def test_fail_is_red_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_table("", ["check", ""], [["every pair", "FAIL"]])
    assert "\x1b[" not in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table("", ["check", ""], [["every pair", "FAIL"]])
    assert "\x1b[1;31mFAIL" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    print_table("", ["check", ""], [["every pair", "FAIL"]])
    assert "31mFAIL" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("render", "x"), "--target: required a value, given none; polarfab render --help shows"),
        (("explain",), "BUILD: required a value, given none; polarfab explain --help shows"),
        (
            ("export", "polarfly", "--qq", "3"),
            "required an option, given --qq; did you mean --q?",
        ),
        (
            ("export", "polarfly", "--q", "x"),
            "--q: required a whole number, given x; polarfab export",
        ),
        (
            ("export", "polarfly", "--format", "x"),
            "--format: required one of edges, graphml, dot",
        ),
        (("export", "polarfly", "x"), "required NAME=VALUE, as in h=6, given x"),
        (("analyse", "polarfli"), "required a build, a fabric.yaml or one of polarfly, "),
        (("export", "fabric.yaml", "--q", "3"), "q: required none with a fabric.yaml or a build"),
        (
            ("compile", "fabric.yaml", "b"),
            "compile takes FABRIC; given b as well; did you mean -o b?",
        ),
        (("verify", "x", "-j"), "required an option, given -j; did you mean --json?"),
        (("--quiet", "verify", "x"), "required an option, given --quiet; it goes behind the verb"),
        (
            ("verify", "."),
            "given a folder with fabric.yaml; compile it first: polarfab compile fab",
        ),
        (("emulate", "."), "required a scenario file, a build or the name of a scenario, given ."),
        (("compile", "."), "given a folder; name a file, such as fabric.yaml, inventory.yaml"),
        (("check", "spec", "built"), "given a build; name its fabric.yaml, or check it: polarfab"),
        (("check", "spec", "inventory.yaml"), "required a spec, with name and topology, given an"),
        (("render", "x", "--target", "nexus", "-o", "y"), "given nexus; did you mean nxos?"),
        (
            ("check", "wirin", "x"),
            "required one of spec, wiring, routes, given wirin; did you mean",
        ),
        (("--completion", "tcsh"), "required one of bash, zsh, fish, given tcsh; polarfab --h"),
        (("--completion", "fisch"), "required one of bash, zsh, fish, given fisch; did you mean f"),
        (("verify", "fabric.yaml"), "given a spec; compile it first: polarfab compile fabric.yaml"),
    ],
)
def test_errors_have_one_form(
    polarfab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple, error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fabric.yaml").write_text("name: x\ntopology: {family: polarfly, q: 3}\n")
    (tmp_path / "inventory.yaml").write_text("generate: {type: switch-32}\n")
    (tmp_path / "built").mkdir()
    (tmp_path / "built/manifest.json").write_text("{}")
    code, out, err = polarfab(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert error in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("check", "spec", "fabric.yaml"), ["topology.q", "routing"]),
        (("verify", "nowhere"), [""]),
        (("verify", "b", "--failures", "x"), ["--failures"]),
        (("export", "polarfly", "--q", "x"), ["--q"]),
        (("design",), [""]),
        (("controller", "nowhere"), [""]),
    ],
)
def test_problems_are_json_too(
    polarfab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple, wanted: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fabric.yaml").write_text(
        "name: x\ntopology: {family: polarfly, q: 6}\nrouting: 1\n"
    )
    code, out, err = polarfab(*words, "--json")
    problems = json.loads(out)["problems"]
    assert (code, [each["key"] for each in problems]) == (2, wanted)
    assert {tuple(each) for each in problems} == {
        ("file", "line", "key", "required", "given", "todo")
    }
    assert all(any(each.values()) for each in problems)
    assert err.count("error: ") == len(wanted)
    assert polarfab(*words)[1] == ""


@pytest.mark.parametrize("words", [(), ("inventory",)])
def test_without_words_there_is_help(polarfab: Run, words: tuple[str, ...]) -> None:
    code, out, err = polarfab(*words)
    assert (code, out, err.split(":")[0]) == (2, "", "Usage")


def test_quiet_leaves_the_steps_out(capsys: pytest.CaptureFixture[str]) -> None:
    for level, said in ((-1, ""), (0, "   0.0 s  wait\n          done\n")):
        with click.Context(cli) as context:
            context.meta["volume"] = level
            with Narrator().step("wait"):
                pass
            Narrator().note("done")
        assert capsys.readouterr().out == said


def test_colours_mean_something_and_no_color_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert painted("pass", "pass") == "\x1b[32mpass\x1b[0m"
    assert painted("error", "error") == "\x1b[31m\x1b[1merror\x1b[0m"
    assert painted("warning", "warning") == "\x1b[33mwarning\x1b[0m"
    assert painted("nothing", "hops") == "nothing", "what has no meaning has no colour"
    monkeypatch.setenv("NO_COLOR", "1")
    assert [painted(word, word) for word in ("pass", "error")] == ["pass", "error"]


def test_names_of_switches_are_coloured(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table("", ["switch", "links"], [["n12", 8]])
    assert "\x1b[36mn12" in capsys.readouterr().out


def test_first_what_a_newcomer_asks(polarfab: Run, tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text("name: x\ntopology: {family: polarfly, q: 3}\n")
    words = ("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b")
    for each, inner in ((words, "openflow entries"), (("verify", tmp_path / "b"), "loops")):
        _, out, _ = polarfab(*each)
        assert " pairs delivered  156 of 156" in out
        assert " hops             at most 2, 1.69 on average" in out
        assert inner not in out
        _, verbose, _ = polarfab(*each, "-v")
        names = [line.split("  ")[0] for line in verbose.splitlines()[1:]]
        assert inner in verbose
        assert len(names) == len(set(names)), "nothing is said twice"


@pytest.mark.parametrize(
    "words",
    [
        *((word,) for word in ("validate", "topology", "confirm", "rollback", "fsck", "paths")),
        *(
            ("check-wiring", "b"),
            ("completion", "bash"),
            ("export", "polarfly", "--format", "json"),
        ),
        ("diff", "a", "b"),
        ("rehearse", "a", "b"),
        ("apply",),
        ("apply", "b", "--confirm"),
        ("apply", "--undo", "--accept-loss"),
    ],
)
def test_old_words_and_words_that_contradict_each_other(polarfab: Run, words: tuple) -> None:
    code, out, err = polarfab(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_help_and_version(polarfab: Run) -> None:
    for words in (("check", "spec"), ("apply",), ()):
        assert polarfab("help", *words)[:2] == (0, polarfab(*words, "--help")[1])
    assert polarfab("-V") == polarfab("--version")
    assert "help" not in verb_names()
