"""Renders the files of a target for every plane of a fabric, and reads them back.

Files that a folder has already are kept if they follow from the same recipe: the digest of the
build, the target's options, the user's templates and polarfab's own sources (`recipe_of`).
"""

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
from compilers.targets.node_systems import SYSTEMS, builds_for, system_target
from compilers.targets.options import Chosen
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
"""Suffixes of archives: a user who names one does not expect a folder."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The files of a target for one plane."""

    build: str
    """The identity of the build."""
    target: str
    folder: Path
    """The folder of the plane."""
    nodes: int
    """The number of nodes that have files."""
    files: int
    """The number of files."""
    bytes: int
    """The bytes of all files."""
    checked: bool
    """Whether the files were read back and forward as the tables do."""
    not_checked: str = ""
    """Why they were not read back; "" if they were."""
    kept: int = 0
    """The number of files that the folder had already."""
    edited: tuple[str, ...] = ()
    """The earlier files that had been changed or removed by hand."""
    unproved: str = ""
    """See `EmittedReport`; "" where the folder had the files already."""


@dataclass(frozen=True, slots=True)
class PlaneRendering:
    """The way in which the planes of a fabric are rendered."""

    builds: Sequence[Build]
    """A build for each plane."""
    target: str
    """The name of the target; "" for the system of each node."""
    templates: Path | None = None
    """A folder with templates of the user."""
    options: Mapping[str, str] | None = None
    """The options of the target, as texts by name."""
    nodes: Sequence[str] = ()
    """The names of the switches to write; () for all."""
    progress: Callable[[int, int], None] | None = None
    """Called with (switches done, all switches) for each plane."""
    check: bool = True
    """Whether to read the files back and compare them with the tables."""
    accept: Collection[str] = ()
    """Statements of the user that are accepted, see `Target.check_emitted`."""

    @property
    def part(self) -> bool:
        """Whether only some switches are written."""
        return bool(self.nodes)

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
            if not self.part:
                for (above, build, _), each in zip(self._planes(), done, strict=True):
                    if recipe := self._recipe(above, build, each):
                        recipes[build.identity] = recipe
            return done

        return put_rendered(place, self._target.name, identities, fill, self.part, recipes)

    def _recipe(self, above: str, build: Build, done: Rendering) -> str:
        """The recipe of a plane's files, with their folder and whether they were read back.

        "" where the recipe is unknown.
        """
        system = self._target_of(build)
        chosen = system.chosen(build, self.options)
        recipe = recipe_of(build, system, chosen, self.templates, self.accept)
        if not recipe:
            return ""
        return f"{'read' if done.checked else 'unread'} {above}{recipe}"

    def _renewed(
        self, new: Path, place: Path, above: str, build: Build, only: list[int] | None
    ) -> Rendering:
        """Write the files of a plane that the folder does not have from the same recipe.

        Args:
            new: the folder that is filled.
            place: the folder that `new` replaces afterwards.
            above: what the paths of the plane's files begin with.
            build: the build of the plane.
            only: the vertices of the switches to write; None for all.
        """
        earlier = (rendered_lists(place) or {}).get(self._target.name, {})
        listed = {name: digest for of in earlier.values() for name, digest in of.items()}
        of_plane = {name: digest for name, digest in listed.items() if name.startswith(above)}
        changed = edited(place, of_plane) if of_plane and not self.part else []
        digests = earlier.get(build.identity, {})
        done = None if self.part else self._mended(new, place, above, build, digests, changed)
        done = done or self._folder(new, place, above, build, only)
        return replace(done, edited=tuple(changed))

    def _mended(
        self,
        new: Path,
        place: Path,
        above: str,
        build: Build,
        digests: Mapping[str, str],
        changed: Sequence[str],
    ) -> Rendering | None:
        """Keep the files that are as they were written, and write the others again.

        Files of the same recipe with the same digests were read back when they were first written.

        Args:
            new: the folder that is filled.
            place: the folder that `new` replaces afterwards.
            above: what the paths of the plane's files begin with.
            build: the build of the plane.
            digests: of the files that were written for this build.
            changed: the files that differ from what was written.

        Returns:
            The files, or None where all have to be written.
        """
        why = self._why_unread(build, None)
        done = self._rendering(build, place / above, Written(), None, why)
        known = rendered_recipes(place).get(self._target.name, {}).get(build.identity, "")
        if not digests or not known or known != self._recipe(above, build, done):
            return None
        vertices = {name: vertex for vertex, name in enumerate(build.wiring.names)}
        nodes = {name.removeprefix(above).split("/")[0] for name in changed}
        if changed and (self._target.whole_fabric or not nodes <= vertices.keys()):
            return None
        if changed:
            again = sorted(vertices[node] for node in nodes)
            self._target_of(build).render(
                build, new / above, self.templates, self.progress, self.options, again
            )
        fresh = {name: digest for name, digest in digests.items() if (new / name).exists()}
        if edited(new, fresh):
            return None
        kept = [name for name in digests if name not in fresh]
        size = sum((new / name).stat().st_size for name in fresh) + keep(place, new, kept)
        return replace(done, files=len(digests), bytes=size, kept=len(kept))

    def _planes(self) -> list[tuple[str, Build, list[int] | None]]:
        """The planes of which switches are written.

        Returns:
            For each plane what the paths of its files begin with, its build, and the vertices of
            the switches to write, None for all.
        """
        wanted = _vertices(self.builds, self.nodes)
        several = len(self.builds) > 1
        names = [f"plane-{plane}/" if several else "" for plane in range(1, len(wanted) + 1)]
        planes = zip(names, self.builds, wanted, strict=True)
        return [plane for plane in planes if plane[2] != []]

    def _why_unread(self, build: Build, only: list[int] | None) -> str:
        """Why the files of all or only some switches are not read back; "" if they are."""
        if not self.check:
            return "not asked for"
        system = self._target_of(build)
        chosen = system.chosen(build, self.options)
        return system.unreadable(build, chosen, part=only is not None)

    @property
    def _target(self) -> Target:
        return self._target_of(self.builds[0])

    def _target_of(self, build: Build) -> Target:
        """The target of a plane: the named one, or that of its nodes' systems."""
        return target_of(self.target) if self.target else system_target(build, self.builds)

    def _options_of(self, build: Build) -> Chosen | None:
        """The options of the plane of a build."""
        plane = next(plane for plane, other in enumerate(self.builds) if other is build)
        return self._target_of(build).options_in(plane, self.options)

    def _folder(
        self, new: Path, place: Path, above: str, build: Build, only: list[int] | None
    ) -> Rendering:
        """Write all files of a plane and read them back; see `_renewed` for the arguments.

        Raises:
            EmittedWrongError: the files forward otherwise than the tables.
        """
        options, folder = self._options_of(build), new / above
        system = self._target_of(build)
        written = system.render(build, folder, self.templates, self.progress, options, only)
        unproved = ""
        if not (why := self._why_unread(build, only)):
            report = system.check_emitted(
                build, folder, options, only, self.progress, self.accept
            ).moved(new, place)
            if report.differences:
                raise EmittedWrongError(report)
            unproved = report.unproved
        return replace(self._rendering(build, place / above, written, only, why), unproved=unproved)

    def _rendering(
        self, build: Build, folder: Path, written: Written, only: list[int] | None, why: str
    ) -> Rendering:
        """What was written for a plane; `why` says why it was not read back, "" if it was."""
        return Rendering(
            build=build.identity,
            target=self._target_of(build).title,
            folder=folder,
            nodes=int(build.topology.present.sum()) if only is None else len(only),
            files=written.files,
            bytes=written.bytes,
            checked=not why,
            not_checked=why,
        )


