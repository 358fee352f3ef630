"""`polarfab design` and `polarfab analyse` as they are typed."""

import csv
import io
import json

import pytest
import yaml
from click.testing import CliRunner

from polarfab.cli import cli


def run(*words: object) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_radix_15() -> None:
    rows = json.loads(run("design", "--radix", 15, "--json"))
    stars = [row for row in rows if row["family"] == "polarstar"]
    largest = {
        kind: max(row["nodes"] for row in stars if row["supernode"] == kind)
        for kind in ("inductive-quad", "paley")
    }
    assert largest == {"inductive-quad": 1064, "paley": 949}
    assert {row["family"] for row in rows} == {"polarfly", "polarstar", "pn", "oft"}


def test_best_of_a_range_is_one_of_each_a_radix() -> None:
    rows = json.loads(run("design", "--radix", "22..24", "--best", "--json"))
    keys = [(row["radix"], row["family"], row["supernode"]) for row in rows]
    assert len(keys) == len(set(keys))
    at_23 = max((row for row in rows if row["radix"] == 23), key=lambda row: row["nodes"])
    assert at_23["supernode"] == "paley"


def test_hardware_is_modules_times_links() -> None:
    rows = json.loads(run("design", "--modules", 4, "--links", 8, "--family", "polarfly", "--json"))
    assert [(row["radix"], row["nodes"], row["optical_modules"]) for row in rows] == [(32, 993, 4)]
    six = run("design", "--modules", 8, "--links", 4, "--family", "polarfly", "--json")
    assert json.loads(six)[0]["optical_modules"] == 8


def test_bisection_is_a_column_that_is_asked_for() -> None:
    words = ("design", "--radix", 8, "--family", "polarfly")
    assert "bisection" not in json.loads(run(*words, "--json"))[0]
    (row,) = json.loads(run(*words, "--bisection", "--json"))
    assert row["bisection_basis"] == "metis"
    assert 0.3 < row["bisection"] < 0.5
    assert f"≤{row['bisection']:.1%}" in run(*words, "--bisection")


def test_minimum_of_nodes_alone_and_with_a_radix() -> None:
    alone = json.loads(run("design", "--min-nodes", 1000, "--json"))
    assert {row["radix"] for row in alone if row["family"] == "polarfly"} == {33}
    both = json.loads(run("design", "--min-nodes", 1000, "--radix", 15, "--json"))
    assert [row["nodes"] for row in both] == [1064]


def test_csv_has_every_column_and_sorting() -> None:
    words = ["design", "--radix", 24, "--baselines", "--sort", "cost_per_host"]
    rows = list(csv.DictReader(io.StringIO(run(*words, "--format", "csv"))))
    assert set(rows[0]) == set(json.loads(run(*words, "--json"))[0])
    costs = [float(row["cost_per_host"]) for row in rows]
    assert costs == sorted(costs)
    assert "slimfly" in {row["family"] for row in rows}


