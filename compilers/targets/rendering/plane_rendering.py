"""Renders the files of a target for every plane of a fabric, and reads them back.

`PlaneRendering.into` writes into a new folder, which then replaces the earlier one
(`rendered_folder`). The *recipe* of files is a digest of all that they follow from: the build, the
target's options, the user's templates and polarfab's own sources (`recipe_of`). Where the earlier
folder has files of the same recipe, they are linked into the new folder instead of being rendered
again. `polarfab render` calls it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from compilers.readers.emitted_report import EmittedWrongError
from compilers.tables.build import Build
from compilers.targets.node_systems import system_target
from compilers.targets.options import Chosen
from compilers.targets.rendering.rendered_folder import (
    edited_files,
    link_unchanged,
    plane_prefixes,
    put_rendered,
    rendered_lists,
    rendered_recipes,
)
from compilers.targets.rendering.renderer import WrittenFiles
from compilers.targets.rendering.selected_nodes import selected_vertices
from compilers.targets.target import Target
from compilers.targets.target_lookup import target as target_of
from compilers.workers.source_digest import RESULT_PACKAGES, SOURCES, folder_digest, source_digest
from inventory.problems import InputError

ARCHIVES = {".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip", ".7z"}
"""Suffixes of archives: a user who names one does not expect a folder."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The files of a target for one plane."""

    build: str
    """The identity of the build."""
    target: str
    """The name of the target."""
    folder: Path
    """The folder of the plane."""
    nodes: int
    """The number of nodes that have files."""
    files: int
    """The number of files."""
    bytes: int
    """The bytes of all files."""
    checked: bool
    """Whether the files were read back, and forward packets as the tables do."""
    not_checked: str = ""
    """Why they were not read back; "" if they were."""
    kept: int = 0
    """The number of files of the same recipe that were linked from the earlier folder."""
    edited: tuple[str, ...] = ()
    """The files of the earlier folder that had been changed or removed by hand."""
    unproved: str = ""
    """What reading back did not prove, see `EmittedReport`; "" if earlier files were linked."""


@dataclass(frozen=True, slots=True)
class SelectedPlane:
    """A plane whose files are written."""

    prefix: str
    """The prefix of the paths of its files, such as `plane-1/`; "" for the only plane."""
    build: Build
    """The build of the plane."""
    vertices: list[int] | None
    """The vertices of the switches to write; None for all."""


