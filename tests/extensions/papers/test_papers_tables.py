"""The papers' tables out of our formulas: what agrees, and every cell that does not."""

import pytest

from extensions.papers.paper_tables import QUANTITIES, paper_table, table_evidence

DIFFERENT: dict[str, dict[tuple[str, str], float]] = {
    "polarfly-5": {},
    "polarstar-3": {("PS-Pal", "routers"): 949, ("PS-Pal", "endpoints"): 4745},
    "projective-3": {},
    "projective-4": {
        ("dragonfly(7)", "electrical cables"): 9205,
        ("dragonfly(7)", "optical cables"): 4655,
        ("dragonfly(7)", "cost per host ($)"): 1410.06,
        ("dragonfly(7)", "subscription"): 0.9957,
        ("demi-PN(27)", "subscription"): 1.0,
    },
    "projective-5": {
        ("SF MMS(27)", "electrical cables"): 10206,
        ("SF MMS(27)", "optical cables"): 19683,
        ("SF MMS(27)", "cost per host ($)"): 1351.82,
        ("PN(31)", "power per host (W)"): 9.692,
        ("dragonfly(9)", "subscription"): 0.9973,
        ("demi-PN(37)", "subscription"): 1.0,
    },
    "projective-6": {},
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_cells(name):
    table = paper_table(name)
    found = {(c.network, c.quantity): c.computed for c in table.cells if c.differs}
    assert found == pytest.approx(DIFFERENT[name], abs=0.005)
    assert bool(table.corrections) or not found


@pytest.mark.parametrize("name", sorted({*DIFFERENT} - {"projective-3"}))
def test_a_cell_that_differs_is_corrected_by_the_notes_on_it_alone(name: str) -> None:
    """A subscription by another formula agreed, and the dragonfly had the demi-PN's note."""
    claims = {claim.says: claim for claim in table_evidence(name).claims}
    corrected = {says for says, claim in claims.items() if claim.verdict == "corrected"}
    assert corrected == {f"{network}: {quantity}" for network, quantity in DIFFERENT[name]}
    for says in corrected:
        network, _, quantity = says.partition(": ")
        assert claims[says].why.startswith((network, network.partition("(")[2].rstrip(")") + ":"))
        assert ("subscription" in claims[says].why) == (quantity == "subscription")
        assert says.startswith("demi-PN") or "demi-PN" not in claims[says].why


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
    monkeypatch.setitem(QUANTITIES, "endpoints", (lambda _: None, 0))
    table = paper_table("polarstar-3")
    assert [cell.quantity for cell in table.cells if cell.differs] == ["routers"]
    assert ["PS-IQ", "1,064", "15", "–"] in table.rows
    claims = [claim for claim in table_evidence("polarstar-3").claims if "endpoints" in claim.says]
    assert {claim.verdict for claim in claims} == {"not computed"}
