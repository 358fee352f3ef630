"""The command line as a user meets it: words, JSON keys, exit codes."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

from polarfab.verb_list import verb, verb_names
from tests.compilers.signed import sign
from tests.polarfab.forked import command_line

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "vectors.json").read_text())["ER_q"]


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    path = tmp_path / "fabric.yaml"
    path.write_text("name: lab\ntopology: {family: polarfly, q: 7}\n")
    return path


def test_help_names_every_verb(polarfab) -> None:
    code, out, _ = polarfab("--help")
    assert code == 0
    for name in verb_names():
        assert f"  {name} " in out


@pytest.mark.parametrize("name", verb_names())
def test_help_that_explains_a_value_explains_all(name: str) -> None:
    """As in `walk: follow all packets. local: …`, with `,` between values of one meaning."""
    for option in verb(name).params:
        if isinstance(option, click.Option) and isinstance(option.type, click.Choice):
            meanings = re.findall(r"(?:^|\. )([\w, -]+):", option.help or "")
            explained = {value for values in meanings for value in values.split(", ")}
            if values := explained & set(option.type.choices):
                assert values == set(option.type.choices)


def test_compile_says_each_word_that_on_missing_reduces(polarfab, tmp_path: Path) -> None:
    """`adjacent` and `transit` were reduced without a word."""
    file = tmp_path / "fabric.yaml"
    file.write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\nsystem: eos\nrouting: {balance:"
        " compact-valiant, protect: link, adjacent: bounce, on_missing: minimal}\n"
    )
    code, _, err = polarfab("compile", file, "-o", tmp_path / "build")
    said = [line.partition(",")[0] for line in err.splitlines() if "in place of" in line]
    reduced = ["routing.protect: none in place of link"]
    assert (code, said) == (0, [*reduced, "routing.adjacent: minimal in place of bounce"])


def test_edges_hash_as_in_the_vectors(polarfab) -> None:
    code, out, _ = polarfab("export", "polarfly", "--q", 7)
    assert code == 0
    assert hashlib.sha256(out.encode()).hexdigest() == VECTORS["7"]["edge_sha256"]


def test_design_has_the_keys_of_the_contract(polarfab) -> None:
    code, out, _ = polarfab("design", "--radix", 32, "--json")
    assert code == 0
    found = next(row for row in json.loads(out) if row["family"] == "polarfly")
    contract = {
        "family": "polarfly",
        "radix": 32,
        "nodes": 993,
        "q": 31,
        "supernode": None,
        "supernode_degree": None,
        "supernode_order": None,
        "links": 15872,
        "diameter": 2,
        "moore_efficiency": 993 / 1025,
    }
    assert dict(list(found.items())[: len(contract)]) == contract


def test_compile_verify_explain(polarfab, lab: Path, tmp_path: Path) -> None:
    build = tmp_path / "build"
    code, out, err = polarfab("compile", lab, "-o", build, "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert (facts["nodes"], facts["links"], facts["pairs"]) == (57, 224, 3192)
    assert facts["verified"] is True

    code, out, _ = polarfab("verify", build, "--json")
    report = json.loads(out)
    assert code == 0
    assert {k: report[k] for k in ("pairs", "delivered", "max_hops", "minimal", "loops")} == {
        "pairs": 3192,
        "delivered": 3192,
        "max_hops": 2,
        "minimal": 3192,
        "loops": 0,
    }
    assert report["mean_hops"] == pytest.approx(VECTORS["7"]["aspl"])
    assert report["failures"] == []

    code, out, _ = polarfab("explain", build, 9, 18, "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["source"], found["destination"]) == (9, 18)
    assert found["proved"] == {"delivery": "walk"}
    assert found["minimal"] == [9, 28, 18]
    assert found["alternates"] == []
    assert [hop["node"] for hop in found["hops"]] == ["9", "28"]


def test_render_as_json(polarfab, lab: Path, tmp_path: Path) -> None:
    build, folder = tmp_path / "build", tmp_path / "out"
    identity = json.loads(polarfab("compile", lab, "-o", build, "--json")[1])["build"]
    code, out, err = polarfab("render", build, "--target", "ovs", "-o", folder, "--json")
    assert (code, err) == (0, "")
    files = [path for path in folder.rglob("[!.]*") if path.is_file()]
    assert json.loads(out) == {
        "build": identity,
        "target": "ovs",
        "folder": str(folder),
        "nodes": 57,
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "checked": True,
        "not_checked": "",
        "unproved": "",
        "kept": 0,
        "edited": [],
    }


def test_draw_as_json(polarfab, lab: Path, tmp_path: Path) -> None:
    build, file = tmp_path / "build", tmp_path / "lab.svg"
    identity = json.loads(polarfab("compile", lab, "-o", build, "--json")[1])["build"]
    for words, known in (([build], identity), (["polarfly", "--q", 7], None)):
        code, out, err = polarfab("draw", *words, "-o", file, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out) == {
            "build": known,
            "topology": "polarfly q=7",
            "nodes": 57,
            "links": 224,
            "target": "svg",
            "file": str(file),
            "bytes": file.stat().st_size,
        }


def test_draw_takes_what_a_family_asks_for(polarfab, tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    lacking = "error: sides: required integers of at least 2 with x between them, given none"
    code, _, err = polarfab("draw", "hyperx", "-o", file)
    assert (code, err.startswith(lacking)) == (2, True)
    code, out, err = polarfab("draw", "hyperx", "sides=3x3", "-o", file)
    assert (code, out + err) == (0, f"hyperx sides=3x3 drawn in {file}\n")
    assert polarfab("draw", "hyperx", "3x3", "-o", file) == (
        2,
        "",
        "error: required NAME=VALUE, as in h=6, given 3x3\n",
    )


@pytest.mark.parametrize("verb", ["draw", "analyse", "export", "init"])
def test_two_values_of_a_parameter_are_one_message(polarfab, tmp_path: Path, verb: str) -> None:
    """The word was taken, whatever the option said."""
    target, file = tmp_path / "lab", tmp_path / "drawn.svg"
    subject = (*([target] if verb == "init" else []), "polarfly", "q=3")
    output = ("-o", file) if verb == "draw" else ()
    for again, given in (("--q", 5), "5 and 3"), (("q=5",), "3 and 5"):
        code, out, err = polarfab(verb, *subject, *again, *output)
        assert (code, out, target.exists(), file.exists()) == (2, "", False, False)
        assert err == f"error: --q: required one value, given {given}\n"
    assert polarfab(verb, *subject, "--q", 3, *output)[0] == 0


def test_hops_of_paths_by_intermediates_are_those_of_both_parts(polarfab, tmp_path: Path) -> None:
    spec, build = tmp_path / "fabric.yaml", tmp_path / "build"
    topology = "name: lab\ntopology: {family: polarfly, q: 3}\n"
    for routing, printed in (
        ("routing: {balance: minimal}", ["hops at most 2, 1.69 on average"]),
        (
            "routing: {balance: valiant}",
            ["hops of each part at most 2, 1.69 on average", "hops of both parts at most 4"],
        ),
    ):
        spec.write_text(topology + routing)
        for words in (("compile", spec, "-o", build), ("verify", build)):
            code, out, _ = polarfab(*words)
            assert code == 0
            lines = [" ".join(line.split()) for line in out.splitlines()]
            assert [line for line in lines if line.startswith("hops")] == printed


def test_explain_names_the_intermediate_of_each_path(polarfab, tmp_path: Path) -> None:
    """Paths over two intermediates may cross the same switches: 0 7 12 5 was printed twice."""
    spec, build = tmp_path / "fabric.yaml", tmp_path / "build"
    spec.write_text("name: lab\ntopology: {family: polarfly, q: 3}\nrouting: {balance: valiant}\n")
    polarfab("compile", spec, "-o", build)
    lines = polarfab("explain", build, "0", "5")[1].splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    paths = [row for row in rows if len(row) == 3 and row[2].isdigit()]
    over = {row[2]: row[0].split() for row in paths}
    assert over["7"] == over["12"] == ["0", "7", "12", "5"]
    assert len(over) == 10
    assert all(node in path for node, path in over.items())


def test_explain_takes_names_addresses_and_hosts(polarfab, lab: Path, tmp_path: Path) -> None:
    build = tmp_path / "build"
    polarfab("compile", lab, "-o", build)
    seen = {
        polarfab("explain", build, source, "h18", "--json")[1]
        for source in ("9", "h9", "10.0.0.37", "10.0.0.38")
    }
    assert len(seen) == 1
    for words, argument in ((("h188", "h18"), "SRC"), (("h18", "h188"), "DST")):
        code, _, err = polarfab("explain", build, *words)
        assert code == 2
        assert f"{argument}: required a node" in err
        assert "given h188; did you mean h18?" in err


def test_compile_from_stdin(lab: Path, tmp_path: Path) -> None:
    program = command_line().program(tmp_path / "tools")
    run = subprocess.run(
        [program, "compile", "-", "-o", str(tmp_path / "b"), "--json"],
        input=lab.read_text(),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["nodes"] == 57


def test_a_tampered_build_fails_and_is_refused(polarfab, lab: Path, tmp_path: Path) -> None:
    build = tmp_path / "build"
    polarfab("compile", lab, "-o", build)
    file = build / "arrays" / "route_egress.npy"
    table = np.load(file)
    table[9, 18] = (table[9, 18] + 1) % 7
    np.save(file, table)
    code, out, err = polarfab("verify", build)
    assert (code, out) == (2, "")
    assert err.endswith("given a changed file; compile the build again\n")
    assert f"{file}: required the file as it was compiled" in err
    sign(build)
    code, _, err = polarfab("verify", build)
    assert code == 1
    assert "wrong: 9 to 18: 3 hops, 2 are enough" in err
    assert polarfab("render", build, "--target", "ovs", "-o", tmp_path / "out")[0] == 2
    assert not (tmp_path / "out").exists()


def test_our_bug_is_one_message_and_a_file(polarfab, monkeypatch: pytest.MonkeyPatch) -> None:
    import compilers.topology.families

    def broken(*_: object) -> None:
        raise RuntimeError("the walls moved")

    monkeypatch.setattr(compilers.topology.families, "build_topology", broken)
    code, _, err = polarfab("export", "polarfly", "--q", 3, "--json")
    assert code == 3
    assert "Traceback" not in err
    assert "RuntimeError: the walls moved" in err
    kept = Path(err.split("report it with ")[1].strip())
    assert "Traceback" in kept.read_text()
    kept.unlink()


def test_a_reader_that_goes_away_is_no_error() -> None:
    run = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m polarfab export polarfly --q 31 | head -1"],
        capture_output=True,
        text=True,
    )
    assert (run.stdout, run.stderr) == ("0 1\n", "")


def test_minimal_routes_of_a_small_fabric_need_no_machine_code(lab: Path) -> None:
    """Up to some thousand switches."""
    lab.write_text("name: lab\ntopology: {family: polarfly, q: 31}\n")
    program = f"""import sys
