"""`polarfab throughput` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from inventory.problems import InputError
from polarfab.commands.builds.compile import command as compile_verb
from polarfab.commands.builds.throughput import command
from polarfab.fabric import Fabric
from polarfab.measures import throughput
from tests.polarfab.conftest import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("throughput")
    (path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 3}\nhosts_per_node: 2\n"
        "routing: {balance: compact-valiant}\n"
    )
    compile_verb.main([str(path / "fabric.yaml"), "-o", str(path / "build")], standalone_mode=False)
    return path / "build"


def run(*words: object) -> str:
    result = CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_json_has_what_the_build_says(folder: Path) -> None:
    found = json.loads(run(folder, "--json"))
    assert (found["name"], found["hosts_per_node"]) == ("lab", 2)
    patterns = {each["pattern"]: each for each in found["patterns"]}
    assert set(found["patterns"][0]["minimal"]) == {"share", "peak", "mean", "hottest"}
    tornado, uniform = patterns["tornado"], patterns["uniform"]
    assert tornado["minimal"]["share"] < tornado["optimum"] == pytest.approx(0.75)
    assert tornado["optimum_exact"] is uniform["optimum_exact"] is True
    assert uniform["optimum"] == 1
    emitted = tornado["as_emitted"]["share"]
    assert tornado["share_of_optimum"] == pytest.approx(emitted / tornado["optimum"])
    more = json.loads(run(folder, "--json", "--pattern", "tornado", "--hosts-per-node", 4))
    share = tornado["minimal"]["share"]
    assert more["patterns"][0]["minimal"]["share"] == pytest.approx(share / 2)


def test_table_names_every_pattern(folder: Path) -> None:
    out = run(folder)
    assert all(word in out for word in ("perm2hop", "adversarial", "as emitted", "adaptive"))


def test_plot(folder: Path, tmp_path: Path) -> None:
    run(folder, "--pattern", "perm2hop", "-o", tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_mistakes_are_told(folder: Path, tmp_path: Path) -> None:
    for words, told in (
        ((folder, "--pattern", "perm2hob"), "did you mean perm2hop"),
        ((folder, "-o", "x.gif"), "FILE.svg or FILE.png"),
        ((folder, "--pattern", "uniform", "-o", tmp_path / "no" / "x.svg"), "can be written"),
        ((tmp_path, "--pattern", "uniform"), "a build folder"),
    ):
        with pytest.raises(InputError) as error:
            run(*words)
        assert told in str(error.value)


def test_uneven_hosts_are_taken_as_they_are(tmp_path, polarfab):
    (tmp_path / "inventory.yaml").write_text(
        "node_types: {leaf: {ports: [{count: 9}], host_count: 1}}\n"
        "groups: {more: {host_count: 3}}\n"
        "generate: {types: [{type: leaf, count: 1, group: more}, {type: leaf}]}\n"
    )
    spec = tmp_path / "fabric.yaml"
    spec.write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\nhosts_per_node: 3\n"
        "inventory: inventory.yaml\n"
    )
    assert polarfab("compile", spec, "-o", tmp_path / "build")[0] == 0
    _, out, _ = polarfab("throughput", tmp_path / "build", "--pattern", "uniform")
    assert "polarfly q=2, 1 to 3 hosts per node;" in " ".join(out.split())
    found = throughput(Fabric.load(tmp_path / "build"), ["uniform"])[0]
    assert (found.as_emitted, found.emitted) == (None, found.minimal)
    _, out, _ = polarfab(
        "throughput", tmp_path / "build", "--pattern", "uniform", "--hosts-per-node", 1
    )
    assert "polarfly q=2, 1 host per node;" in out


def test_as_built_is_the_fullest_switch_and_not_the_hosts_per_node_of_the_spec(tmp_path: Path):
    leaf = {"ports": [{"count": 9}], "host_count": 2}
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 2},
        "hosts_per_node": 5,
        "inventory": {"node_types": {"leaf": leaf}, "generate": {"types": [{"type": "leaf"}]}},
    }
    build = Fabric.from_spec(spec).compile().save(tmp_path / "build").folder
    (tmp_path / "full.csv").write_text("0,1,7\n")
    file = run(build, "--json", "--pattern", tmp_path / "full.csv")
    assert json.loads(file)["hosts_per_node"] == 2
    assert json.loads(file)["patterns"][0]["minimal"]["share"] == 0.5
    assert "polarfly q=2, 2 hosts per node;" in run(build, "--pattern", "uniform")


def test_the_guarantee_and_a_traffic_that_gets_no_more(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "worst.csv"
    found = json.loads(run(folder, "--guarantee", "--json", "-o", file))["guarantee"]
    assert found["share"] == pytest.approx(0.3)
    assert len(found["traffic"]) == len(found["rates"]) == len(file.read_text().split()) - 1
    seen = json.loads(run(folder, "--pattern", file, "--json"))["patterns"][0]["as_emitted"]
    assert (seen["share"], seen["hottest"]) == (pytest.approx(found["share"]), found["link"])
    assert "30.00%" in run(folder, "--guarantee")


def test_mistakes_in_a_file_of_traffic_are_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("0,1,3\n0,nowhere,3\n")
    with pytest.raises(InputError, match=r"wrong\.csv:2: demand: required a switch"):
        run(folder, "--pattern", tmp_path / "wrong.csv")


def test_the_guarantee_with_each_switch_down(tmp_path: Path) -> None:
    spec = {"name": "small", "topology": {"family": "polarfly", "q": 3}}
    folder = Fabric.from_spec(spec).compile().save(tmp_path / "build").folder
    found = json.loads(run(folder, "--guarantee", "--failures", "node", "--json"))["failures"]
    assert len(found) == 13
    assert set(found[0]) == {"kind", "element", "share", "repaired"}
    assert "one node down, the worst of 13" in run(folder, "--guarantee", "--failures", "node")
    assert CliRunner().invoke(command, [str(folder), "--failures", "node"]).exit_code == 2


def test_failures_of_planes_have_the_names_of_each(tmp_path: Path) -> None:
    """Also where planes forward alike."""
    spec = {"name": "small", "topology": {"family": "polarfly", "q": 2}, "planes": 2}
    folder = Fabric.from_spec(spec).compile().save(tmp_path / "build").folder
    found = json.loads(run(folder, "--guarantee", "--failures", "node", "--json"))["planes"]
    for number, plane in enumerate(found, 1):
        down = {case["element"] for case in plane["failures"]}
        assert down == {f"p{number}-{v}" for v in range(7)}


def test_one_pattern_is_a_text(folder: Path) -> None:
    fabric = Fabric.load(folder)
    assert throughput(fabric, "tornado") == throughput(fabric, ["tornado"])
    with pytest.raises(InputError, match="given unifrom; did you mean uniform"):
        throughput(fabric, "unifrom")


@pytest.mark.parametrize(("speed", "told"), [(", speed: 25", ""), ("", "none of h1 of 0;")])
def test_speeds_that_do_not_count_are_told(
    speed: str, told: str, tmp_path: Path, polarfab: Run
) -> None:
    nodes = "".join(f"  - {{name: '{v}', type: leaf}}\n" for v in range(7))
    (tmp_path / "inventory.yaml").write_text(
        "node_types:\n  leaf:\n    ports:\n"
        "      - {name: 'f{}', count: 3, speed: 100}\n"
        f"      - {{name: 'h{{}}', count: 1, role: host{speed}}}\n"
        f"nodes:\n{nodes}"
    )
    spec = tmp_path / "fabric.yaml"
    spec.write_text("name: lab\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\n")
    assert polarfab("compile", spec, "-o", tmp_path / "build")[0] == 0
    _, out, err = polarfab("throughput", tmp_path / "build", "--guarantee", "--json")
    assert json.loads(out)["guarantee"]["share"] == (1.0 if speed else 0.5)
    assert told in err
    assert bool(told) == ("no speed counts" in err)
