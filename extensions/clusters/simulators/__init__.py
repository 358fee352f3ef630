"""Files for network simulators: the fabric with its rates, and the paths of the emitted tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from compilers.tables.build import Build

Files = Iterator[tuple[str, str]]


def each_plane(made: Callable[[Build], Files]) -> Callable[[Sequence[Build]], Files]:
    """Files of every plane; where there are several, in a folder of each."""

    def files(builds: Sequence[Build]) -> Files:
        for build in builds:
            folder = f"{build.name}/" if len(builds) > 1 else ""
            yield from ((folder + name, text) for name, text in made(build))

    return files