sys.argv = ["polarfab", "compile", "-q", "{lab}", "-o", "{lab.parent / "build"}"]
from polarfab.cli import main
try:
    main()
finally:
    print("numba" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.endswith("False\n")
    assert (lab.parent / "build").is_dir()


def test_an_interrupt_at_an_import_is_one_line(tmp_path: Path) -> None:
    """Within the exec of a text, after which `python -m` would die of the signal."""
    program = """import signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "polarfab.output.verb_output":
            exec("signal.raise_signal(signal.SIGINT)")
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["polarfab", "export", "polarfly", "--q", "3"]
from polarfab.__main__ import main
main()
"""
    (tmp_path / "interrupted_run.py").write_text(program)
    command = [sys.executable, "-m", "interrupted_run"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr.strip()) == (130, "", "interrupted")


LEAVES = """import sys
import click
from polarfab import cli
def leave():
    error = {}
    error.add_note("it is there")
    raise error
cli.cli.get_command = lambda *_: click.Command("leave", callback=leave)
sys.argv = ["polarfab", "leave"]
cli.main()
"""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        ("KeyboardInterrupt()", 130, "interrupted; it is there"),
        ("SystemExit(143)", 143, "it is there"),
    ],
)
def test_what_an_interrupt_leaves_is_told(error: str, code: int, said: str) -> None:
    program = LEAVES.format(error)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr.strip()) == (code, "", said)
