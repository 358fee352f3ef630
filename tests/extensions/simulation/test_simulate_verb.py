"""`polarfab simulate` as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from extensions.simulation import simulate
from polarfab.fabric import Fabric

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 2}
    path = tmp_path_factory.mktemp("simulate") / "build"
    Fabric.from_spec(spec).save(path)
    return path


def test_json_has_the_points(polarfab: Run, folder: Path) -> None:
    words = ("--load", "0.2,0.4", "--pattern", "tornado", "--json")
    code, out, err = polarfab("simulate", folder, *words)
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["pattern"] == "tornado"
    assert [point["offered"] for point in found["points"]] == [0.2, 0.4]
    assert {"accepted", "mean_latency", "p99_latency", "worst_latency"} <= set(found["points"][0])
    assert (found["saturation"], found["deadlock"]) == (0.4, [])
    assert polarfab("simulate", folder, *words)[1] == out


def test_the_router_of_flits_is_in_the_title_and_json(polarfab: Run, folder: Path) -> None:
    words = ("simulate", folder, "--load", "0.2", "--level", "flit", "--router", "speedup=1")
    _, out, _ = polarfab(*words)
    assert "2 hosts per node, uniform, router speedup=1" in out
    router = json.loads(polarfab(*words, "--json")[1])["router"]
    assert (router["speedup"], router["credit"], router["pipeline"]) == (1, 2, 4)


def test_table_plot_and_failure(polarfab: Run, folder: Path, tmp_path: Path) -> None:
    plot = tmp_path / "x.svg"
    fail = ("--fail", "0-1@1600")
    code, out, err = polarfab("simulate", folder, "--load", "0.2", *fail, "-o", plot)
    assert code == 0
    assert "state" in out
    assert "losses" in out  # minimal tables without protection
    assert "saturated" not in out
    assert f"plotted in {plot}" in err
    quiet = polarfab("simulate", folder, "--load", "0.2", "--quiet")
    assert (quiet[0], quiet[2]) == (0, "")
    assert (
        "sustained up to a load of 0.2\npackets take any channel; --scheme valley needs 2,"
        in quiet[1]
    )
    assert plot.stat().st_size > 1000


def test_a_scheme_without_deadlocks_may_have_one_around_a_dead_switch(
    polarfab: Run, tmp_path: Path
) -> None:
    """Beside a deadlock it said of scheme valley, which has it too, that it has none."""
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 3},
        "routing": {"balance": "minimal", "protect": "node"},
    }
    Fabric.from_spec(spec).save(tmp_path / "b").verify()
    _, out, _ = polarfab("simulate", tmp_path / "b", "--load", "0.1")
    assert "and has no deadlock while all switches work" in out


def test_builds_and_paths_side_by_side(polarfab: Run, folder: Path, tmp_path: Path) -> None:
    tree, plot = tmp_path / "tree", tmp_path / "both.svg"
    topology = {"family": "fat-tree", "k": 2}
    Fabric.from_spec({"name": "tree", "topology": topology, "hosts_per_node": 2}).save(tree)
    routing = ("--routing", "minimal", "--routing", "ugal", "--vcs", "8")
    words = ("simulate", folder, tree, *routing, "--load", "0.1,0.3", "--json")
    code, out, _ = polarfab(*words, "-o", plot)
    found = json.loads(out)["simulated"]
    assert code == 0
    assert [(each["name"], each["routing"]) for each in found] == [
        (name, hop) for name in ("lab", "tree") for hop in ("minimal", "ugal")
    ]
    assert found[2] == json.loads(
        polarfab("simulate", tree, *routing[:2], *routing[4:], *words[-3:])[1]
    )
    for name in ("lab, minimal", "lab, ugal", "tree, minimal", "tree, ugal"):
        assert f"<!-- {name} -->" in plot.read_text()
    code, out, _ = polarfab("simulate", tree, *routing, "--load", "0.1")
    assert (code, out.count("┏")) == (0, 2)


def test_collectives_side_by_side(polarfab: Run, folder: Path) -> None:
    words = ("simulate", folder, "--routing", "minimal", "--routing", "shortest")
    code, out, _ = polarfab(*words, "--collective", "tree-allreduce", "--size", "1024")
    assert (code, out.count("lab: tree-allreduce of 1,024 bytes")) == (0, 2)
    assert "26 hosts, routing shortest takes " in out


def test_a_deadlock_is_a_finding(polarfab: Run, tmp_path: Path) -> None:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 7}, "hosts_per_node": 4}
    Fabric.from_spec(spec).save(tmp_path / "build")
    words = ("--load", "1", "--vcs", "1", "--scheme", "single", "--buffer", "8")
    code, _, err = polarfab("simulate", tmp_path / "build", *words)
    assert code == 1
    assert "deadlock: full buffers wait for each other along " in err


def test_a_demand_takes_the_place_of_a_pattern(polarfab: Run, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "demand.csv"
    file.write_text("0,5,30\n5,0,15\n")
    words = ("simulate", folder, "--pattern", file, "--load", "0.5", "--json")
    (point,) = json.loads(polarfab(*words)[1])["points"]
    # Two hosts of switch 0 fill half of their links; switch 5 sends half as much.
    assert point["packets"] == pytest.approx((1 + 0.5) * 2 * 0.5 * 2_000 / 4, rel=0.15)
    curve = simulate(Fabric.load(folder), str(file), loads=[0.5])
    assert curve.report()["points"][0]["packets"] == point["packets"]
    file.write_text("0,99,1\n")
    assert polarfab(*words)[0] == 2


def test_paths_of_the_tables_are_a_routing_of_their_own(polarfab: Run, tmp_path: Path) -> None:
    random = {"family": "jellyfish", "nodes": 16, "degree": 4}
    fabric = Fabric.from_spec({"name": "lab", "topology": random}).compile()
    fabric.save(tmp_path / "build")
    words = ("--routing", "ugal", "--routing", "ugal-table", "--load", "0.5", "--json")
    both = json.loads(polarfab("simulate", tmp_path / "build", *words)[1])["simulated"]
    assert [each["routing"] for each in both] == ["ugal", "ugal-table"]
    alone = [simulate(fabric, loads=[0.5], routing="ugal", paths=p) for p in ("shortest", "table")]
    reports = json.loads(json.dumps([each.report() for each in alone]))
    assert [each["points"] for each in both] == [each["points"] for each in reports]
    assert both[0]["points"] != both[1]["points"]


def test_a_pattern_is_none_of_the_files_that_are_called_so(
    polarfab: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tornado").write_text("no rates\n")
    words = ("simulate", folder, "--pattern")
    assert polarfab(*words, "tornado", "--load", "0.1")[0] == 0
    code, _, err = polarfab(*words, "./tornado", "--load", "0.1")
    assert (code, "tornado:1: demand: required" in err) == (2, True), err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--load", "x"), "loads with commas between them"),
        (("--pattern", "tornada"), "did you mean tornado"),
        (("--vcs", "1", "--scheme", "valley"), "2 virtual channels for scheme valley"),
        (("--fail", "0-99@3"), "required a node, or a link"),
        (("--fail", "0-1@soon"), "--fail: required A-B, NODE or GROUP, and @CYCLE, given 0-1@soon"),
        (("-o", "x.gif"), "FILE.svg or FILE.png"),
        (("--metres", "1", "--link", "2"), "links of one length or of the cable plan, given both"),
    ],
)
def test_mistakes_are_told(polarfab: Run, folder: Path, words: tuple[str, ...], told: str) -> None:
    code, out, err = polarfab("simulate", folder, *words)
    assert (code, out) == (2, "")
    assert told in err


def test_a_collective_has_a_time(polarfab: Run, folder: Path) -> None:
    words = ("simulate", folder, "--collective", "ring-allreduce", "--size", "4096")
    code, out, _ = polarfab(*words)
    assert code == 0
    assert "lab: ring-allreduce of 4,096 bytes over 26 hosts takes " in out
    found = json.loads(polarfab(*words, "--json")[1])
    assert (found["messages"], found["lost"]) == (26 * 2 * 25, 0)
    assert found["seconds"] == pytest.approx(found["cycles"] * 1.28e-9)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--collective", "ring"), "ring-allreduce, tree-allreduce"),
        (
            ("--collective", "sweep3d", "--load", "0.1"),
            "--collective without --load, -o, --scheduler, --runs, given --load",
        ),
    ],
)
def test_what_does_not_go_with_a_collective(
    polarfab: Run, folder: Path, words: tuple[str, ...], told: str
) -> None:
    code, out, err = polarfab("simulate", folder, *words)
    assert (code, out) == (2, "")
    assert told in err
