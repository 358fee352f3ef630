"""What people see: tables at 80 and 120 columns, colours, --quiet, --verbose, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polarfab.output.verb_output import MOST_ROWS, print_table
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


@pytest.mark.parametrize(
    "words",
    [("design", "--radix", "8..16"), ("analyse", "polarfly", "--q", "5"), ("targets", "sonic")],
)
def test_the_tables_of_verbs_fit(
    polarfab: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = polarfab(*words)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert words[0] not in ("design", "analyse") or "_" not in out, "headings are words"


def test_columns_that_go_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_table("", ["name", "first_number", "other_number"], [["x", 10**9, 10**9]])
    seen = capsys.readouterr()
    assert "1,000,000,000" in seen.out
    assert seen.err == "left out for want of width: other number; --json has all\n"


def test_a_single_row_too_many_is_counted_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ["name"], [["x"]] * (MOST_ROWS + 1))
    assert capsys.readouterr().err == "1 more row: --verbose prints all, --json has all\n"


def test_long_lists_are_folded(polarfab: Run, tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text("name: x\ntopology: {family: polarfly, q: 3}\n")
    words = ("design", "--radix", "8..20", "--json")
    assert polarfab(*words)[0] == 0
    _, out, err = polarfab("design", "--radix", "8..20")
    assert "more rows: --verbose prints all, --json has all" in err
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
    ("words", "wanted"),
    [
        (("check", "spec", "fabric.yaml"), ["topology.q", "routing"]),
        (("verify", "nowhere"), [""]),
        (("export", "polarfly", "--q", "x"), ["--q"]),
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


def test_help_and_version(polarfab: Run) -> None:
    for words in (("check", "spec"), ("apply",), ()):
        assert polarfab("help", *words)[:2] == (0, polarfab(*words, "--help")[1])
    assert polarfab("-V") == polarfab("--version")
    assert "help" not in verb_names()
