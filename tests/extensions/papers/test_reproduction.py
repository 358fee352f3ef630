"""The papers' tables and figures: verdicts follow from values, and every number is there."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from compilers.evaluation.analysis.bisection import bisection
from compilers.topology.families import build_topology
from extensions.papers.catalogue import PAPERS, exhibit, exhibits, reproduce
from extensions.papers.exhibit import VERDICTS, Evidence, PaperClaim
from extensions.papers.exhibit_files import cached_row, counts_of, files, page
from extensions.papers.polarstar.polarstar_tables import FEW_RADIXES
from extensions.papers.projective.measured_networks import measured_members
from manual.papers import count_rows, counts_in_words, reproduced

NUMBERED = {
    "polarfly": {"table": 6, "fig": 15},
    "polarstar": {"table": 3, "fig": 14},
    "projective": {"table": 6, "fig": 11},
}
"""How many tables and figures each paper has."""

STRICT = re.compile(r"\b(more than|later|longer|faster|slower|better|outperforms|lower|fewer)\b")
"""Words of statements that equal values do not satisfy."""

ROOT = Path(__file__).parents[3]
README, EVIDENCE = ROOT / "README.md", ROOT / "docs" / "evidence.md"
COUNTS = re.compile(rf"^\| ({'|'.join(VERDICTS)}|all) \| (\d+) \| ([\d,]+) \|\n", re.MULTILINE)
"""A row of the evidence: a verdict, and how many exhibits and statements have it."""

SLOW = (
    *(f"polarfly-fig{number}" for number in (8, 9, 10, 11)),
    *(f"polarstar-fig{number}" for number in (9, 10, 11, 12)),
)
"""Those that take seconds; `make docs` computes all."""


@cache
def computed(slow: bool) -> dict[str, Evidence]:
    """The evidence of all exhibits that take seconds, or of all others."""
    chosen = [each for each in exhibits() if (each.id in SLOW) == slow]
    return {each.id: found for each, found in reproduce(chosen, quick=True)}


def quick_evidence(name: str) -> Evidence:
    return computed(slow=False)[name]


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.long)])
def evidence(request: pytest.FixtureRequest) -> dict[str, Evidence]:
    return computed(slow=request.param)


def test_every_number_of_a_paper_is_there():
    for paper in PAPERS:
        for kind, count in NUMBERED[paper].items():
            numbers = [each.number for each in exhibits(paper) if each.kind == kind]
            assert numbers == list(range(1, count + 1))


def test_what_is_apart_has_a_reason(evidence):
    for name, found in evidence.items():
        assert found.verdict in VERDICTS
        assert found.verdict == "equal" or found.reasons, name
        apart = [
            c
            for c in found.claims
            if c.verdict in ("corrected", "differs", "contradicts", "not computed")
        ]
        assert [c.statement for c in apart if not c.why] == [], name


def test_an_exhibit_says_before_it_is_computed_whether_it_has_a_plot(evidence):
    for name, found in evidence.items():
        assert exhibit(name).has_plot == bool(found.panels), name


def test_words_of_a_strict_order_do_not_hold_between_equal_values(evidence):
    claims = [claim for found in evidence.values() for claim in found.claims]
    orders = [claim.statement for claim in claims if claim.relation in (">=", "<=")]
    assert [says for says in orders if STRICT.search(says)] == []


def test_every_exhibit_is_drawn_or_printed(evidence):
    for name, found in evidence.items():
        drawn = found.panels or found.diagrams
        assert drawn if "-fig" in name else found.rows, name


def test_a_verdict_follows_from_the_values():
    claim = PaperClaim("8/9", printed=0.889, computed=0.8889, rounding=0.0005)
    assert claim.verdict == "equal"
    assert replace(claim, computed=0.8897).verdict == "differs"
    assert replace(claim, computed=0.9, reading_error=0.02).verdict == "agrees"
    assert replace(claim, computed=0.95, reading_error=0.02).verdict == "differs"
    assert replace(claim, computed=0.95, correction="a slip").verdict == "corrected"
    assert replace(claim, interpretation="of one level").verdict == "reading"
    assert replace(claim, computed=0.95, interpretation="of one level").verdict == "differs"
    assert replace(claim, is_input=True).verdict == "taken"
    assert replace(claim, computed=None).verdict == "not computed"
    assert replace(claim, computed=0.95, relation=">=").verdict == "equal"
    assert replace(claim, computed=0.95, relation="<=").verdict == "contradicts"
    assert replace(claim, computed=float("nan")).verdict == "differs"
    assert replace(claim, computed=float("nan"), correction="a slip").verdict == "differs"
    assert Evidence((claim, replace(claim, computed=1.0))).verdict == "differs"


def test_a_strict_order_does_not_hold_between_equal_values():
    """ "Grows faster" was equal where both grew alike."""
    faster = PaperClaim("grows faster", printed=4, computed=5, relation=">")
    assert faster.verdict == "equal"
    assert replace(faster, computed=4).verdict == "differs"
    assert replace(faster, computed=3).verdict == "contradicts"
    sooner = replace(faster, relation="<", computed=3)
    assert (sooner.verdict, replace(sooner, computed=4).verdict) == ("equal", "differs")
    with pytest.raises(ValueError, match="strict order is not rounded"):
        replace(faster, rounding=0.5)


def test_what_is_put_in_or_left_out_makes_no_verdict():
    computed = PaperClaim("8/9", printed=0.889, computed=0.8889, rounding=0.0005)
    taken, left_out = replace(computed, is_input=True), replace(computed, computed=None)
    whole = Evidence((computed, taken, left_out))
    assert whole.verdict == "equal"
    assert whole.reasons == (
        "1 of 3 statements: taken.",
        "1 of 3 statements: not computed.",
    )
    assert dict(whole.counts()) == {"equal": 1, "taken": 1, "not computed": 1}
    assert Evidence((taken,)).verdict == "taken"
    assert Evidence((taken, left_out)).verdict == "not computed"
    mostly = Evidence((computed, taken, left_out, left_out))
    assert mostly.verdict == "not computed"
    assert "1 of 4 statements: equal." in mostly.reasons


def test_an_order_that_is_the_other_way_round_never_agrees():
    """ "PolarFly outperforms Dragonfly" agreed at .50 against .55, by a tolerance of .05."""
    order = PaperClaim("outperforms", printed=0.55, computed=0.5, relation=">=")
    assert (order.verdict, order.why) == ("contradicts", "not explained")
    assert replace(order, reason="as tested").why == "as tested"
    with pytest.raises(ValueError, match="no reading error"):
        replace(order, reading_error=0.05)
    size = PaperClaim("as much", printed=0.5, computed=0.5)
    assert Evidence((size, order)).verdict == "contradicts"


def test_a_sentence_of_several_reasons_is_said_once():
    price = PaperClaim("costs", printed=2, computed=3, reason="By the text's price. In print 2.5.")
    cables = replace(price, statement="cables", reason="By the text's price. Our racks have 5.")
    (why,) = Evidence((price, cables, replace(price, statement="hosts"))).reasons
    values = "2 in the paper, 3 computed"
    statements = f"costs: {values}; cables: {values}; hosts: {values}"
    assert why == f"{statements}. By the text's price. In print 2.5. Our racks have 5."


def test_a_quick_run_is_no_verdict():
    found = Evidence((PaperClaim("1", 1, 1),), is_quick=True)
    assert found.verdict == "not computed"
    assert found.reasons == ("of smaller sizes, where 1 of 1 statements hold",)


def test_statements_of_a_quick_run_have_no_verdict_either():
    order = PaperClaim("outperforms", printed=0.55, computed=0.5, relation=">=")
    each, found = exhibit("polarfly-fig8"), Evidence((order,), is_quick=True)
    text = dict(files(each, found, True))["verdict.json"]
    assert [claim["verdict"] for claim in json.loads(text)["claims"]] == ["not computed"]
    assert "| 0.5 | not explained |" not in "".join(page([(each, found)], PAPERS, ""))


def test_every_word_of_table_one_is_judged():
    claims = exhibit("polarfly-table1").compute(False).claims
    for word in ("direct", "modular", "expandable", "flexible", "diameter 2"):
        assert sum(f": {word}" in claim.statement for claim in claims) == 7


def test_files_of_an_exhibit_and_what_is_done_already(tmp_path: Path):
    each = exhibit("projective-fig1")
    evidence = {each.id: each.compute(True)}
    assert cached_row(tmp_path, each, True) is None
    (tmp_path / each.id).mkdir()
    for name, text in files(each, evidence[each.id], True):
        (tmp_path / each.id / name).write_text(text)
    assert name == "verdict.json"
    assert json.loads(text)["verdict"] == evidence[each.id].verdict
    row = each.row(evidence[each.id])
    assert cached_row(tmp_path, each, True) == row
    assert cached_row(tmp_path, each, False) is None
    file, whole = tmp_path / each.id / name, json.loads(text)
    for other in ({**whole, "code": "x"}, {"quick": True}, [], None):
        file.write_text(json.dumps(other))
        assert cached_row(tmp_path, each, True) is None
    file.write_text(text[:40])
    assert cached_row(tmp_path, each, True) is None
    assert "<svg" in (tmp_path / each.id / "projective-fig1-1.svg").read_text()


def test_the_page_has_every_exhibit():
    chosen = [exhibit(name) for name in ("projective-table1", "projective-fig2")]
    text = "".join(page(list(reproduce(chosen, quick=True)), PAPERS, "papers/"))
    assert "### projective-table1" in text
    assert "](papers/projective-fig2-1.svg)" in text


def test_the_page_lists_what_is_wrong_in_print_with_its_counter_example():
    chosen = [exhibit("polarstar-table3"), exhibit("projective-fig1")]
    text = "".join(page(list(reproduce(chosen, quick=True)), PAPERS, ""))
    (row,) = [line for line in text.splitlines() if line.startswith("| [PolarStar, table 3](")]
    assert "| = | 993 | 949 | PS-Pal: the largest Paley PolarStar of radix 15 is q=8" in row
    assert "| printed value (or ours, of the network compared with) | ours |" in text
    assert "| corrected | 1 | 2 |" in text


def test_the_page_says_which_verdict_each_statement_of_a_figure_has():
    text = "".join(page(list(reproduce([exhibit("projective-fig7")], quick=True)), PAPERS, ""))
    assert "| *corrected*: R = 4(q + 1)/3 is 4, 12 and 44" in text
    assert "| *reading*: Read as of scale" in text
    assert "| *not computed*: 2.7 % above it at q = 8." in text


def test_the_page_does_not_call_printed_what_ours_is_compared_with():
    """The routers of another network were "in print"."""
    text = "".join(page(list(reproduce([exhibit("polarstar-table1")], quick=True)), PAPERS, ""))
    assert "half marks above no ones (and 1 more): 6072 computed, which has to be > 3783. " in text


def test_the_page_says_which_printed_values_of_a_table_are_others():
    """One of a table was hidden behind another, which had the worse verdict."""
    chosen = [exhibit("projective-table4"), exhibit("polarfly-table1")]
    text = "".join(page(list(reproduce(chosen, quick=True)), PAPERS, ""))
    assert "- *differs*: SF MMS(19): subscription: 0.991 in the paper, 0.991678 computed." in text
    assert "- *differs*: Hamming K22²: cost per host ($) (and 1 more)" in text
    assert "- *not computed*: Slim Fly: expandable by units, and all cables stay" in text


def test_endpoints_of_table_five_are_no_result() -> None:
    claims = quick_evidence("polarfly-fig15").claims
    assert [claim.verdict for claim in claims][:4] == ["taken", "taken", "taken", "reading"]


def test_a_figure_of_bisection_says_of_which_links_a_fat_tree_is_drawn():
    """A cut has a quarter of all links; the paper's 50 % are of one of two levels."""
    tree = bisection(build_topology("fat-tree", {"k": 4, "pods": 4})).fraction
    found = quick_evidence("polarfly-fig12")
    (drawn,) = (c.y for c in found.panels[0].curves if c.name == "Fat tree")
    assert set(drawn) == {2 * 100 * tree}
    assert "a cut has a quarter of all links" in found.setup[1]
    says = {claim.statement: claim for claim in found.claims}
    growing = "reaching 50 % asymptotically: at q = 1,000,000,007 at least, by the eigenvalues"
    assert says[growing].verdict == "agrees"
    assert replace(says[growing], printed=0.49).verdict == "differs"
    flies = says["above all of METIS's cuts of Slim Fly there, by the eigenvalues"]
    assert (flies.verdict, round(flies.computed or 0, 4)) == ("equal", 0.3867)
    assert says["Fat tree: 50 %, at each: that which is farthest from it"].verdict == "reading"
    assert says["Slim Fly: 33 %, at the radix of Table V"].verdict == "reading"
    dragonfly = says["Dragonfly: 17 %, halves of its groups with h = 1,000"]
    assert dragonfly.verdict == "reading"
    assert dragonfly.why.endswith("METIS's cut has 18.0 %.")
    of_table_five = says["Dragonfly: 17 %, at the radix of Table V's balanced one, 17"]
    assert of_table_five.verdict == "differs"
    assert "18.0 %, and at the largest radix here 17.7 %" in of_table_five.why


