"""The programs that files can be exported for. A new one is a function, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from compilers.exports import kubernetes_labels, nccl_order, slurm_topology, topograph_model
from compilers.exports.simulators import booksim_network, ns3_program, simgrid_platform
from compilers.tables.build import Build

Files = Iterator[tuple[str, str]]


def each_plane(made: Callable[[Build], Files]) -> Callable[[Sequence[Build]], Files]:
    """Files of every plane; where there are several, in a folder of each."""

    def files(builds: Sequence[Build]) -> Files:
        for build in builds:
            folder = f"{build.name}/" if len(builds) > 1 else ""
            yield from ((folder + name, text) for name, text in made(build))

    return files


EXPORTS: dict[str, Callable[[Sequence[Build]], Files]] = {
    "slurm": slurm_topology.files,
    "topograph": topograph_model.files,
    "kubernetes": kubernetes_labels.files,
    "nccl": nccl_order.files,
    "simgrid": each_plane(simgrid_platform.files),
    "ns3": each_plane(ns3_program.files),
    "booksim": each_plane(booksim_network.files),
}
"""For each format the function from builds, one a plane, to names of files and their texts.

A name may have folders in it.
"""