def _vertices(builds: Sequence[Build], names: Sequence[str]) -> list[list[int] | None]:
    """For each build the vertices of the switches with one of the names; None for all.

    Raises:
        InputError: no build has a switch with one of the names.
    """
    if not names:
        return [None] * len(builds)
    by_name = [{name: vertex for vertex, name in nodes_of(build)} for build in builds]
    problems = [
        Problem(
            key="node",
            required="the name of a switch of the build",
            given=shown(name),
            todo=did_you_mean(name, set().union(*by_name)),
        )
        for name in dict.fromkeys(names)
        if not any(name in of_plane for of_plane in by_name)
    ]
    if problems:
        raise InputError(few(problems))
    chosen = dict.fromkeys(names)
    return [[of_plane[name] for name in chosen if name in of_plane] for of_plane in by_name]


def nodes_with_systems(
    builds: Sequence[Build], names: Sequence[str], systems: Collection[str]
) -> Sequence[str]:
    """Those of some switches that have one of the systems.

    Args:
        builds: one for each plane.
        names: of the switches; () for all.
        systems: the systems; () for all.

    Raises:
        InputError: no switch has one of the systems, or none of these switches has.
    """
    if not systems:
        return names
    system_of = {
        name: build.systems[vertex]
        for build in builds
        if build.systems
        for vertex, name in nodes_of(build)
    }
    present = {*system_of.values()}
    if unknown := [name for name in systems if name not in present]:
        required = f"a system of the build: {', '.join(sorted(present)) or 'it names none'}"
        todo = did_you_mean(unknown[0], present)
        raise InputError.of(required, shown(unknown[0]), todo, key="system")
    selected = [n for n in names or system_of if n not in system_of or system_of[n] in systems]
    if not selected:
        required = f"a switch with system {' or '.join(systems)}"
        raise InputError.of(required, f"{names[0]}, with {system_of[names[0]]}", key="node")
    return selected


