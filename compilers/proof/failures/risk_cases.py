"""Cases of failures: links, nodes, groups that share a risk, and several of these at once.

A kind is `link`, `node`, one of `compilers.wiring.shared_risk.GROUP_KINDS`, or a file of groups;
`A+B` is one of each at once, `2` and `3` so many links or nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import comb
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.wiring.shared_risk import GROUP_KINDS, RiskGroup, group_of_words, groups
from inventory.problems import InputError, did_you_mean, shown

SINGLE = ("link", "node", *GROUP_KINDS)
FAILURE_KINDS = (*SINGLE, "2", "3")
"""The kinds that have one meaning in every build: what its mark may list as proved."""
FILES = (".yaml", ".yml", ".json")
Elements = tuple[int, ...]


def require_kind(word: str, key: str = "failures") -> None:
    """Pass for a kind of failures; `key` names where the word was given.

    Raises:
        InputError: it is none.
    """
    if word in FAILURE_KINDS or is_file(word):
        return
    parts = word.split("+")
    if len(parts) == 1 or any(part not in SINGLE for part in parts):
        required = f"some of {', '.join(FAILURE_KINDS)}; two at once as in module+node; or a file"
        todo = did_you_mean(word, FAILURE_KINDS)
        raise InputError.of(required, shown(word), todo, key=key)


def require_single(kind: str) -> None:
    """Pass for failures of one element or group.

    Raises:
        InputError: the kind is several at once, or none.
    """
    if kind not in SINGLE and not is_file(kind):
        required = f"failures of one at a time: {', '.join(SINGLE)}, or a file"
        raise InputError.of(required, shown(kind), did_you_mean(kind, SINGLE), key="failures")


def is_file(kind: str) -> bool:
    """Whether a kind is the name of a file of groups."""
    return kind.endswith(FILES)


def kind_words(kind: str) -> str:
    """A kind of failures in words: `link failures`, `a module and a node at once`."""
    words = {
        "link": "link failures",
        "node": "node failures",
        "2": "two failures at once",
        "3": "three failures at once",
        "risk": "failures of shared risks",
    }
    if "+" in kind:
        return f"{' and '.join(f'a {part}' for part in kind.split('+'))} at once"
    if is_file(kind):
        return f"failures of the groups in {Path(kind).name}"
    return words.get(kind, f"{kind} failures")


def elements(build: Build, group: RiskGroup) -> Elements:
    """The links and switches of a group, as elements of `Program`."""
    return _elements(group, link_numbers(build))


def _elements(group: RiskGroup, number: Mapping[tuple[int, int], int]) -> Elements:
    return (*(number[link] for link in group.links), *(len(number) + s for s in group.switches))


def link_numbers(build: Build) -> dict[tuple[int, int], int]:
    """The number of every link, by its switches, the smaller first."""
    ends = build.wiring.link_ends().tolist()
    return {(one, other): n for n, (one, other) in enumerate(ends)}


def named_elements(build: Build, kind: str) -> dict[str, Elements]:
    """The elements of every group of a kind, or of a file, by the group's name.

    Raises:
        InputError: there are none of this kind, or what a file says is wrong.
    """
    wiring, hardware = build.wiring, build.hardware
    risk_groups = _of_file(build, kind) if is_file(kind) else groups(wiring, hardware, kind)
    number = link_numbers(build)
    return {group.name: _elements(group, number) for group in risk_groups}


def fail_alike(one: Build, other: Build, kinds: Sequence[str]) -> bool:
    """Whether two builds with the same links have the same groups of these kinds, by any names.

    Raises:
        InputError: as for `named_elements`.
    """
    if one.hardware is other.hardware and one.wiring.names == other.wiring.names:
        return True
    parts = {part for kind in kinds for part in ([kind] if is_file(kind) else kind.split("+"))}
    return all(
        [*named_elements(one, part).values()] == [*named_elements(other, part).values()]
        for part in sorted(parts)
        if is_file(part) or part in GROUP_KINDS
    )


def _of_file(build: Build, file: str) -> Sequence[RiskGroup]:
    from inventory.document_errors import validate
    from inventory.floor import SharedRisks, repeated_names
    from inventory.yamlfile import read

    document = read(Path(file))
    listed = validate(SharedRisks, document).shared_risks
    if repeated := [*repeated_names(enumerate(listed))]:
        raise InputError(document.report(repeated))
    risk_groups, problems = list[RiskGroup](), []
    for i, risk in enumerate(listed):
        try:
            risk_groups.append(group_of_words(build.wiring, build.hardware, risk.name, risk.fails))
        except InputError as error:
            path = ("shared_risks", i, "fails")
            problems += [
                document.problem(path, p.required, p.given, p.todo) for p in error.problems
            ]
    if problems:
        raise InputError(problems)
    return risk_groups


def at_once(
    parts: Sequence[Sequence[Elements]], same: bool, sample: int, seed: int
) -> tuple[list[tuple[int, ...]], int]:
    """Cases of one of each part at once, by their numbers in the parts, and how many there are.

    All, or so many by chance.

    Args:
        parts: the groups of each kind.
        same: whether the kinds are one, so that the order of groups does not matter.
        sample: the most cases.
        seed: of chance.
    """
    sizes = [len(part) for part in parts]
    every = comb(sizes[0], len(parts)) if same else int(np.prod(sizes))
    random = np.random.default_rng(seed)
    chosen = set[tuple[int, ...]]()
    if every <= sample:
        grid = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1)
        cases = map(tuple, grid.reshape(-1, len(sizes)).tolist())
        chosen = {case for case in cases if not same or (np.diff(case) > 0).all()}
    while len(chosen) < min(sample, every):
        case = tuple(int(random.integers(size)) for size in sizes)
        case = tuple(sorted(case)) if same else case
        if not same or len({*case}) == len(case):
            chosen.add(case)
    return sorted(chosen), every


def padded(cases: Sequence[Elements], beyond: int) -> NDArray[np.int64]:
    """int64[n, F]: the elements of each case, `beyond` after the last."""
    most = max(map(len, cases), default=1)
    rows = [(*case, *(beyond,) * (most - len(case))) for case in cases]
    return np.array(rows, np.int64).reshape(-1, most)


def joined(case: Sequence[Elements]) -> Elements:
    """The elements of several groups, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(case)))
