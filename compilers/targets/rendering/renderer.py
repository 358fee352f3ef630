"""Renders the templates of a target with Jinja, and writes the files of every node.

A target computes the variables and calls a `Renderer`, which does not know what the variables mean.
If there are templates of the user or of another package, all templates run in Jinja's sandbox: they
see no internals of Python, and change no value.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2.exceptions import TemplateNotFound
from jinja2.utils import object_type_repr

from compilers.tables.build import Build
from compilers.tables.folders.written_file import unwritable_folder
from compilers.targets.node_facts import UserVariables, names_by_file
from compilers.targets.template_check import SEE_MANUAL, check_templates
from compilers.workers.local_processes import on_all_cores
from inventory.problems import InputError
from templates import environment

UNSAFE = "print only what the target gives"
"""What to do about a template that the sandbox refuses."""


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """How much a target wrote."""

    files: int = 0
    """The number of files."""
    bytes: int = 0
    """The number of their bytes."""

    def __add__(self, other: WrittenFiles) -> WrittenFiles:
        return WrittenFiles(self.files + other.files, self.bytes + other.bytes)

    def __sub__(self, other: WrittenFiles) -> WrittenFiles:
        return WrittenFiles(self.files - other.files, self.bytes - other.bytes)


def installed_nodes(
    build: Build, progress: Callable[[int, int], None] | None = None
) -> Iterator[tuple[int, str]]:
    """The vertex and the name of every node of a build that is installed.

    Args:
        build: the build.
        progress: called with (nodes done, all nodes).
    """
    present = np.flatnonzero(build.topology.present).tolist()
    for done, vertex in enumerate(present, start=1):
        yield vertex, build.wiring.names[vertex]
        if progress:
            progress(done, len(present))


class Renderer:
    """Renders the templates of one target; the user's templates replace those of the target.

    Args:
        target: the name of the target.
        folder: the folder of the target's templates.
        users_folder: the folder of the user's templates, which are checked here; None: there is
            none.
        files: the dataclass of the variables of each file, the files of a switch first.
        whole_fabric: whether the files are for the whole fabric, not for each switch.

    Raises:
        InputError: a template of the user is wrong.
    """

    def __init__(
        self,
        target: str,
        folder: Path,
        users_folder: Path | None,
        files: Mapping[str, type],
        whole_fabric: bool = False,
    ) -> None:
        self.target = target
        """The name of the target."""
        self.written = WrittenFiles()
        """The files that were written so far."""
        self._users_folder, self._folder = users_folder, folder
        self._environment = environment(users_folder, {target: folder})
        self._files: dict[type, list[str]] = {}
        """The names of files by the dataclass of their variables."""
        for file, variables in files.items():
            self._files.setdefault(variables, []).append(file)
        if users_folder:
            shipped = environment(None, {target: folder})
            names = names_by_file(files, whole_fabric)
            added_files = check_templates(target, users_folder, self._environment, shipped, names)
            # The first dataclass of `files` is that of a switch. The user's own files are printed
            # with its variables.
            files_of_switch = next(iter(self._files.values()))
            files_of_switch.extend(added_files)

    def write_switches(
        self,
        vertices: Sequence[int],
        write: Callable[[int], object],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Have the files of every switch written, on all cores.

        Args:
            vertices: the vertices of the switches.
            write: writes the files of one switch. It may run in another process, so it must not
                change anything else.
            progress: called with (switches done, all switches).

        Raises:
            InputError: a template is wrong, or a folder cannot be written.
        """

        def write_switch(vertex: int) -> WrittenFiles:
            # What this process has written before is not part of the result.
            written_before = self.written
            write(vertex)
            return self.written - written_before

        total = self.written
        for written in on_all_cores(write_switch, vertices, progress):
            total += written
        self.written = total

    def write(self, folder: Path, variables_class: type, variables: Mapping[str, Any]) -> None:
        """Render the files whose variables are of one dataclass into a folder.

        Each file is written as a whole or not at all.

        Args:
            folder: the folder.
            variables_class: the dataclass.
            variables: the variables by name.

        Raises:
            InputError: a template is wrong, or the folder cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file in self._files[variables_class]:
                self._put(folder, file, [self._render(file, variables).encode()])
        except OSError as error:
            raise unwritable_folder(folder, error) from error

    def refuse_template(self, file: str) -> None:
        """Refuse a template of the user for a file that is written without one.

        Raises:
            InputError: there is such a template.
        """
        if any(file in files for files in self._files.values()):
            raise InputError.of(
                file=f"{self._users_folder}/{self.target}/{file}.j2",
                required=f"no template for {file}: that file is not made from a template",
                given="one",
                todo="rename it, or take it away",
            )

    def write_bytes(self, folder: Path, file: str, chunks: Iterable[bytes]) -> None:
        """Write a file that no template prints into a folder.

        Raises:
            InputError: the folder cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._put(folder, file, chunks)
        except OSError as error:
            raise unwritable_folder(folder, error) from error

    def _put(self, folder: Path, file: str, chunks: Iterable[bytes]) -> None:
        """Write a file under a temporary name, then rename it, so that it is never half written."""
        part = folder / f".{file}.{os.getpid()}.part"
        try:
            with part.open("wb") as stream:
                size = sum(stream.write(chunk) for chunk in chunks)
            part.replace(folder / file)
        finally:
            part.unlink(missing_ok=True)
        self.written += WrittenFiles(1, size)

    def _render(self, file: str, variables: Mapping[str, Any]) -> str:
        """The text of a file.

        Raises:
            InputError: the template does not exist, or a template of the user or in the sandbox
                fails.
        """
        name = f"{self.target}/{file}.j2"
        try:
            return self._environment.get_template(name).render(variables)
        except Exception as error:
            is_of_others = self._users_folder is not None or self._environment.sandboxed
            if isinstance(error, TemplateNotFound) and (error.name == name or not is_of_others):
                required, given = "a template of each file of the target", f"no {error.name}"
                raise InputError.of(required, given, key=f"target {self.target}") from None
            if not is_of_others:
                raise  # a fault of polarfab
            folder = self._users_folder or self._folder
            raise _template_error(folder, name, variables, error) from error


def _template_error(
    folder: Path, name: str, variables: Mapping[str, Any], error: Exception
) -> InputError:
    """The error of a template that failed, with the innermost line that is in its folder.

    Args:
        folder: the folder of the user's templates, or of a target of another package.
        name: the name of the template in that folder.
        variables: the variables that it got.
        error: what it raised.
    """
    from jinja2.exceptions import SecurityError

    is_unsafe = isinstance(error, SecurityError | OverflowError)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    text = str(error).replace(object_type_repr(UserVariables()), "vars")
    given = "one that includes itself" if isinstance(error, RecursionError) else text
    documented = "a template of the documented variables"
    required = "a template in its sandbox" if is_unsafe else documented
    switch = f", for switch {variables['facts'].name}" if "facts" in variables else ""
    return InputError.of(
        file=inside[-1].filename if inside else str(folder / name),
        line=(inside[-1].lineno or 0) if inside else 0,
        required=required,
        given=(given or type(error).__name__) + switch,
        todo=UNSAFE if is_unsafe else SEE_MANUAL,
    )
