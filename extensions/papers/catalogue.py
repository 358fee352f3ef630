"""Every numbered table and figure of the papers that is reproduced, and their computation.

The verb and the library's function `reproduce` look exhibits up here, and have them computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from compilers.workers.shards import THIS_PROCESS, Workers
from extensions.papers.exhibit import Evidence, Exhibit
from extensions.papers.result_cache import caching_in
from inventory.problems import InputError, did_you_mean, not_among

PAPERS = {
    "polarfly": "PolarFly: A Cost-Effective and Flexible Low-Diameter Topology",
    "polarstar": "PolarStar: Expanding the Horizon of Diameter-3 Networks",
    "projective": "Projective Networks: Topologies for Large Parallel Computer Systems",
}
"""The titles of the papers, by their short names. A paper's exhibits are in a folder of that name.
"""


def exhibits(paper: str = "") -> list[Exhibit]:
    """All exhibits, or those of one paper.

    Raises:
        InputError: there is no such paper here.
    """
    if paper and paper not in PAPERS:
        raise InputError(not_among(paper, PAPERS, "paper"))
    papers = [paper] if paper else list(PAPERS)
    modules = (import_module(f"{__package__}.{name}.{name}_paper") for name in papers)
    return [exhibit for module in modules for exhibit in module.EXHIBITS]


def exhibit(exhibit_id: str) -> Exhibit:
    """The exhibit with an id such as `projective-fig7`.

    Raises:
        InputError: there is no such exhibit.
    """
    by_id = {exhibit.id: exhibit for exhibit in exhibits()}
    if exhibit_id not in by_id:
        todo = did_you_mean(exhibit_id, by_id, "polarfab reproduce list")
        raise InputError.of("a table or figure that is reproduced", exhibit_id, todo, key="FIGURE")
    return by_id[exhibit_id]


def reproduce(
    selected: Sequence[Exhibit],
    quick: bool = False,
    progress: Callable[[int, int], None] | None = None,
    workers: Workers = THIS_PROCESS,
    folder: Path | None = None,
) -> Iterator[tuple[Exhibit, Evidence]]:
    """Yield exhibits with what was computed for each, in their order, as soon as it is computed.

    Args:
        selected: some of `exhibits`.
        quick: whether networks of sizes that take seconds are simulated.
        progress: called with the number of exhibits that are done, and of all.
        workers: the processes that share the exhibits.
        folder: where simulated points of whole sizes are kept, and looked for.
    """
    ids = [exhibit.id for exhibit in selected]
    evidences = workers.over(_exhibit_computer, (quick, folder), ids)
    for done, (exhibit, evidence) in enumerate(zip(selected, evidences, strict=True), 1):
        yield exhibit, evidence
        if progress:
            progress(done, len(selected))


def _exhibit_computer(settings: tuple[bool, Path | None]) -> Callable[[str], Evidence]:
    """Make the function that computes an exhibit by its id, for one worker.

    Args:
        settings: the arguments `quick` and `folder` of `reproduce`.
    """
    quick, folder = settings
    by_id = {exhibit.id: exhibit for exhibit in exhibits()}

    def compute(exhibit_id: str) -> Evidence:
        """The evidence of an exhibit."""
        with caching_in(folder):
            return by_id[exhibit_id].compute(quick)

    return compute
