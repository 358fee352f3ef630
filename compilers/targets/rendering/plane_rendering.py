"""Rendering of a fabric: the files of a target for every plane, and reading them back."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from compilers.readers.emitted_report import EmittedReport, EmittedWrongError
from compilers.spec.target_names import SHIPPED
from compilers.tables.build import Build
from compilers.targets.options import Chosen, choose
from compilers.targets.rendering.rendered_folder import (
    edited,
    keep,
    put_rendered,
    rendered_lists,
    rendered_recipes,
)
from compilers.targets.rendering.text_target import Written, nodes
from compilers.targets.rendering.text_target import nodes as nodes_of
from compilers.targets.target import Target
from compilers.targets.target_lookup import target as target_of
from compilers.workers.source_digest import ROOMS, SOURCES, folder_digest, source_digest
from inventory.problems import InputError, Problem, did_you_mean, few, shown

ARCHIVES = {".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip", ".7z"}
"""How names end that a new folder would be a surprise under."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The files that were written for one plane: how many, how large, for how many nodes.

    checked: whether they were read back and say what the tables say; not_checked: why not. kept:
    how many were there already. edited: those that had been changed or removed by hand. unproved:
    see `EmittedReport`; "" where the files were there already.
    """

    build: str
    target: str
    folder: Path
    nodes: int
    files: int
    bytes: int
    checked: bool
    not_checked: str = ""
    kept: int = 0
    edited: tuple[str, ...] = ()
    unproved: str = ""


@dataclass(frozen=True, slots=True)
class PlaneRendering:
    """How the planes of a fabric are rendered.

    builds: one a plane. templates: a folder with templates of the user's own. options: of the
    target. nodes: names of the switches to write; none for all. progress: called with (switches
    done, all switches) for each plane. check: whether to read the files back and compare them with
    the tables. accept: see `Target.check_emitted`.
    """

    builds: Sequence[Build]
    target: str
    templates: Path | None = None
    options: Mapping[str, str] | None = None
    nodes: Sequence[str] = ()
    progress: Callable[[int, int], None] | None = None
    check: bool = True
    accept: Collection[str] = ()

    def into(self, place: Path) -> tuple[Rendering, ...]:
        """Write the files in PLACE/<node>/, of several planes in PLACE/plane-1/<node>/ and so on.

        They take the place of the target's earlier files there all at once.

        Raises:
            EmittedWrongError: the files say something else than the tables.
            InputError: the place is named as an archive, no switch has one of the names, or what
                the target's `render` raises.
        """
        if place.suffix in ARCHIVES and not place.is_dir():
            todo = f"name a folder, then: tar -czf {place.stem}.tar.gz FOLDER"
            raise InputError.of("a folder", str(place), todo, key="output")
        identities = {name: build.identity for name, build, _ in self._planes()}
        recipes: dict[str, str] = {}

        def fill(new: Path) -> tuple[Rendering, ...]:
            done = tuple(self._renewed(new, place, *plane) for plane in self._planes())
            if not self.nodes:
                for (above, build, _), each in zip(self._planes(), done, strict=True):
                    if recipe := self._recipe(above, build, each):
                        recipes[build.identity] = recipe
            return done

        part = bool(self.nodes)
        return put_rendered(place, self.target, identities, fill, part, recipes)

    def _recipe(self, above: str, build: Build, done: Rendering) -> str:
        """What the files follow from, where they are, and whether they were read back."""
        given = (self._target, self._chosen, self.templates, self.accept)
        found = recipe_of(build, *given)
        return found and f"{'read' if done.checked else 'unread'} {above}{found}"

    def _renewed(
        self, new: Path, place: Path, above: str, build: Build, only: list[int] | None
    ) -> Rendering:
        """Write the files of a plane that are not there already, for the same reasons."""
        earlier = (rendered_lists(place) or {}).get(self.target, {})
        listed = {name: digest for of in earlier.values() for name, digest in of.items()}
        mine = {name: digest for name, digest in listed.items() if name.startswith(above)}
        wrong = edited(place, mine) if mine and not self.nodes else []
        digests = earlier.get(build.identity, {})
        done = None if self.nodes else self._mended(new, place, above, build, digests, wrong)
        done = done or self._folder(new, place, above, build, only)
        return replace(done, edited=tuple(wrong))

    def _mended(
        self,
        new: Path,
        place: Path,
        above: str,
        build: Build,
        digests: Mapping[str, str],
        wrong: Sequence[str],
    ) -> Rendering | None:
        """Keep the files that are as they were written, and write the others; None: write all.

        Files of the same recipe with the same digests were read back when they were first written.
        """
        why = self._why_unread(None)
        done = self._rendering(build, place / above, Written(), None, why)
        known = rendered_recipes(place).get(self.target, {}).get(build.identity, "")
        if not digests or not known or known != self._recipe(above, build, done):
            return None
        vertices = {name: vertex for vertex, name in enumerate(build.wiring.names)}
        nodes = {name.removeprefix(above).split("/")[0] for name in wrong}
        if wrong and (self._target.whole_fabric or not nodes <= vertices.keys()):
            return None
        if wrong:
            again = sorted(vertices[node] for node in nodes)
            given = (self.templates, self.progress, self.options, again)
            self._target.render(build, new / above, *given)
        fresh = {name: digest for name, digest in digests.items() if (new / name).exists()}
        if edited(new, fresh):
            return None
        kept = [name for name in digests if name not in fresh]
        size = sum((new / name).stat().st_size for name in fresh) + keep(place, new, kept)
        return replace(done, files=len(digests), bytes=size, kept=len(kept))

    def _planes(self) -> list[tuple[str, Build, list[int] | None]]:
        """What the paths of each plane's files begin with, its build, its switches if named."""
        wanted = _vertices(self.builds, self.nodes)
        many = len(self.builds) > 1
        names = [f"plane-{plane}/" if many else "" for plane in range(1, len(wanted) + 1)]
        planes = zip(names, self.builds, wanted, strict=True)
        return [plane for plane in planes if plane[2] != []]

    def _why_unread(self, only: list[int] | None) -> str:
        """Why files are not read back, "" where they are."""
        if not self.check:
            return "not asked for"
        return self._target.unreadable(self._chosen, part=only is not None)

    @property
    def _target(self) -> Target:
        return target_of(self.target)

    @property
    def _chosen(self) -> Chosen:
        return choose(self.target, self._target.all_options, self.options)

    def _options_of(self, build: Build) -> Chosen | None:
        """Those of the plane that a build is."""
        plane = next(plane for plane, each in enumerate(self.builds) if each is build)
        return self._target.options_in(plane, self.options)

    def _folder(
        self, new: Path, place: Path, above: str, build: Build, only: list[int] | None
    ) -> Rendering:
        """Write the files of a plane below a folder, which takes the place of another."""
        options = self._options_of(build)
        given = (self.templates, self.progress, options, only)
        written = self._target.render(build, new / above, *given)
        unproved = ""
        if not (why := self._why_unread(only)):
            read = (build, new / above, options, only, self.progress, self.accept)
            report = self._target.check_emitted(*read).moved(new, place)
            if report.differences:
                raise EmittedWrongError(report)
            unproved = report.unproved
        return replace(self._rendering(build, place / above, written, only, why), unproved=unproved)

    def _rendering(
        self, build: Build, folder: Path, written: Written, only: list[int] | None, why: str
    ) -> Rendering:
        count = int(build.topology.present.sum()) if only is None else len(only)
        facts = (build.identity, self.target, folder, count)
        return Rendering(*facts, written.files, written.bytes, not why, why)


