"""Text targets: render templates and write files, whatever the target."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compilers.tables.build import Build
from compilers.targets.parallel import on_all_cores
from compilers.targets.template_check import Variables, check_templates
from inventory.problems import InputError, Problem
from templates import environment


@dataclass(frozen=True, slots=True)
class Written:
    """How much a target wrote."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(self.files + other.files, self.bytes + other.bytes)

    def __sub__(self, other: Written) -> Written:
        return Written(self.files - other.files, self.bytes - other.bytes)


def nodes(
    build: Build, progress: Callable[[int, int], None] | None = None
) -> Iterator[tuple[int, str]]:
    """The vertex and the name of every node that has a program, one after the other.

    Args:
        build: whose nodes.
        progress: called with (nodes done, all nodes).
    """
    present = np.flatnonzero(build.topology.present).tolist()
    for done, vertex in enumerate(present, start=1):
        yield vertex, build.wiring.names[vertex]
        if progress:
            progress(done, len(present))


class Renderer:
    """The templates of one target, those in the folder `own` before ours.

    Args:
        target: whose templates.
        own: the user's own, checked here.
        variables: those of each file.
        only: vertices of the switches to write; None for all.

    Raises:
        InputError: templates of the user's are wrong.
    """

    def __init__(
        self,
        target: str,
        own: Path | None,
        variables: Variables,
        only: Collection[int] | None = None,
    ) -> None:
        self.target = target
        self.written = Written()
        self._own, self._only = own, only
        self._environment = environment(own)
        if own:
            check_templates(target, own, self._environment, variables)

    def each(
        self,
        build: Build,
        write: Callable[[int, str], None],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Have the files of every node with a program written, on all cores.

        Args:
            build: whose nodes.
            write: writes those of a node, by vertex and name; what else it changes may be lost.
            progress: called with (nodes done, all nodes).

        Raises:
            InputError: a template is wrong, or a folder cannot be written.
        """

        def one(vertex: int) -> Written:
            before = self.written
            write(vertex, build.wiring.names[vertex])
            return self.written - before

        present = np.flatnonzero(build.topology.present).tolist()
        if self._only is not None:
            present = [vertex for vertex in present if vertex in self._only]
        total = self.written
        for done, here in enumerate(on_all_cores(one, present), start=1):
            total += here
            if progress:
                progress(done, len(present))
        self.written = total

    def write(self, folder: Path, files: Iterable[str], variables: Mapping[str, Any]) -> None:
        """Render FILE.j2 for each of `files` and put it in `folder`, whole or not at all.

        Raises:
            InputError: a template is wrong, or the folder cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file in files:
                self._put(folder, file, [self._render(file, variables).encode()])
        except OSError as error:
            raise _unwritable(folder, error) from error

    def write_bytes(
        self, folder: Path, file: str, chunks: Iterable[bytes], prove: Callable[[Path], None]
    ) -> None:
        """Put what no template prints in `folder`, once `prove` has read it there and is content.

        Raises:
            InputError: the folder cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._put(folder, file, chunks, prove)
        except OSError as error:
            raise _unwritable(folder, error) from error

    def _put(
        self,
        folder: Path,
        file: str,
        chunks: Iterable[bytes],
        prove: Callable[[Path], None] | None = None,
    ) -> None:
        beside = folder / f".{file}.{os.getpid()}.part"
        try:
            with beside.open("wb") as stream:
                size = sum(stream.write(chunk) for chunk in chunks)
            if prove:
                prove(beside)
            beside.replace(folder / file)
        finally:
            beside.unlink(missing_ok=True)
        self.written += Written(1, size)

    def _render(self, file: str, variables: Mapping[str, Any]) -> str:
        name = f"{self.target}/{file}.j2"
        try:
            return self._environment.get_template(name).render(variables)
        except Exception as error:
            if not self._own:
                raise
            raise _failed(self._own, name, error) from error


def _failed(own: Path, name: str, error: Exception) -> InputError:
    """What a template of the user's did when it was rendered, at the innermost line of its own."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(own)]
    return InputError(
        Problem(
            file=inside[-1].filename if inside else str(own / name),
            line=(inside[-1].lineno or 0) if inside else 0,
            required="a template of the documented variables",
            given=str(error) or type(error).__name__,
            todo="see the page of the target in docs/",
        )
    )


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(
        Problem(
            file=str(folder),
            required="a folder that can be written",
            given=error.strerror or str(error),
            todo="name another folder with -o, or make room",
        )
    )


def require_all(target: str, only: Collection[int] | None) -> None:
    """Pass when nobody asks for some nodes of a target that writes for the whole fabric.

    Raises:
        InputError: somebody does.
    """
    if only is not None:
        raise InputError(
            Problem(
                key="--node",
                required=f"no node: target {target} writes for the whole fabric",
                given=f"{len(only)}",
            )
        )
