"""A fabric for ns-3: its tables as a file, and a program whose switches forward by them."""

from __future__ import annotations

from collections.abc import Iterator

from compilers.tables.build import Build
from extensions.clusters.simulators import each_plane
from extensions.clusters.simulators.rated_links import RatedLinks
from extensions.clusters.simulators.table_text import table_text
from templates import TEMPLATES


def files(build: Build) -> Iterator[tuple[str, str]]:
    """`fabric.txt` and `fabric.cc`, which is the same for every fabric.

    Raises:
        InputError: the fabric has no hosts, or too many switches.
    """
    yield "fabric.txt", "".join(table_text(RatedLinks.of(build)))
    yield "fabric.cc", (TEMPLATES / "ns3" / "fabric.cc").read_text()


of_planes = each_plane(files)