def test_the_failures_and_radixes_of_which_the_paper_says_that_they_are_few():
    found = {each.statement: each for each in quick_evidence("polarstar-fig14").claims}
    diameters = [
        (found[says].printed, found[says].computed)
        for says in (
            "DF's diameter grows faster than PS-IQ's: links more with 5 % failed",
            "DF's diameter grows faster than PS-Pal's: links more with 5 % failed",
            "MF's diameter grows faster than FT's: links more with 5 % failed",
        )
    ]
    assert diameters == [(1, 2), (1, 2), (0, 3)]
    scale = {each.statement: each for each in quick_evidence("polarstar-fig1").claims}
    few = scale["Spectralfly has diameter 3 for very few radixes: fewer than any other"]
    assert (few.printed, few.computed) == (109, 20)
    assert "few radixes: 20 of 8 to 128" in FEW_RADIXES


def test_stability_of_cuts_is_not_told_by_a_third_of_the_radixes() -> None:
    """Inductive-Quad was "more stable" at radixes 9, 12, … 30: .033 against .040. At every radix
    from 9 to 24 it is .035 against .028, by METIS's cuts, which are upper bounds."""
    evidence = quick_evidence("polarstar-fig13")
    (stable,) = [each for each in evidence.claims if "more stable" in each.statement]
    assert stable.verdict == "not computed"
    assert stable.why.startswith("0.0348 against 0.0283.")
    assert "upper bounds" in stable.why
    assert evidence.setup[-1] == "Networks are the largest of their radix with each supernode."
    drawn = {curve.name: len(curve.x) for curve in evidence.panels[0].curves}
    assert (drawn["Inductive-Quad"], drawn["Paley"]) == (16, 16)


