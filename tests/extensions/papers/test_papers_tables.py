"""The papers' tables out of our formulas: what agrees, and every cell that does not."""

from dataclasses import replace

import pytest

from compilers.topology.families import build_topology
from extensions.papers import network_quantities
from extensions.papers.network_quantities import QUANTITIES, configuration
from extensions.papers.paper_tables import SOURCE, paper_table, table_evidence
from inventory.yamlfile import read

DIFFERENT: dict[str, dict[tuple[str, str], float]] = {
    "polarfly-5": {},
    "polarstar-3": {("PS-Pal", "routers"): 949, ("PS-Pal", "endpoints"): 4745},
    "projective-3": {},
    "projective-4": {
        ("dragonfly(7)", "electrical cables"): 9205,
        ("dragonfly(7)", "optical cables"): 4655,
        ("dragonfly(7)", "cost per host ($)"): 1410.0600,
        ("Hamming K22²", "cost per host ($)"): 1145.4156,
        ("demi-PN(27)", "cost per host ($)"): 1282.6010,
        ("SF MMS(19)", "cost per host ($)"): 1294.5194,
        ("SF MMS(19)", "subscription"): 0.9917,
        ("PN(23)", "cost per host ($)"): 1546.8364,
    },
    "projective-5": {
        ("SF MMS(27)", "electrical cables"): 10206,
        ("SF MMS(27)", "optical cables"): 19683,
        ("SF MMS(27)", "cost per host ($)"): 1351.8173,
        ("PN(31)", "power per host (W)"): 9.6923,
    },
    "projective-6": {
        ("MLFM 22", "cost per host ($)"): 1297.1923,
        ("OFT 16", "cost per host ($)"): 1282.1956,
    },
}
NOT_IN_PRINT = {
    ("dragonfly(7)", "electrical cables"),
    ("dragonfly(7)", "optical cables"),
    ("dragonfly(7)", "cost per host ($)"),
    ("SF MMS(27)", "electrical cables"),
    ("SF MMS(27)", "optical cables"),
    ("SF MMS(27)", "cost per host ($)"),
    ("PN(31)", "power per host (W)"),
}
"""The cells of the Projective Networks paper that are wrong in print."""


@pytest.mark.parametrize("name", DIFFERENT)
def test_cells(name):
    table = paper_table(name)
    found = {(c.network, c.quantity): c.computed for c in table.cells if c.differs}
    assert found == pytest.approx(DIFFERENT[name], abs=0.0005)
    told = bool(table.corrections) or all(c.reason for c in table.cells if c.differs)
    assert told


@pytest.mark.parametrize("name", sorted({*DIFFERENT} - {"projective-3"}))
def test_a_cell_that_differs_is_corrected_by_the_notes_on_it_alone(name: str) -> None:
    """A subscription by another formula agreed, and the dragonfly had the demi-PN's note."""
    claims = {claim.statement: claim for claim in table_evidence(name).claims}
    corrected = {says for says, claim in claims.items() if claim.verdict == "corrected"}
    wrong = DIFFERENT[name].keys() & NOT_IN_PRINT if "projective" in name else DIFFERENT[name]
    assert corrected == {f"{network}: {quantity}" for network, quantity in wrong}
    differs = {says for says, claim in claims.items() if claim.verdict == "differs"}
    others = DIFFERENT[name].keys() - wrong
    assert differs == {f"{network}: {quantity}" for network, quantity in others}
    assert all(claims[says].reason for says in differs)
    for says in corrected:
        network, _, quantity = says.partition(": ")
        assert claims[says].why.startswith((network, network.partition("(")[2].rstrip(")") + ":"))
        assert quantity != "subscription"


def test_every_printed_number_but_its_own_fails() -> None:
    """A cost passed three cents, and the subscription .991 passed for .992."""
    for name in ("polarfly-5", "projective-4", "projective-5", "projective-6"):
        for claim in table_evidence(name).claims:
            if claim.verdict in ("equal", "agrees", "reading"):
                assert claim.printed is not None
                unit = 2 * claim.rounding or 1
                for other in (claim.printed - unit, claim.printed + unit):
                    changed = replace(claim, printed=other).verdict
                    assert changed in ("differs", "corrected"), (name, claim.statement)