def recipe_of(
    build: Build,
    target: Target,
    chosen: Mapping[str, str],
    templates: Path | None,
    accept: Collection[str],
) -> str:
    """The digest of all that files follow from: build, options, templates, polarfab's sources.

    "" for a target of another package, whose sources are not known here.
    """
    files = [Path(inspect.getfile(kind)) for kind in target.kinds]
    rooms = [SOURCES / room for room in ROOMS]
    if not all(any(map(file.is_relative_to, rooms)) for file in files):
        return ""
    users = folder_digest(templates) if templates else ""
    options = sorted(chosen.items())
    parts = [build.identity, target.name, options, users, source_digest(), sorted(accept)]
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
    above = [f"plane-{n}/" for n in range(1, len(builds) + 1)] if len(builds) > 1 else [""]
    lists = rendered_lists(folder) or {}
    if target:
        _require_some(builds[0], folder / above[0], target)
    elif SYSTEMS not in lists and (lists or builds[0].systems == ()):
        target = written_by(builds[0], folder / above[0])
    reports = []
    for plane, build in enumerate(builds_for(builds, target)):
        chosen = target_of(target) if target else system_target(build, builds)
        listed = {name for of in lists.get(chosen.name, {}).values() for name in of}
        of_plane = chosen.options_in(plane, options)
        rendered, begins = folder / above[plane], above[plane]
        names = {n.removeprefix(begins).split("/")[0] for n in listed if n.startswith(begins)}
        if listed and not names and not rendered.is_dir():
            continue  # only switches of other planes were rendered
        only = None if chosen.whole_fabric else _selected(build, rendered, names)
        reports.append(chosen.check_emitted(build, rendered, of_plane, only, progress, accept))
    return tuple(reports)


def _selected(build: Build, folder: Path, listed: set[str]) -> list[int] | None:
    """The switches whose files a folder has; None for all, or where it does not say which.

    Args:
        build: what was rendered.
        folder: the folder.
        listed: the nodes that were rendered there.
    """
    vertices = list(nodes(build))
    selected = [v for v, name in vertices if name in listed or (folder / name).is_dir()]
    if not listed or len(selected) == len(vertices):
        return None
    return selected


def written_by(build: Build, folder: Path) -> str:
    """The name of the target of polarfab whose files are in a folder.

    Raises:
        InputError: they are files of no target, or of several.
    """
    present = _file_names(build, folder)
    files_of = {name: set(target_of(name).files) for name in SHIPPED}
    fitting = {name: files for name, files in files_of.items() if files <= present}
    # The files of one target can be a part of those of another, which then has written them.
    largest = [
        name
        for name, files in fitting.items()
        if not any(files < others for others in fitting.values())
    ]
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
    """Pass unless a folder has no file of a target, but those of another.

    Raises:
        InputError: it has those of another.
    """
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
    """The names of the files in a folder, in that of its first switch and in that of a host."""
    names = [name for _, name in nodes(build)]
    switch = next((folder / name for name in names if (folder / name).is_dir()), folder)
    host = next(folder.glob("hosts/*"), folder)
    return {path.name for parent in (folder, switch, host) for path in parent.glob("*")}