def test_prices_change_the_order_of_things(tmp_path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("router_per_port: 0\nrouter_base: 0\nlink_gbps: 1\n")
    words = ["design", "--radix", 32, "--family", "polarfly", "--json"]
    (plain,), (cheap,) = json.loads(run(*words)), json.loads(run(*words, "--prices", file))
    optical = cheap["optical_cables"] * (7.7432 + (15888 - 10000) / 15000 * 0.1746)
    expected = (optical + cheap["electrical_cables"] * 0.985) / 15888
    assert cheap["cost_per_host"] == pytest.approx(expected)
    assert plain["cost_per_host"] > 50 * cheap["cost_per_host"]


def test_hosts_for_a_budget_cheapest_first_uneven_ones_too() -> None:
    rows = json.loads(run("design", "--hosts", 300, "--budget", 500_000, "--ports", 16, "--json"))
    prices = [row["price"] for row in rows]
    assert prices == sorted(prices)
    assert prices[-1] <= 500_000
    assert {row["hosts"] for row in rows} == {300}
    assert {row["router_ports"] for row in rows} == {16}
    first = rows[0]
    assert (first["family"], first["q"]) == ("polarfly", 8)
    assert (first["hosts_per_node"], first["one_host_more_at"]) == (4, 8)
    assert first["price"] == pytest.approx(300 * first["cost_per_host"])
    assert (first["uniform"], first["uniform_basis"]) == (pytest.approx(0.9), "estimate")
    assert (first["guaranteed"], first["guaranteed_basis"]) == (pytest.approx(0.42), "bound")


def test_hosts_fit_the_ports_and_the_oversubscription() -> None:
    words = ["design", "--hosts", 300, "--family", "polarfly", "--json"]
    none = CliRunner().invoke(cli, [*map(str, words), "--ports", "13"])
    assert (none.exit_code, json.loads(none.stdout)) == (1, [])
    assert {row["q"] for row in json.loads(run(*words, "--ports", 14))} == {8, 9}
    double = json.loads(run(*words, "--oversubscription", 2))
    assert min(row["q"] for row in double) == 7
    for row in double:
        assert row["hosts"] / row["nodes"] <= 2 * 1.005 * row["full_throughput_hosts"]
    assert {row["radix"] for row in json.loads(run(*words, "--radix", "8..9"))} == {9}
    best = json.loads(run("design", "--hosts", 300, "--best", "--json"))
    kinds = [(row["family"], row["supernode"]) for row in best]
    assert len(kinds) == len(set(kinds))


def test_the_column_that_was_sorted_by_is_there_at_80_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    heads = " ".join(run("design", "--radix", 15, "--sort", "cost_per_host").splitlines()[2:5])
    assert all(word in heads for word in (["$", "per", "host"]))


def test_a_table_for_hosts_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    heads = run("design", "--hosts", 300).splitlines()[2]
    for word in ("k$", "nodes", "links", "hops", "hosts", "uniform", "any", "ports"):
        assert word in heads


@pytest.mark.parametrize("family", ["polarfly", "oft"])
def test_what_hosts_get_is_written_compiles_and_verifies(tmp_path, family: str) -> None:
    words = ["design", "--hosts", 20, "--family", family, "--ports", 8]
    first = json.loads(run(*words, "--json"))[0]
    assert first["one_host_more_at"] > 0
    run(*words, "--write", tmp_path / "lab")
    run("compile", tmp_path / "lab" / "fabric.yaml", "-o", tmp_path / "build")
    proved = json.loads(run("verify", tmp_path / "build", "--json"))
    assert proved["delivered"] == proved["pairs"] > 0
    built = yaml.safe_load((tmp_path / "lab" / "fabric.yaml").read_text())
    assert built["hosts_per_node"] == first["hosts_per_node"] + 1
    facts = json.loads(run("check", "spec", tmp_path / "lab" / "fabric.yaml", "--json"))
    assert (facts["hosts"], facts["problems"]) == (20, 0)
    hardware = yaml.safe_load((tmp_path / "lab" / "inventory.yaml").read_text())
    assert hardware["node_types"]["switch"]["ports"][0]["count"] == 8


def test_analyse_all_of_a_polarfly() -> None:
    found = json.loads(run("analyse", "polarfly", "--q", 3, "--orders", 5, "--json"))
    assert (found["family"], found["nodes"], found["links"]) == ("polarfly", 13, 24)
    assert found["distances"]["diameter"] == 2
    assert found["load"]["max_load"] == 6
    assert found["resilience"]["runs"] == 5
    methods = [row["method"] for row in found["expansion"]["rows"]]
    assert methods[:1] + methods[1::4] == [None, "quadric", "fan"], "four clusters of each"
    assert 0 < found["bisection"]["fraction"] < 0.5


def test_analyse_for_people_and_as_csv() -> None:
    text = run("analyse", "polarfly", "--q", 3, "--what", "load, paths")
    assert "utilisation" in text
    assert "distances" not in text
    out = run("analyse", "dragonfly", "h=2", "--what", "distances", "--format", "csv")
    assert out.splitlines()[0] == "distance,pairs"
    assert sum(int(line.split(",")[1]) for line in out.splitlines()[1:]) == 36 * 35


def test_a_number_of_switches_has_neighbours_below_and_above() -> None:
    words = ["design", "--switches", 45, "--ports", 16, "--diameter", 2, "--json"]
    rows = json.loads(run(*words, "--family", "polarfly"))
    assert [(row["q"], row["nodes"], row["hosts_per_node"]) for row in rows] == [
        (7, 57, 4),
        (5, 31, 3),
    ]
    exact = json.loads(
        run("design", "--switches", 57, "--ports", 16, "--family", "polarfly", "--json")
    )
    assert [row["nodes"] for row in exact] == [57]
    everything = json.loads(run(*words, "--baselines"))
    assert max(row["host_diameter"] for row in everything) == 2
    assert max(row["router_ports"] for row in everything) == 16


def test_nothing_of_a_number_of_switches_says_what_to_allow() -> None:
    """--oversubscription goes with --hosts alone."""
    words = ["design", "--switches", "45", "--ports", "16", "--diameter", "1"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 1
    assert result.output.endswith("; allow more --ports or a larger --diameter\n")


def test_fewer_hosts_than_switches_are_said_to_be_too_few() -> None:
    """`allow more --ports or --oversubscription` helps nobody who asks for ten hosts."""
    result = CliRunner().invoke(cli, ["design", "--radix", "8", "--hosts", "10"])
    assert result.exit_code == 1
    assert ", one or more at each switch for hosts; allow " in result.output
    assert result.output.endswith(" or other --hosts\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ports", 16), "--ports needs --hosts or --switches"),
        (("--radix", 8, "--diameter", 2), "--diameter needs --hosts or --switches"),
        (("--switches", 45), "--switches needs --ports"),
        (("--switches", 45, "--ports", 16, "--hosts", 9), "say --hosts or --switches, not both"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[object, ...], message: str) -> None:
    sized = words if words[0] != "--ports" else ("--radix", 8, *words)
    result = CliRunner().invoke(cli, ["design", *map(str, sized)])
    assert result.exit_code == 2
    assert message in result.output


def test_a_fat_tree_has_no_more_core_routers_than_its_hosts_need() -> None:
    words = ["design", "--hosts", 256, "--ports", 16, "--family", "fat-tree", "--json"]
    first = json.loads(run(*words))[0]
    assert (first["nodes"], first["hosts_per_node"]) == (80, 8)
    assert first["parameters"] == {"k": 8, "pods": 4, "merged": 4}
