"""The library's functions for families of graphs: build them, find paths, and compare designs.

They take a family's name and its parameters, or limits such as a radix. No fabric is needed.
"""

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
    """The topology of a family, also of one for comparison: `topology("polarfly", q=7)`.

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
        name: int(value) if isinstance(value, Integral) else value  # also NumPy's integers
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
        family: the name of the family.
        source: the number of a vertex, or int[P].
        destination: the number of a vertex, or int[P].
        parameters: the parameters of the family.

    Returns:
        The vertices from the source to the destination. For arrays int32[P, L + 1], where L is the
        length of the longest minimal path, and -1 follows the destination.

    Raises:
        InputError: the family has no paths by algebra, its parameters are wrong, or the graph has
            no such vertex (in the orthogonal fat tree: no such leaf).

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
    sources, destinations = _vertex_arrays(source, destination)
    problems = list[Problem]()
    for key, vertices in (("source", sources), ("destination", destinations)):
        wrong = vertices[~paths.may_end(vertices)]
        if len(wrong):
            problems += paths.end_problems(int(wrong[0]), key)
    if problems:
        raise InputError(problems)
    return paths.paths(
        np.ascontiguousarray(sources, np.int32), np.ascontiguousarray(destinations, np.int32)
    )


def _vertex_arrays(source: Any, destination: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The sources and destinations as two arrays of one length, int[P] each.

    Raises:
        InputError: they are no integers, no arrays int[P], or of different lengths.
    """
    import numpy as np

    sources, destinations = np.asarray(source), np.asarray(destination)
    are_integers = sources.dtype.kind in "iu" and destinations.dtype.kind in "iu"
    if max(sources.ndim, destinations.ndim) != 1 or not are_integers:
        raise InputError.of("two integers, or two arrays int[P]", "others", key="source")
    if sources.ndim == destinations.ndim and sources.shape != destinations.shape:
        lengths = f"{len(sources):,} and {len(destinations):,} vertices"
        raise InputError.of("two arrays of one length", lengths, key="source")
    sources, destinations = np.broadcast_arrays(sources, destinations)
    return sources, destinations


def minimal_paths(
    family: str, source: int, destination: int, **parameters: int | str
) -> list[list[int]]:
    """All minimal paths between two vertices that the algebra of the family gives.

    In PolarFly (one), PN and the orthogonal fat tree (one or q + 1) these are all minimal paths.
    In PolarStar it is the one path that its routing rule gives.

    Args:
        family: the name of the family.
        source: the number of a vertex.
        destination: the number of a vertex.
        parameters: the parameters of the family.

    Raises:
        InputError: the family has no paths by algebra, its parameters are wrong, or the graph has
            no such vertex.

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
    """The paths of a family, by its parameters as pairs of a name and a value."""
    from compilers.forwarding.family_paths import family_paths

    return family_paths(family, dict(parameters))


def _require_ends(paths: FamilyPaths, source: int, destination: int) -> None:
    """Pass when a path may begin at one vertex and end at the other.

    Raises:
        InputError: one of the vertices is no such end.
    """
    problems = paths.end_problems(source, "source") + paths.end_problems(destination, "destination")
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
    """The fabrics that can be built, in order; sizes, cost and power come from formulas.

    Args:
        radix: the fabric ports per node. For one radix, a family without a fabric of this radix
            gives the next one below. For several, all fabrics have one of them. For None, each
            family gives its smallest fabric with `min_nodes`.
        min_nodes: the least nodes of a fabric.
        links_per_module: the links of a module with co-packaged optics.
        families: only these families; () for all.
        baselines: whether to list the families, too, that the papers compare with.
        best: whether to list only the largest fabric of each family at each radix; with `hosts`
            the cheapest fabric of each family.
        sort: the figure to sort by; None for "nodes", or with `hosts` for "price".
        prices: a YAML file with other prices.
        hosts: the hosts of the whole fabric. One switch has at most one host more than another.
            With it `radix` lists the radixes exactly, and None means any radix.
        ports: the ports of a switch, for links and hosts. With `hosts` or `switches` only.
        oversubscription: the largest ratio of the hosts to those that uniform traffic can serve at
            full rate. With `hosts` only.
        budget: the largest price of switches and cables in $. With `hosts` or `switches` only.
        switches: about how many switches. Each family gives the next size below and the next above,
            with as many hosts as `ports` have room for.
        diameter: the most links between two switches with hosts. With `hosts` or `switches` only.

    Raises:
        InputError: there is no such family or figure, the prices have mistakes, or all fabrics that
            fit cost more than the budget.

    Example:
        >>> import polarfab
        >>> [candidate.name for candidate in polarfab.design(radix=8, families=["polarfly"])]
        ['polarfly q=7']
    """
    from compilers.evaluation.comparison import designs
    from compilers.evaluation.comparison.candidates import candidate
    from compilers.evaluation.comparison.prices import prices as read_prices

    # Three questions: fabrics of about so many `switches`; fabrics for so many `hosts`; or, without
    # either, fabrics of a `radix`.
    radixes: list[int] | None = None
    if radix is not None:
        radixes = [*radix] if isinstance(radix, Iterable) else [int(radix)]
    for value in radixes or ():
        require_within("radix", value, 0, 10**5)
    require_within("min_nodes", min_nodes, 0, 10**9)
    require_within("links_per_module", links_per_module, 1, 10**5)
    require_within("hosts", hosts, 1, 10**9)
    require_within("ports", ports, 0, 10**5)
    require_within("switches", switches, 1, 10**7)
    require_within("diameter", diameter, 1, 64)
    cost = read_prices(prices)
    if links_per_module is not None:
        cost = replace(cost, links_per_module=links_per_module)
    among = designs.families(families, baselines)
    if switches is not None:
        if ports is None:
            required, todo = "the ports of a switch", "say how many, for links and hosts"
            raise InputError.of(required, "none", todo, key="ports")
        sized = designs.candidates_near_size(switches, ports, diameter, among, cost)
        return designs.rank_candidates(designs.within_budget(sized, budget), sort or "nodes")
    if hosts is not None:
        sizing = designs.Sizing(hosts, ports, oversubscription, min_nodes, diameter)
        candidates = designs.within_budget(
            designs.candidates_for_hosts(sizing, radixes, among, cost), budget
        )
        return designs.rank_candidates(
            designs.cheapest(candidates) if best else candidates, sort or "price"
        )
    # A single number lets families without a fabric of this radix give the next one below; a list
    # does not.
    one_or_several = radixes if radix is None or isinstance(radix, Iterable) else int(radix)
    fitting = designs.select_designs(one_or_several, min_nodes, families, baselines)
    if best:
        fitting = designs.largest_designs(fitting)
    return designs.rank_candidates([candidate(chosen, cost) for chosen in fitting], sort or "nodes")


def require_within(key: str, value: int | None, least: int, most: int) -> None:
    """Pass when a number is None or within bounds.

    Raises:
        InputError: it is not.
    """
    if value is not None and not least <= value <= most:
        raise InputError.of(f"from {least} to {most:,}", shown(value), key=key)
