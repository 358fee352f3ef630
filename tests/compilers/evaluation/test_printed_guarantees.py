"""Every guarantee that README and the manual print, computed again by the dense method.

All paths of all pairs are followed forwards, the share of each pair on each link is a matrix, and
the worst permutation of each link is an assignment. The product goes backwards from links instead,
looks at one link of those that are alike, and has bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.optimize import linear_sum_assignment

from benchmarks.carried_shares import (
    COMPARISON,
    HOSTS,
    POLICIES,
    README,
    ROOT,
    fabric_of,
    hosts_of,
    table,
)
from compilers.evaluation.guarantee import guarantee
from compilers.forwarding.host_paths import TabulatedHops
from compilers.forwarding.program import program_of
from compilers.forwarding.walks import Walks
from compilers.tables.build import Build
from polarfab import Fabric
from tests.compilers.evaluation.test_tradeoff import BALANCES, rows
from tests.compilers.evaluation.test_tradeoff import PAGE as THROUGHPUT

EVIDENCE = ROOT / "docs/evidence.md"
FINDINGS = ROOT / "docs/concepts/what-we-found.md"
Topology = dict[str, int | str]
Printed = tuple[str, str, Topology, float, str]
"""The page, the policy, the fabric, its hosts a switch, and what is printed in per cent."""
STAR_HOSTS = {3: 2, 4: 2, 5: 3}
WORST_CASE = ", adjacent: bounce, demand: worst-case"
BARE = "protect: none"
"""Of the figures for other sizes and families; those of the tables have `protect: node`."""
IQ: Topology = {"family": "polarstar", "supernode": "inductive-quad", "degree": 3}


def dense(build: Build, hosts: float) -> float:
    """The guarantee with as many hosts at every endpoint."""
    program, ends = program_of(build), np.flatnonzero(build.topology.endpoints)
    hops = TabulatedHops.of(Walks.of(build), program, np.zeros(0, np.int64))
    source, destination = (x.ravel() for x in np.meshgrid(ends, ends, indexing="ij"))
    paths = hops.paths(source, destination)
    load = np.zeros((program.far.size, len(source)))
    for arc in paths.arcs:
        some = np.flatnonzero(arc >= 0)
        np.add.at(load, (arc[some], paths.pair[some]), paths.share[some])
    peak = 0.0
    for one in load.reshape(len(load), len(ends), len(ends)):
        np.fill_diagonal(one, 0)
        if one.any():
            peak = max(peak, float(one[linear_sum_assignment(one, maximize=True)].sum()))
    return min(1.0, 1 / (hosts * peak))


def of_pages() -> Iterator[Printed]:
    """All figures of the tables that measure, and those of other sizes."""
    for page in (POLICIES, COMPARISON):
        headings, *rows = table(page)
        for policy, *cells in rows:
            if not policy.startswith("balance: "):
                continue
            for heading, printed in zip(headings[1:], cells, strict=True):
                figure = printed.removesuffix(" %").split(", ")[-1]
                if figure not in ("refused", "–"):
                    topology = fabric_of(heading)
                    yield page.name, policy, topology, hosts_of(topology), figure
    for policy, _, *cells in table(README)[1:]:
        if policy.startswith("balance: ") and cells[-1] != "–":
            yield README.name, policy, fabric_of("PolarFly"), HOSTS, cells[-1].removesuffix(" %")
    yield from of_sizes()
    yield from of_minimal_shares()
    yield from of_sentences()


def of_sizes() -> Iterator[Printed]:
    """Other sizes and families: a row a family, with figures of three sizes in a cell."""
    text = POLICIES.read_text().partition("The guarantees of other sizes and families")[2]
    heading, _, *rows = (line for line in text.splitlines() if line.startswith("|"))
    policies = ["minimal", "ecmp", "compact-valiant", f"compact-valiant{WORST_CASE}"]
    policies += ["spread", "valiant"]
    assert heading.count("|") == len(policies) + 2
    for row in rows[:3]:
        name, *cells = (cell.strip() for cell in row.split("|")[1:-1])
        family, orders = name.partition(" q = ")[::2]
        for policy, cell in zip(policies, cells, strict=True):
            figures = cell.removesuffix(" %").split(", ")
            for q, figure in zip((3, 4, 5), figures, strict=False):
                star = family == "PolarStar"
                topology = (IQ if star else {"family": family.lower()}) | {"q": q}
                hosts = STAR_HOSTS[q] if star else (q + 1) / 2
                if figure.isdecimal():
                    assert orders == "3, 4, 5"
                    yield POLICIES.name, f"balance: {policy}, {BARE}", topology, hosts, figure
    sentence = re.search(r"PolarFly of q = 7, 13 and 31 guarantees(.*?)\.\n", text, re.S)
    assert sentence
    for figures, policy in re.findall(r"([\d., and]+) % with\s+`([a-z-]+)`", sentence[1]):
        for q, figure in zip((7, 13, 31), re.findall(r"\d+\.\d", figures), strict=True):
            topology = {"family": "polarfly", "q": q}
            yield POLICIES.name, f"balance: {policy}, {BARE}", topology, (q + 1) / 2, figure


def of_minimal_shares() -> Iterator[Printed]:
    """The table of parts that take minimal paths."""
    printed, topology = rows(), fabric_of("PolarFly")
    parts = ["equal-cost", *(f"{tenth / 10}" for tenth in range(11))]
    for words, balance in BALANCES.items():
        line = printed[f"{words}, guaranteed" if balance == "spread" else "the same, guaranteed"]
        for part, figure in zip(parts, line, strict=True):
            policy = f"balance: {balance}, minimal_share: {part}, {BARE}"
            yield THROUGHPUT.name, policy, topology, HOSTS, f"{figure:.1f}"


def of_sentences() -> Iterator[Printed]:
    """Figures in the text."""
    fly = fabric_of("PolarFly")
    (left,) = figures_in(POLICIES, r"repair ports: ([\d, ]+) % are left")
    for (q, hosts), figure in zip(STAR_HOSTS.items(), left.split(", "), strict=True):
        yield POLICIES.name, "balance: spread", IQ | {"q": q}, hosts, figure
    small = fly | {"q": 3}
    sentence = r"four hosts a switch, 0\.4 guarantees (\S+) %, and `equal-cost` (\S+) %"
    mixed, equal = figures_in(THROUGHPUT, sentence)
    yield THROUGHPUT.name, f"balance: spread, minimal_share: .4, {BARE}", small, HOSTS, mixed
    yield THROUGHPUT.name, f"balance: spread, {BARE}", small, HOSTS, equal
    bounce = "balance: compact-valiant, adjacent: bounce"
    (bounced,) = figures_in(THROUGHPUT, r"traffic gets 56\.5 %, and (\S+) % are guaranteed")
    yield THROUGHPUT.name, bounce, fly, HOSTS, bounced
    fitted, equal, best = figures_in(
        THROUGHPUT,
        r"fabric, (\S+) % are guaranteed with .*Without it (\S+) % .* and (\S+) % with the best",
    )
    protected = figures_in(
        THROUGHPUT, r"`protect: node` the three figures are (\d+), (\d+) and (\d+)"
    )
    policies = f"balance: compact-valiant{WORST_CASE}", bounce, f"{bounce}, minimal_share: 0.5"
    for policy, bare, figure in zip(policies, (fitted, equal, best), protected, strict=True):
        yield THROUGHPUT.name, f"{policy}, {BARE}", small, 1, bare
        yield THROUGHPUT.name, policy, small, 1, figure
    some, minimal = figures_in(FINDINGS, r" (\S+) %, where minimal routes guarantee (\S+) %")
    yield FINDINGS.name, f"balance: compact-valiant, {BARE}", fly, HOSTS, some
    yield FINDINGS.name, f"balance: minimal, {BARE}", fly, HOSTS, minimal
    (spread,) = figures_in(FINDINGS, r"At q = 7 it guarantees (\S+) %")
    yield FINDINGS.name, f"balance: spread, {BARE}", fly, HOSTS, spread
    yield from of_repetitions()


def of_repetitions() -> Iterator[Printed]:
    """Figures of the tables that the text repeats."""
    sentences = (
        (POLICIES, r"at q = 7 `spread` guarantees (\d+) % and\s+`valiant` (\d+) %", (
            ("spread", "PolarFly"), ("valiant", "PolarFly"),
        )),
        (COMPARISON, r"of both is `valiant`: PolarFly gets (\d+) %, and Jellyfish (\d+) %", (
            ("valiant", "PolarFly"), ("valiant", "Jellyfish"),
        )),
        (COMPARISON, r"`valiant` it guarantees (\S+) %, and PolarFly (\d+) %\.", (
            ("valiant", "HyperX"), ("valiant", "PolarFly"),
        )),
        (COMPARISON, r"of\s+`spread` is lower: (\d+) % for HyperX, and (\d+) % for PolarFly", (
            ("spread", "HyperX"), ("spread", "PolarFly"),
        )),
        (COMPARISON, r"Dragonfly\+ guarantees only (\d+) %, a third of the (\d+) %", (
            ("ecmp", "Dragonfly+"), ("valiant", "PolarFly"),
        )),
        (COMPARISON, r"With `balance: ecmp` alone,[^.]* tree guarantees (\d+) %", (
            ("ecmp", "fat tree k = 6"),
        )),
    )  # fmt: skip
    for page, sentence, sources in sentences:
        for (balance, name), figure in zip(sources, figures_in(page, sentence), strict=True):
            topology = fabric_of(name)
            yield page.name, f"balance: {balance}", topology, hosts_of(topology), figure


def figures_in(page: Path, sentence: str) -> tuple[str, ...]:
    """What stands in a sentence of a page, wherever its lines break."""
    match = re.search(sentence, " ".join(page.read_text().split()))
    assert match, f"{page.name} has no {sentence}"
    return match.groups()


CASES = [case for case in of_pages() if case[2].get("q") != 31]
QUICK = ("fat-tree", 4), ("oft", 3), ("pn", 3), ("polarfly", 3), ("polarfly", 7)
"""Families and their sizes that take a second."""


def quick(topology: Topology, policy: str) -> bool:
    size = topology.get("q", topology.get("k"))
    if size == 7 and "minimal_share" in policy:
        return False
    return "worst-case" not in policy and (topology["family"], size) in QUICK


def build_of(topology: Topology, policy: str) -> Build:
    routing = yaml.safe_load(f"{{{policy}}}")
    routing.setdefault("protect", "node")
    spec = {"name": "lab", "topology": topology, "hosts_per_node": HOSTS, "routing": routing}
    return Fabric.from_spec(spec).compile().build


def test_pages_print_what_is_read_here() -> None:
    assert figures_in(EVIDENCE, r"manual \| (\d+) are computed again") == (f"{len(CASES)}",)
    pages = {"README.md", "policies.md", "comparison.md", "throughput.md", "what-we-found.md"}
    assert {case[0] for case in CASES} == pages


def test_pages_print_what_no_free_hop_exceeds() -> None:
    """q/((q - 1)p) at q = 7; that tables keep below it is tested with the guarantee."""
    bound = f"{100 * 7 / (6 * HOSTS):.0f}"
    assert figures_in(POLICIES, r"q/\(\(q − 1\)p\)\.[^%]* (\d+) %") == (bound,)
    no_mark = r"no \[mark in the\s+packet\]\S+ can\s+guarantee more than (\d+) %"
    assert figures_in(FINDINGS, no_mark) == (bound,)


@pytest.mark.parametrize(
    ("page", "policy", "topology", "hosts", "printed"),
    [
        pytest.param(*case, marks=() if quick(case[2], case[1]) else pytest.mark.long)
        for case in CASES
    ],
)
def test_a_printed_guarantee(
    page: str, policy: str, topology: Topology, hosts: float, printed: str
) -> None:
    half = 0.5 / 10 ** len(printed.partition(".")[2])
    share, guaranteed = both(policy, tuple(topology.items()), hosts)
    assert float(printed) == pytest.approx(100 * share, abs=half + 1e-9), page
    assert guaranteed == pytest.approx(min(1, share * hosts / whole(hosts)))


@cache
def both(
    policy: str, topology: tuple[tuple[str, int | str], ...], hosts: float
) -> tuple[float, float]:
    """The guarantee by the dense method, and by the product; pages print some twice."""
    build = build_of(dict(topology), policy)
    return dense(build, hosts), guarantee(build, whole(hosts)).share


def whole(hosts: float) -> int:
    return max(1, int(hosts))