def _vertices(builds: Sequence[Build], names: Sequence[str]) -> list[list[int] | None]:
    """For each build the switches that have one of the names; None for all where none is given."""
    if not names:
        return [None] * len(builds)
    there = [{name: vertex for vertex, name in nodes_of(build)} for build in builds]
    problems = [
        Problem(
            key="node",
            required="the name of a switch of the build",
            given=shown(name),
            todo=did_you_mean(name, set().union(*there)),
        )
        for name in dict.fromkeys(names)
        if not any(name in of_plane for of_plane in there)
    ]
    if problems:
        raise InputError(few(problems))
    chosen = dict.fromkeys(names)
    return [[of_plane[name] for name in chosen if name in of_plane] for of_plane in there]


def recipe_of(
    build: Build,
    target: Target,
    chosen: Mapping[str, str],
    templates: Path | None,
    accept: Collection[str],
) -> str:
    """The digest of the build, the options, the templates and our own sources; "" where unknown.

    What a target of another package follows from is unknown.
    """
    file = Path(inspect.getfile(type(target)))
    if not any(file.is_relative_to(SOURCES / room) for room in ROOMS):
        return ""
    own = folder_digest(templates) if templates else ""
    options = sorted(chosen.items())
    parts = [build.identity, target.name, options, own, source_digest(), sorted(accept)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def check_planes(
    builds: Sequence[Build],
    folder: Path,
    target: str = "",
    options: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    accept: Collection[str] = (),
) -> tuple[EmittedReport, ...]:
    """Compare FOLDER/<node>/, or of several planes FOLDER/plane-1/<node>/ and so on, with tables.

    Args:
        builds: one a plane.
        folder: where `PlaneRendering` wrote.
        target: the target's name; "" for the one whose files are there.
        options: those that were given to `render`.
        progress: called with (switches done, all switches) for each plane.
        accept: see `Target.check_emitted`.

    Raises:
        InputError: nothing is there that can be read back, or what the target's `check` raises.
    """
    folders = [folder / f"plane-{n}" for n in range(1, len(builds) + 1)]
    folders = folders if len(builds) > 1 else [folder]
    if target:
        _require_some(builds[0], folders[0], target)
    chosen = target_of(target or written_by(builds[0], folders[0]))
    found = []
    for plane, (build, out) in enumerate(zip(builds, folders, strict=True)):
        own = chosen.options_in(plane, options)
        found.append(chosen.check_emitted(build, out, own, None, progress, accept))
    return tuple(found)


def written_by(build: Build, folder: Path) -> str:
    """The name of the target of polarfab whose files are in a folder.

    Raises:
        InputError: no target's, or those of several.
    """
    here = _file_names(build, folder)
    fitting = {name: set(target_of(name).files) for name in SHIPPED}
    fitting = {name: files for name, files in fitting.items() if files <= here}
    # What one target writes can be a part of what another does.
    largest = [n for n, f in fitting.items() if not any(f < other for other in fitting.values())]
    if len(largest) == 1:
        return largest[0]
    raise InputError.of(
        file=str(folder),
        key="emitted",
        required="a folder with what `render` wrote for one target",
        given=f"files of {' and of '.join(largest)}" if largest else "none of its files",
        todo="say which with `target`" if largest else "give the folder that render -o wrote",
    )


def _require_some(build: Build, folder: Path, target: str) -> None:
    """Refuse a folder that has no file of a target, but those of another."""
    if not set(target_of(target).files) & _file_names(build, folder):
        try:
            other = written_by(build, folder)
        except InputError:
            return
        raise InputError.of(
            file=str(folder),
            key="target",
            required=f"files of {target}",
            given=f"files of {other}",
            todo=f"`target {other}`, or the folder that was rendered for {target}",
        )


def _file_names(build: Build, folder: Path) -> set[str]:
    """The names of the files for all, for the first switch that has a folder, and for a host."""
    known = [name for _, name in nodes(build)]
    switch = next((folder / name for name in known if (folder / name).is_dir()), folder)
    host = next(folder.glob("hosts/*"), folder)
    return {path.name for place in (folder, switch, host) for path in place.glob("*")}
