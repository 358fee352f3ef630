"""The cases of a kind of failure: which elements fail at once in each of them, all or a sample.

An *element* is what can fail: a cable, by its number from 0 to E - 1, or switch s, as E + s. A
*case* of a kind of failure is a set of elements that are down together. `failure_walks` makes the
`FailureCases` of a kind (`risk_cases`), and follows packets under each case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import Numbers, Walks
from compilers.proof.failures.risk_cases import Elements, kinds_at_once, named_elements

AT_ONCE = " and "
"""Joins the names of what fails at once; names have no spaces."""


@dataclass(frozen=True, slots=True, eq=False)
class FailureCases:
    """The cases of a kind of failure: how many there are, and which are tried.

    `tried_cases` lists the cases that are tried. It is None if all pairs of elements are tried,
    which need no list: case a·(E + S) + b has the elements a and b.
    """

    all_cases: int
    """How many cases there are."""
    elements: int
    """E + S, the number of cables and switches."""
    tried_cases: Numbers | None
    """int64[n, F], the failed elements of each case that is tried; smaller cases are filled up with
    E + S. None: all pairs."""
    names: tuple[str, ...] = ()
    """The name of each case; empty if cases are named by their elements."""

    @classmethod
    def of_elements(cls, walks: Walks, kind: str, sample: int, seed: int = 1) -> FailureCases:
        """Failures of links and nodes.

        Args:
            walks: of the build.
            kind: `link` or `node`, or a number: so many links or nodes at once.
            sample: the most cases of several failures at once.
            seed: of the sample.
        """
        links = np.arange(walks.cable_count)
        nodes = walks.cable_count + np.flatnonzero(walks.cabled)
        if kind in ("link", "node"):
            single = links if kind == "link" else nodes
            return cls(len(single), walks.elements, single[:, None])
        can_fail = np.concatenate((links, nodes))
        at_once = int(kind)
        all_cases = comb(len(can_fail), at_once)
        if all_cases > sample:
            sets = _sample_of_sets(len(can_fail), at_once, sample, seed)
            return cls(all_cases, walks.elements, can_fail[sets])
        # Pairs need no list, if packets take one path: `follow_pairs_of_failures` tries them all.
        if at_once == 2 and not walks.program.every_hop:
            return cls(all_cases, walks.elements, None)
        rows = np.array(list(combinations(can_fail.tolist(), at_once)))
        return cls(all_cases, walks.elements, rows)

    @classmethod
    def of_groups(cls, walks: Walks, kind: str, sample: int, seed: int) -> FailureCases:
        """Failures of groups that share a risk: of one kind, or a group of each of several kinds.

        Args:
            walks: of the build.
            kind: of `compilers.proof.failures.risk_cases`, such as `module` or `module+node`.
            sample: the most cases of several kinds at once; all cases of one kind are tried.
            seed: of the sample.

        Raises:
            InputError: the build has no groups of this kind.
        """
        kinds = kinds_at_once(kind)
        # For each kind, the names of its groups and the elements of each group.
        groups = [cls._groups(walks, single_kind) for single_kind in kinds]
        names = [list(groups_of_kind) for groups_of_kind in groups]
        elements = [list(groups_of_kind.values()) for groups_of_kind in groups]
        most = sample if len(kinds) > 1 else len(names[0])
        # A choice has the index of a group of each kind.
        choices, all_cases = _choices_of_groups(
            [len(groups_of_kind) for groups_of_kind in groups],
            is_one_kind=len({*kinds}) == 1,
            sample=most,
            seed=seed,
        )
        cases = [
            _union_of_groups([elements[i][n] for i, n in enumerate(choice)]) for choice in choices
        ]
        case_names = [AT_ONCE.join(names[i][n] for i, n in enumerate(choice)) for choice in choices]
        rows = _as_rows(cases, walks.elements)
        return cls(all_cases, walks.elements, rows, tuple(case_names))

    @classmethod
    def _groups(cls, walks: Walks, kind: str) -> dict[str, tuple[int, ...]]:
        """The elements of every group of one kind, by the group's name."""
        if kind not in ("link", "node"):
            return named_elements(walks.build, kind)
        single = cls.of_elements(walks, kind, 0)
        return {
            single.name(walks, case): tuple(single.failed(case)) for case in range(single.all_cases)
        }

    def name(self, walks: Walks, case: int) -> str:
        """What fails in a case: its group, or its nodes and links."""
        if self.names:
            return self.names[case]
        return AT_ONCE.join(map(walks.name, self.failed(case)))

    @property
    def tried_count(self) -> int:
        """The number of cases that are walked."""
        return self.all_cases if self.tried_cases is None else len(self.tried_cases)

    @property
    def failures_a_case(self) -> int:
        """The most elements that fail in a case."""
        return 2 if self.tried_cases is None else self.tried_cases.shape[1]

    def failed(self, case: int) -> list[int]:
        """The failed elements of a case."""
        if self.tried_cases is None:
            return list(divmod(case, self.elements))
        return [element for element in self.tried_cases[case].tolist() if element < self.elements]