def test_what_formulas_assume_is_measured_or_not_computed() -> None:
    """k, u and the bound of figure 7 were the assumption, compared with itself."""
    claims = {claim.statement: claim for claim in quick_evidence("projective-table2").claims}
    for says in ("Delorme, quadrangles: lim u", "Delorme, hexagons: lim k̄"):
        assert claims[says].verdict == "not computed"
    assert claims["dragonfly: k, of n = 3"].computed == 3
    assert claims["hexagon incidence: k, of n = 3"].computed == 6
    of_pn = [one.utilisation for one in measured_members("PN")]
    assert claims["PN: lim u"].computed in of_pn
    assert claims["PN: lim u"].verdict == "reading"
    drawn = {
        claim.statement.partition(":")[0]: claim
        for claim in quick_evidence("projective-fig7").claims
    }
    assert drawn["hexagon incidence is not below the bound"].verdict == "equal"
    assert drawn["PN attains the bound"].verdict == "equal"
    assert drawn["PN attains the bound"].statement.endswith("built, of n = 5")
    assert drawn["Slim Fly MMS does not attain the bound"].statement.endswith("with R up to 64")
    assert drawn["dragonfly supersedes the 3D Hamming graph"].verdict == "reading"


def test_a_limit_names_the_large_network_that_is_near_it() -> None:
    """Some were called equal, or left unsaid that no such network is built, or exists."""
    near = [
        claim.statement
        for name in ("fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "table2")
        for claim in quick_evidence(f"projective-{name}").claims
        if claim.verdict == "agrees"
    ]
    sized = re.compile(r"(at|of) (q|n) = [\d,]+|at 1,200 vertices|attains the bound.*q = 2,048")
    assert near
    assert [says for says in near if not sized.search(says)] == []
    scaling = quick_evidence("projective-fig8").claims[:2]
    assert [claim.verdict for claim in scaling] == ["agrees", "agrees"]
    assert all("R = " in claim.statement and "by formula" in claim.statement for claim in scaling)
    of_moore = quick_evidence("projective-fig9").claims[2]
    assert "demi-PN's order by its formula; none has this Δ, 3,072" in of_moore.statement


def test_networks_of_a_table_are_named_where_one_is_corrected() -> None:
    """The Paley PolarStar of PolarStar's Table 3 cannot have the printed 993 routers."""
    networks, corrected, runs = quick_evidence("polarstar-fig14").setup
    assert "PS-Pal polarstar q=8 supernode=paley degree=6, 949 routers;" in networks
    assert "but for PS-Pal, of which that table prints 993 routers" in corrected
    assert "end when routers with hosts are disconnected" in runs


def test_statements_name_what_they_leave_out() -> None:
    """Figure 9 compared MMS and demi-PN only; hypercubes end far below R = 64; the text has lost
    PolarStar's figure 2; Bundlefly has no member of twelve radixes."""
    drawn, scaling, three = (quick_evidence(f"projective-fig{number}") for number in (7, 8, 9))
    cubes = [claim.statement for claim in drawn.claims if claim.statement.startswith("hypercube")]
    assert [says.endswith("by formulas, of 16 dimensions, R = 18") for says in cubes] == [True]
    for evidence in (drawn, scaling):
        text = " ".join(evidence.setup)
        assert "up to 16 dimensions" in text
        assert "Delorme's graph is drawn for q = 2 and 8" in text
        assert "on hexagons are left out" in text
    claims = {claim.statement.partition(":")[0]: claim for claim in three.claims}
    assert "MMS and PN" in claims["above 1000 compute nodes demi-PN is the cheapest"].statement
    assert claims["and in scale"].verdict == "reading"
    assert "are our choice" in quick_evidence("polarstar-fig2").setup[0]
    bundlefly = quick_evidence("polarstar-fig1").claims[0]
    assert bundlefly.statement.endswith("over the 109 that it has of radixes 8 to 128")


def test_the_readme_has_the_counts_of_the_evidence() -> None:
    rows = COUNTS.findall(EVIDENCE.read_text())
    assert [name for name, _, _ in rows] == [*VERDICTS, "all"]
    statements = Counter({name: int(number.replace(",", "")) for name, _, number in rows[:-1]})
    assert statements.total() == int(rows[-1][2].replace(",", ""))
    assert counts_in_words(statements) in " ".join(README.read_text().split())


@pytest.mark.long
def test_the_evidence_has_the_counts_of_all_verdicts(request: pytest.FixtureRequest) -> None:
    """With --update-golden it writes them."""
    exhibits_with, statements = counts_of(reproduced(""))
    rows, text = count_rows(exhibits_with, statements), EVIDENCE.read_text()
    if request.config.getoption("--update-golden"):
        first, last = [*COUNTS.finditer(text)][:: len(VERDICTS)]
        text = text[: first.start()] + rows + text[last.end() :]
        EVIDENCE.write_text(text)
        print(counts_in_words(statements))
    assert rows in text
