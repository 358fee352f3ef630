"""Graphs by family, before anything is compiled: build and compare them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from inventory.problems import InputError, Problem, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from compilers.evaluation.comparison.candidates import Candidate
    from compilers.forwarding.family_paths import FamilyPaths
    from compilers.topology.labelled_graph import Topology


def topology(family: str, **parameters: int | str | None) -> Topology:
    """The topology of a family, of those for comparison too: `topology("polarfly", q=7)`.

    Raises:
        InputError: there is no such family, its parameters have no construction, or memory cannot
            hold it.

    Example:
        >>> import polarfab
        >>> polarfab.topology("polarfly", q=7).graph.order
        57
    """
    from compilers.memory_bound import require_graph
    from compilers.topology.families import build_topology

    values = {
        name: int(value) if isinstance(value, Integral) else value  # NumPy's integers too
        for name, value in parameters.items()
    }
    require_graph(family, values)
    return build_topology(family, values)


@overload
def minimal_path(
    family: str, source: int, destination: int, **parameters: int | str
) -> list[int]: ...


@overload
def minimal_path(
    family: str,
    source: NDArray[np.integer],
    destination: NDArray[np.integer],
    **parameters: int | str,
) -> NDArray[np.int32]: ...


def minimal_path(family: str, source: Any, destination: Any, **parameters: int | str) -> Any:
    """A minimal path between two vertices, by the algebra of the family alone; no graph is built.

    PolarFly (PolarFly paper, §IV-D), PN (Projective Networks paper, Lemma 3.4), the orthogonal fat
    tree, and PolarStar (PolarStar paper, §9.2). A fabric whose tables spread traffic over several
    minimal paths may use another one than this: `Fabric.explain` has all that it uses.

    Args:
        family: its name in a spec.
        source: the number of a vertex, or int[P].
        destination: the number of a vertex, or int[P].
        parameters: those of the family.

    Returns:
        The vertices from the source to the destination; for arrays int32[P, L + 1] of the longest
        minimal path L, -1 behind the destination.

    Raises:
        InputError: the family has no paths by algebra, its parameters are wrong, or a vertex is
            none of its vertices (of the orthogonal fat tree: no leaf).

    Example:
        >>> import polarfab
        >>> polarfab.minimal_path("polarfly", 17, 400, q=31)
        [17, 440, 400]
    """
    import numpy as np

    paths = _family_paths(family, tuple(parameters.items()))
    if isinstance(source, Integral) and isinstance(destination, Integral):
        _require_ends(paths, int(source), int(destination))
        return paths.path(int(source), int(destination))
    ends = [np.asarray(end) for end in (source, destination)]
    if max(end.ndim for end in ends) != 1 or any(end.dtype.kind not in "iu" for end in ends):
        raise InputError.of("two integers, or two arrays int[P]", "others", key="source")
    if ends[0].ndim == ends[1].ndim and ends[0].shape != ends[1].shape:
        given = f"{len(ends[0]):,} and {len(ends[1]):,} vertices"
        raise InputError.of("two arrays of one length", given, key="source")
    ends = list(np.broadcast_arrays(*ends))
    problems = list[Problem]()
    for key, end in zip(("source", "destination"), ends, strict=True):
        others = end[~paths.may_end(end)]
        problems += paths.require_end(int(others[0]), key) if len(others) else []
    if problems:
        raise InputError(problems)
    return paths.paths(*(np.ascontiguousarray(end, np.int32) for end in ends))


def minimal_paths(
    family: str, source: int, destination: int, **parameters: int | str
) -> list[list[int]]:
    """All minimal paths between two vertices that the algebra of the family gives.

    These are all there are in PolarFly (one), PN and the orthogonal fat tree (one or q + 1). In
    PolarStar it is the one of its rule.

    Args and errors are those of `minimal_path`.

    Example:
        >>> import polarfab
        >>> polarfab.minimal_paths("pn", 0, 7, q=2)
        [[0, 8, 3, 7], [0, 10, 1, 7], [0, 12, 5, 7]]
    """
    paths = _family_paths(family, tuple(parameters.items()))
    _require_ends(paths, source, destination)
    return paths.every_path(source, destination)


@lru_cache(maxsize=16)
def _family_paths(family: str, parameters: tuple[tuple[str, int | str], ...]) -> FamilyPaths:
    from compilers.forwarding.family_paths import family_paths

    return family_paths(family, dict(parameters))


def _require_ends(paths: FamilyPaths, source: int, destination: int) -> None:
    """Pass when a path may begin at one vertex and end at the other.

    Raises:
        InputError: it may not.
    """
    problems = paths.require_end(source, "source") + paths.require_end(destination, "destination")
    if problems:
        raise InputError(problems)


def design(
    radix: int | Iterable[int] | None = None,
    min_nodes: int = 1,
    *,
    links_per_module: int | None = None,
    families: Iterable[str] = (),
    baselines: bool = False,
    best: bool = False,
    sort: str | None = None,
    prices: str | Path | None = None,
    hosts: int | None = None,
    ports: int | None = None,
    oversubscription: float = 1.0,
    budget: float | None = None,
    switches: int | None = None,
    diameter: int | None = None,
) -> list[Candidate]:
    """The fabrics that can be built, compared; sizes, cost and power come from formulas.

    Args:
        radix: fabric ports per node. A family with none of exactly one radix gives the next below;
            of several, exactly these; of None, each family's smallest with `min_nodes`.
        min_nodes: leave out smaller fabrics.
        links_per_module: of co-packaged optics.
        families: only these.
        baselines: also the families that the papers compare with.
        best: only the largest of each family at each radix; with `hosts` the cheapest of each.
        sort: the figure to put them in order by; "nodes" without it, with `hosts` "price".
        prices: YAML with other prices.
        hosts: in all, at most one more at a switch than at another; `radix` then means exactly
            these, and None any.
        ports: of a switch, for links and hosts. With `hosts` or `switches` only.
        oversubscription: hosts over those that uniform traffic can run at full rate for, at most.
            With `hosts` only, as is the next.
        budget: $ for switches and cables, at most.
        switches: about how many. Of each family the next size below and the next above, with the
            hosts that `ports` leave room for.
        diameter: the most links between two switches with hosts. With `hosts` or `switches` only.

    Raises:
        InputError: there is no such family or figure, the prices have mistakes, or all that fit
            cost more than the budget.

    Example:
        >>> import polarfab
        >>> [candidate.name for candidate in polarfab.design(radix=8, families=["polarfly"])]
        ['polarfly q=7']
    """
    from compilers.evaluation.comparison import designs
    from compilers.evaluation.comparison.candidates import candidate
    from compilers.evaluation.comparison.prices import prices as read_prices

    radixes = None if radix is None else [*radix] if isinstance(radix, Iterable) else [int(radix)]
    require_within(
        *(("radix", value, 0, 10**5) for value in radixes or ()),
        ("min_nodes", min_nodes, 0, 10**9),
        ("links_per_module", 1 if links_per_module is None else links_per_module, 1, 10**5),
        ("hosts", 1 if hosts is None else hosts, 1, 10**9),
        ("ports", ports or 0, 0, 10**5),
        ("switches", 1 if switches is None else switches, 1, 10**7),
        ("diameter", 1 if diameter is None else diameter, 1, 64),
    )
    cost = read_prices(prices)
    if links_per_module is not None:
        cost = replace(cost, links_per_module=links_per_module)
    among = designs.families(families, baselines)
    if switches is not None:
        if ports is None:
            required, todo = "the ports of a switch", "say how many, for links and hosts"
            raise InputError.of(required, "none", todo, key="ports")
        sized = designs.nearest(switches, ports, diameter, among, cost)
        return designs.ranked(designs.within_budget(sized, budget), sort or "nodes")
    if hosts is not None:
        sizing = designs.Sizing(hosts, ports, oversubscription, min_nodes, diameter)
        held = designs.within_budget(designs.holding(sizing, radixes, among, cost), budget)
        return designs.ranked(designs.cheapest(held) if best else held, sort or "price")
    exact = radixes if radix is None or isinstance(radix, Iterable) else int(radix)
    fitting = designs.chosen(exact, min_nodes, families, baselines)
    kept = designs.largest(fitting) if best else fitting
    return designs.ranked([candidate(chosen, cost) for chosen in kept], sort or "nodes")


def require_within(*bounds: tuple[str, int, int, int]) -> None:
    """Pass when numbers are within bounds: (key, given, least, most) of each.

    Raises:
        InputError: one is not.
    """
    for key, given, least, most in bounds:
        if not least <= given <= most:
            raise InputError.of(f"from {least} to {most:,}", shown(given), key=key)