def _sample_of_sets(elements: int, at_once: int, sample: int, seed: int) -> Numbers:
    """int64[sample, at_once]: `sample` different sets of `at_once` of the elements, at random."""
    random = np.random.default_rng(seed)
    sets: set[tuple[int, ...]] = set()
    while len(sets) < sample:
        numbers = tuple(sorted(random.integers(elements, size=at_once).tolist()))
        if len(set(numbers)) == at_once:
            sets.add(numbers)
    return np.array(sorted(sets))


def _choices_of_groups(
    group_counts: Sequence[int], is_one_kind: bool, sample: int, seed: int
) -> tuple[list[tuple[int, ...]], int]:
    """Cases in which one group of each kind fails at once.

    Args:
        group_counts: how many groups there are of each kind.
        is_one_kind: whether all kinds are the same, so that the order of groups does not matter and
            no group occurs twice in a case.
        sample: the most cases. If there are more, so many are chosen by chance.
        seed: of the choice.

    Returns:
        The cases, each an index of a group for each kind; and how many cases there are.

    >>> _choices_of_groups([2, 2], is_one_kind=False, sample=10, seed=1)
    ([(0, 0), (0, 1), (1, 0), (1, 1)], 4)
    """
    all_cases = comb(group_counts[0], len(group_counts)) if is_one_kind else prod(group_counts)
    chosen = set[tuple[int, ...]]()
    if all_cases <= sample:
        grid = np.stack(np.meshgrid(*map(np.arange, group_counts), indexing="ij"), axis=-1)
        cases = map(tuple, grid.reshape(-1, len(group_counts)).tolist())
        chosen = {case for case in cases if not is_one_kind or (np.diff(case) > 0).all()}
    random = np.random.default_rng(seed)
    while len(chosen) < min(sample, all_cases):
        case = tuple(int(random.integers(count)) for count in group_counts)
        if is_one_kind:
            case = tuple(sorted(case))
        if not is_one_kind or len({*case}) == len(case):
            chosen.add(case)
    return sorted(chosen), all_cases


def _as_rows(failures: Sequence[Elements], filler: int) -> NDArray[np.int64]:
    """int64[n, F]: the elements that fail in each of n cases, then the filler.

    >>> _as_rows([(3,), (1, 2)], filler=9).tolist()
    [[3, 9], [1, 2]]
    """
    most = max(map(len, failures), default=1)
    rows = [(*elements, *(filler,) * (most - len(elements))) for elements in failures]
    return np.array(rows, np.int64).reshape(-1, most)


def _union_of_groups(groups: Sequence[Elements]) -> Elements:
    """The elements of several groups, in order, each once.

    >>> _union_of_groups([(1, 2), (2, 3)])
    (1, 2, 3)
    """
    return tuple(dict.fromkeys(chain.from_iterable(groups)))