@dataclass(frozen=True, slots=True)
class PlaneRendering:
    """A request to render the planes of a fabric."""

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
    def is_part(self) -> bool:
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
        planes = self._planes()
        identities = {plane.prefix: plane.build.identity for plane in planes}

        def fill(new: Path) -> tuple[Rendering, ...]:
            """Write the files of all planes into a new folder."""
            return tuple(self._render_plane(new, place, plane) for plane in planes)

        def recipes(renderings: tuple[Rendering, ...]) -> dict[str, str]:
            """The recipes of the files, by the identity of the build; {} for a part of them."""
            pairs = () if self.is_part else zip(planes, renderings, strict=True)
            by_build = {
                plane.build.identity: self._recipe(plane, rendering.checked)
                for plane, rendering in pairs
            }
            return {identity: recipe for identity, recipe in by_build.items() if recipe}

        return put_rendered(
            place,
            target=self._target.name,
            builds=identities,
            fill=fill,
            part=self.is_part,
            recipes=recipes,
        )

    def _planes(self) -> list[SelectedPlane]:
        """The planes whose files are written.

        Raises:
            InputError: no switch has one of the names.
        """
        selected = selected_vertices(self.builds, self.nodes)
        planes = map(SelectedPlane, plane_prefixes(len(self.builds)), self.builds, selected)
        return [plane for plane in planes if plane.vertices != []]

    def _render_plane(self, new: Path, place: Path, plane: SelectedPlane) -> Rendering:
        """Put the files of a plane into the new folder.

        Args:
            new: the folder that is filled.
            place: the earlier folder, which `new` replaces afterwards.
            plane: the plane.
        """
        if self.is_part:
            return self._write_all(new, place, plane)
        earlier = (rendered_lists(place) or {}).get(self._target.name, {})
        # By build: the digest of each file of this plane.
        digests = {
            identity: {
                path: digest for path, digest in files.items() if path.startswith(plane.prefix)
            }
            for identity, files in earlier.items()
        }
        digests_of_plane = {
            path: digest for files in digests.values() for path, digest in files.items()
        }
        edited = edited_files(place, digests_of_plane) if digests_of_plane else []
        digests_of_build = digests.get(plane.build.identity, {})
        rendering = self._link_earlier(new, place, plane, digests_of_build, edited)
        if rendering is None:
            rendering = self._write_all(new, place, plane)
        return replace(rendering, edited=tuple(edited))

    def _link_earlier(
        self,
        new: Path,
        place: Path,
        plane: SelectedPlane,
        digests: Mapping[str, str],
        edited: Sequence[str],
    ) -> Rendering | None:
        """Link the files of the same recipe from the earlier folder, if it has them.

        Files that were edited since are rendered again. The files are not read back, as that was
        done when they were first written: a rendered file has to have the digest that it had then.

        Args:
            new: the folder that is filled.
            place: the earlier folder, which `new` replaces afterwards.
            plane: the plane.
            digests: the digests of the earlier files of the plane's build, by path.
            edited: the paths of files that were changed or removed since they were written.

        Returns:
            The files; None: all have to be written and read back.
        """
        if not digests or not self._has_same_recipe(place, plane):
            return None
        rendered_paths = self._render_edited(new, plane, edited)
        if rendered_paths is None:
            return None
        rendered_again = {
            path: digest for path, digest in digests.items() if path in rendered_paths
        }
        if edited_files(new, rendered_again):
            # A file rendered again differs from the one that was verified, so verify all.
            return None
        unchanged = [path for path in digests if path not in rendered_again]
        linked_bytes = link_unchanged(place, new, unchanged)
        rendered_bytes = sum((new / path).stat().st_size for path in rendered_again)
        written = WrittenFiles(len(digests), linked_bytes + rendered_bytes)
        reason_not_read_back = self._reason_not_read_back(plane.build, part=False)
        rendering = self._rendering(place, plane, written, reason_not_read_back)
        return replace(rendering, kept=len(unchanged))

    def _has_same_recipe(self, place: Path, plane: SelectedPlane) -> bool:
        """Whether the earlier files of a plane's build have the recipe of those to be written.

        Args:
            place: the earlier folder.
            plane: the plane.
        """
        recipes = rendered_recipes(place).get(self._target.name, {})
        earlier_recipe = recipes.get(plane.build.identity, "")
        is_read_back = not self._reason_not_read_back(plane.build, part=False)
        return earlier_recipe != "" and earlier_recipe == self._recipe(plane, is_read_back)

    def _render_edited(
        self, new: Path, plane: SelectedPlane, edited: Sequence[str]
    ) -> set[str] | None:
        """Render all files of the switches whose files were edited.

        Args:
            new: the folder that is filled.
            plane: the plane.
            edited: the paths of the edited files.

        Returns:
            The paths of the files that were written; None if switches cannot be rendered alone: the
            files are those of the whole fabric, or of no switch of the plane.
        """
        if not edited:
            return set()
        build, folder = plane.build, new / plane.prefix
        vertex_of = {name: vertex for vertex, name in enumerate(build.wiring.names)}
        nodes = {path.removeprefix(plane.prefix).split("/")[0] for path in edited}
        if self._target.whole_fabric or not nodes <= vertex_of.keys():
            return None
        vertices = sorted(vertex_of[node] for node in nodes)
        self._target_of(build).render(
            build, folder, self.templates, self.progress, self.options, vertices
        )
        # The new folder had no files of this plane before.
        return {file.relative_to(new).as_posix() for file in folder.rglob("*") if file.is_file()}

    def _write_all(self, new: Path, place: Path, plane: SelectedPlane) -> Rendering:
        """Write all files of a plane and read them back; see `_render_plane` for the arguments.

        Raises:
            EmittedWrongError: the files forward otherwise than the tables.
        """
        build, vertices, folder = plane.build, plane.vertices, new / plane.prefix
        target, options = self._target_of(build), self._options_of(build)
        written = target.render(build, folder, self.templates, self.progress, options, vertices)
        reason_not_read_back = self._reason_not_read_back(build, part=vertices is not None)
        rendering = self._rendering(place, plane, written, reason_not_read_back)
        if reason_not_read_back:
            return rendering
        report = target.check_emitted(
            build, folder, options, vertices, self.progress, self.accept
        ).moved(new, place)
        if report.differences:
            raise EmittedWrongError(report)
        return replace(rendering, unproved=report.unproved)

    def _rendering(
        self, place: Path, plane: SelectedPlane, written: WrittenFiles, reason_not_read_back: str
    ) -> Rendering:
        """The result for a plane.

        Args:
            place: the folder of all planes.
            plane: the plane.
            written: how many files and bytes.
            reason_not_read_back: why the files were not read back; "" if they were.
        """
        build, vertices = plane.build, plane.vertices
        all_nodes = int(build.topology.present.sum())
        return Rendering(
            build=build.identity,
            target=self._target_of(build).title,
            folder=place / plane.prefix,
            nodes=all_nodes if vertices is None else len(vertices),
            files=written.files,
            bytes=written.bytes,
            checked=not reason_not_read_back,
            not_checked=reason_not_read_back,
        )

    def _recipe(self, plane: SelectedPlane, read_back: bool) -> str:
        """The recipe of a plane's files, with their prefix and whether they were read back.

        "" where the recipe is not known.
        """
        target = self._target_of(plane.build)
        chosen = target.chosen(plane.build, self.options)
        recipe = recipe_of(plane.build, target, chosen, self.templates, self.accept)
        return f"{'read' if read_back else 'unread'} {plane.prefix}{recipe}" if recipe else ""

    def _reason_not_read_back(self, build: Build, *, part: bool) -> str:
        """Why the files of all or only some switches are not read back; "" if they are."""
        if not self.check:
            return "not asked for"
        target = self._target_of(build)
        return target.unreadable_reason(build, target.chosen(build, self.options), part=part)

    @property
    def _target(self) -> Target:
        """The target of the first plane."""
        return self._target_of(self.builds[0])

    def _target_of(self, build: Build) -> Target:
        """The target of a plane: the named one, or that of its nodes' systems."""
        return target_of(self.target) if self.target else system_target(build, self.builds)

    def _options_of(self, build: Build) -> Chosen | None:
        """The options of the plane of a build."""
        plane = next(i for i, build_of_plane in enumerate(self.builds) if build_of_plane is build)
        return self._target_of(build).options_in(plane, self.options)


def recipe_of(
    build: Build,
    target: Target,
    chosen: Mapping[str, str],
    templates: Path | None,
    accept: Collection[str],
) -> str:
    """The digest of all that files follow from: build, options, templates, polarfab's sources.

    "" for a target of another package, whose sources are not known here.

    Args:
        build: the build.
        target: the target.
        chosen: the value of every option.
        templates: the folder with templates of the user.
        accept: the statements of the user that are accepted.
    """
    source_files = (Path(inspect.getfile(class_)) for class_ in target.source_classes)
    if not all(map(_is_of_polarfab, source_files)):
        return ""
    users_templates = folder_digest(templates) if templates else ""
    options = sorted(chosen.items())
    sources = source_digest()
    parts = [build.identity, target.name, options, users_templates, sources, sorted(accept)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _is_of_polarfab(file: Path) -> bool:
    """Whether a file is among the sources that `source_digest` covers."""
    return any(file.is_relative_to(SOURCES / package) for package in RESULT_PACKAGES)