def test_all_costs_of_10000_nodes_are_those_at_another_price_of_optical_cables() -> None:
    """Fitted to nothing but the printed costs, and said of those that differ by a cent."""
    cents = 0
    for name in ("projective-4", "projective-6"):
        for claim in table_evidence(name).claims:
            if claim.statement.endswith("cost per host ($)") and claim.verdict == "differs":
                network = claim.statement.partition(":")[0]
                entry = read(SOURCE).data[name]["networks"][network]
                one = configuration(entry, 10_000)
                cables = one.design.links - one.electrical
                other = one.cost.dollars - 40 * 0.0002 * cables / one.total_hosts
                assert abs(other - (claim.printed or 0)) <= 0.005, network
                cents += 1
    assert cents == 6


@pytest.mark.parametrize("name", ["polarfly-5", "polarstar-3", "projective-5", "projective-6"])
def test_sizes_are_counted_in_built_graphs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The radix of a table chose the design, whose radix was then held against it."""
    cycle = build_topology("jellyfish", {"nodes": 12, "degree": 3})
    network_quantities.counts_of_design.cache_clear()
    monkeypatch.setattr(network_quantities, "build_topology", lambda *_: cycle)
    sizes = [
        cell
        for cell in paper_table(name).cells
        if cell.quantity in ("routers", "radix", "N", "endpoints", "T", "cables")
    ]
    network_quantities.counts_of_design.cache_clear()
    assert sizes
    assert all(cell.differs for cell in sizes)


def test_parameters_that_the_text_has_lost_are_a_reading() -> None:
    """Those of four networks were fitted to the printed routers, which were then called equal."""
    claims = {claim.statement: claim for claim in table_evidence("polarstar-3").claims}
    for name in ("PS-IQ", "Bundlefly (BF)", "3-D HyperX (HX)"):
        assert claims[f"{name}: radix"].verdict == "taken"
        for quantity in ("routers", "endpoints"):
            assert claims[f"{name}: {quantity}"].verdict == "reading"
            assert "has lost its parameters" in claims[f"{name}: {quantity}"].why
    assert claims["PS-Pal: routers"].verdict == "corrected"
    assert claims["Spectralfly (SF): radix"].verdict == "equal"


def test_the_routers_of_jellyfish_are_put_in() -> None:
    taken = [c.statement for c in table_evidence("polarfly-5").claims if c.verdict == "taken"]
    assert taken == ["Jellyfish (JF): routers", "Jellyfish (JF): radix"]


def test_more_compute_nodes_than_formula_one_allows_are_a_reading() -> None:
    found = [c for c in table_evidence("projective-4").claims if "Formula (1) allows" in c.why]
    assert {c.statement.partition(":")[0] for c in found} == {"Hamming K22²"}
    assert {c.verdict for c in found} == {"reading"}


def test_printed_formulas_of_sizes_are_exact():
    exact = [c for c in paper_table("projective-3").cells if c.quantity in ("N", "Δ")]
    for cell in exact:
        if not cell.network.startswith("complete graph"):
            assert f"{cell.computed:,.8g}" == cell.printed.rpartition("= ")[2]


def test_text_has_both_values_where_they_differ():
    table = paper_table("polarstar-3")
    assert ["PS-Pal", "949 (printed 993)", "15", "4,745 (printed 4965)"] in table.rows
    assert ["PS-IQ", "1,064", "15", "5,320"] in table.rows


def test_a_value_that_is_not_computed_does_not_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counted as 0, so its cell had two values that differ."""
    monkeypatch.setitem(QUANTITIES, "endpoints", lambda _: None)
    table = paper_table("polarstar-3")
    assert [cell.quantity for cell in table.cells if cell.differs] == ["routers"]
    assert ["PS-IQ", "1,064", "15", "–"] in table.rows
    claims = [
        claim for claim in table_evidence("polarstar-3").claims if "endpoints" in claim.statement
    ]
    assert {claim.verdict for claim in claims} == {"not computed"}
