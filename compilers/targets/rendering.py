"""Text targets: render templates and write files, whatever the target."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import TemplateError, TemplateSyntaxError

from compilers.build import Build
from compilers.targets.cores import on_all_cores
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
    """The templates of one target, those in the folder `own` before ours."""

    def __init__(self, target: str, own: Path | None = None) -> None:
        self.target = target
        self.written = Written()
        self._own = own
        self._environment = environment(own)

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
        except TemplateError as error:
            raise InputError(
                Problem(
                    file=str(self._own / name if self._own else name),
                    line=error.lineno if isinstance(error, TemplateSyntaxError) else 0,
                    required="a template of the documented variables",
                    given=error.message or type(error).__name__,
                    todo="see the page of the target in docs/",
                )
            ) from error


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(
        Problem(
            file=str(folder),
            required="a folder that can be written",
            given=error.strerror or str(error),
            todo="name another folder with -o, or make room",
        )
    )
