"""The kinds of failures that users can name, and the elements that fail in each case of a kind.

A kind is written as in `polarfab verify --failures`:

- `link` or `node`: each link, or each node;
- one of `compilers.wiring.shared_risk.GROUP_KINDS`, such as `module`: each group of links and nodes
  that share this risk;
- the name of a file: each group that the file lists;
- `module+node`: one group of each kind at once;
- `2` or `3`: two or three links or nodes at once.

The functions check a kind, say it in a sentence, and turn it into elements of `Program`: links by
their numbers, then switches. `failure_cases` makes cases of them: an element, a group, or a group
of each kind that is joined by `+` fails at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from compilers.tables.build import Build
from compilers.wiring.shared_risk import GROUP_KINDS, RiskGroup, risk_groups, union_of_named
from inventory.problems import InputError, did_you_mean, shown

SINGLE = ("link", "node", *GROUP_KINDS)
"""The kinds in which one element or one group fails."""
FAILURE_KINDS = (*SINGLE, "2", "3")
"""The kinds that mean the same in every build, so that its mark may list them as proved."""
FILES = (".yaml", ".yml", ".json")
"""How the names of files of groups end."""
Elements = tuple[int, ...]
"""Elements of `Program` that fail together."""


def require_kind(kind: str, key: str = "failures") -> None:
    """Pass if there is such a kind of failures.

    Args:
        kind: what a user wrote.
        key: names the option or argument in the error.

    Raises:
        InputError: it is no kind of failures.
    """
    if kind in FAILURE_KINDS or is_file(kind):
        return
    kinds = kind.split("+")
    if len(kinds) == 1 or any(single_kind not in SINGLE for single_kind in kinds):
        required = f"some of {', '.join(FAILURE_KINDS)}; two at once as in module+node; or a file"
        todo = did_you_mean(kind, FAILURE_KINDS)
        raise InputError.of(required, shown(kind), todo, key=key)


def require_single(kind: str) -> None:
    """Pass if a kind lets one element or one group fail.

    Raises:
        InputError: several fail at once, or there is no such kind of failures.
    """
    if kind not in SINGLE and not is_file(kind):
        required = f"failures of one at a time: {', '.join(SINGLE)}, or a file"
        raise InputError.of(required, shown(kind), did_you_mean(kind, SINGLE), key="failures")


def is_file(kind: str) -> bool:
    """Whether a kind is the name of a file of groups.

    >>> is_file("risks.yaml"), is_file("module")
    (True, False)
    """
    return kind.endswith(FILES)


def kinds_at_once(kind: str) -> list[str]:
    """The kinds of groups of which one fails each, in every case.

    >>> kinds_at_once("module+node"), kinds_at_once("two+two.yaml")
    (['module', 'node'], ['two+two.yaml'])
    """
    return [kind] if is_file(kind) else kind.split("+")


def kind_words(kind: str) -> str:
    """A kind of failures in words.

    >>> kind_words("link")
    'link failures'
    >>> kind_words("module+node")
    'a module and a node at once'
    """
    words_of_kind = {
        "link": "link failures",
        "node": "node failures",
        "2": "two failures at once",
        "3": "three failures at once",
        "risk": "failures of shared risks",
    }
    if "+" in kind:
        return f"{' and '.join(f'a {single_kind}' for single_kind in kind.split('+'))} at once"
    if is_file(kind):
        return f"failures of the groups in {Path(kind).name}"
    return words_of_kind.get(kind, f"{kind} failures")


def elements_of_group(build: Build, group: RiskGroup) -> Elements:
    """The elements of a group: its links, then its switches."""
    return _elements(group, element_of_links(build))


def _elements(group: RiskGroup, element_of_link: Mapping[tuple[int, int], int]) -> Elements:
    """The elements of a group, with `element_of_links` of its build."""
    cable_count = len(element_of_link)
    links = (element_of_link[link] for link in group.links)
    return (*links, *(cable_count + s for s in group.switches))


def element_of_links(build: Build) -> dict[tuple[int, int], int]:
    """The element of every link, by the pair of its switches, the smaller first."""
    ends = build.wiring.link_ends().tolist()
    return {(u, v): number for number, (u, v) in enumerate(ends)}


def named_elements(build: Build, kind: str) -> dict[str, Elements]:
    """The elements of every group of a kind, or of a file, by the group's name.

    Raises:
        InputError: the build has no groups of this kind, or the file is wrong.
    """
    wiring, hardware = build.wiring, build.hardware
    groups = _groups_in_file(build, kind) if is_file(kind) else risk_groups(wiring, hardware, kind)
    element_of_link = element_of_links(build)
    return {group.name: _elements(group, element_of_link) for group in groups}


def names_of_failures(build: Build, kind: str) -> list[str]:
    """The names of all that may fail in the cases of a kind: links and nodes, or groups.

    Builds that `fail_alike` have them in the same order.

    Raises:
        InputError: the build has no groups of this kind, or the file is wrong.
    """
    nodes = build.wiring.names
    links = [f"{nodes[u]}-{nodes[v]}" for u, v in build.wiring.link_ends().tolist()]
    names = list[str]()
    for single_kind in kinds_at_once(kind):
        if is_file(single_kind) or single_kind in GROUP_KINDS:
            names += named_elements(build, single_kind)
        else:
            names += [*links, *nodes]
    return names


def fail_alike(build: Build, compared: Build, kinds: Sequence[str]) -> bool:
    """Whether the same elements fail together in two builds with the same links.

    The names of the groups may differ.

    Args:
        build: one of the builds.
        compared: the other, with the same links.
        kinds: the kinds of failures that are compared.

    Raises:
        InputError: a build has no groups of a kind, or a file of groups is wrong.
    """
    if build.hardware is compared.hardware and build.wiring.names == compared.wiring.names:
        return True
    single_kinds = {single_kind for kind in kinds for single_kind in kinds_at_once(kind)}
    return all(
        [*named_elements(build, kind).values()] == [*named_elements(compared, kind).values()]
        for kind in sorted(single_kinds)
        if is_file(kind) or kind in GROUP_KINDS
    )


def _groups_in_file(build: Build, file: str) -> Sequence[RiskGroup]:
    """The groups that a file lists.

    Raises:
        InputError: all that is wrong with the file, with its lines.
    """
    from inventory.document_errors import validate
    from inventory.floor import SharedRisks, repeated_name_findings
    from inventory.yamlfile import read

    document = read(Path(file))
    listed = validate(SharedRisks, document).shared_risks
    if repeated := [*repeated_name_findings(enumerate(listed))]:
        raise InputError(document.report(repeated))
    groups, problems = list[RiskGroup](), []
    for i, risk in enumerate(listed):
        try:
            groups.append(union_of_named(build.wiring, build.hardware, risk.name, risk.fails))
        except InputError as error:
            path = ("shared_risks", i, "fails")
            problems += [
                document.problem(path, p.required, p.given, p.todo) for p in error.problems
            ]
    if problems:
        raise InputError(problems)
    return groups
