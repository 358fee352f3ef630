"""`Fabric`, the library's main class: from a spec to tables, their proof, files and changes.

    fabric = polarfab.Fabric.from_spec("fabric.yaml").compile()
    assert fabric.verify().passed
    fabric.render("frr", "configs")

Each method imports the modules that it needs when it is called. The library's other functions take
a fabric: see `drawing`, `cabling`, `measures`, `exports`, `switches` (which run) and `rehearsals`
(on emulated switches).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inventory.problems import InputError, at_key

if TYPE_CHECKING:
    from compilers.choices import Method
    from compilers.expansion.growth_report import GrowthReport
    from compilers.forwarding.walks import Progress
    from compilers.proof.explanation import Explanation
    from compilers.proof.proved import Proved
    from compilers.proof.verification import Verification
    from compilers.readers.emitted_report import EmittedReport
    from compilers.spec.fabric_file import LoadedFabric
    from compilers.tables.build import Build
    from compilers.targets.rendering.plane_rendering import Rendering
    from compilers.topology.labelled_graph import Topology
    from compilers.update.compare import Comparison
    from compilers.update.move_report import MoveReport

SAVE_UNPROVED = "what verify() returns says why; save with prove=False to keep it all the same"
USE_UNPROVED = "what verify() returns says why; or use it as it is, with `unverified`"
"""What to do about a build in memory that did not pass verification, in messages."""


@dataclass(frozen=True, eq=False, repr=False)
class Fabric:
    """A fabric. A method that needs tables compiles them, once.

    Its spec, folder and builds never change: methods return another fabric. Only the results of
    `verify` are added to it, for `save`.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> fabric.compile()
        <Fabric lab: polarfly q=3, 13 nodes, 24 links>
    """

    loaded: LoadedFabric | None = None
    """The spec and the inventory; None for a fabric that was loaded from a build."""
    folder: Path | None = None
    """The folder of its build; None for a fabric in memory."""
    compiled: tuple[Build, ...] = ()
    """The build of each plane; empty before it is compiled."""
    _verifications: list[Verification] = field(default_factory=list, init=False)
    """The results of `verify`, for `save`; the last one is the newest."""

    @classmethod
    def from_spec(
        cls,
        spec: str | Path | Mapping[str, Any],
        inventory: str | Path | Mapping[str, Any] | None = None,
    ) -> Fabric:
        """The fabric of a fabric.yaml (`-`: standard input), or of the same keys in a mapping.

        Args:
            spec: the file, or its content.
            inventory: an inventory.yaml, or its content, in place of the one that the spec names.

        Raises:
            InputError: the spec or the inventory has mistakes. It has those of both; of more than
                eleven of a kind the first ten, and how many more there are.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> polarfab.Fabric.from_spec(lab)
            <Fabric lab: not compiled>
        """
        from compilers.spec.fabric_file import load_fabric

        return cls(load_fabric(spec, inventory=inventory))

    @classmethod
    def load(cls, folder: str | Path) -> Fabric:
        """The fabric in a build folder; its arrays are memory-mapped.

        Raises:
            InputError: the folder is no build folder, or damaged.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     saved = fabric.save(f"{folder}/build")
            ...     polarfab.Fabric.load(f"{folder}/build").name
            'lab'
        """
        from compilers.tables.folders.build_folder import load_planes

        return cls(folder=Path(folder), compiled=load_planes(Path(folder)))

    @classmethod
    def of(cls, *builds: Build) -> Fabric:
        """The fabric of builds in memory, one a plane.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> polarfab.Fabric.of(*fabric.builds).name
            'lab'
        """
        return cls(compiled=builds)

    def __repr__(self) -> str:
        """`<Fabric lab: polarfly q=7, 57 nodes, 228 links>`; never compiles."""
        if not self.compiled:
            return f"<Fabric {self.name}: not compiled>"
        topology = self.compiled[0].topology
        planes = f" in each of {len(self.compiled)} planes" if len(self.compiled) > 1 else ""
        size = f"{topology.graph.order:,} nodes, {topology.graph.size:,} links{planes}"
        return f"<Fabric {self.name}: {topology.title()}, {size}>"

    def _repr_svg_(self) -> str | None:
        """The picture for notebooks: of a compiled fabric of one plane, if it is not too large."""
        from compilers.drawing.picture import draw, subject_of_build

        try:
            return draw(subject_of_build(self.build), "svg") if len(self.compiled) == 1 else None
        except InputError:
            return None

    @property
    def name(self) -> str:
        """The name in the spec; for a build of several planes the names of all planes."""
        if self.loaded:
            return self.loaded.spec.name
        return " and ".join(build.name for build in self.compiled)

    @cached_property
    def topology(self) -> Topology:
        """Its graph. Until the fabric is compiled, nodes that are not installed are part of it."""
        from compilers.memory_bound import require_graph
        from compilers.topology.families import build_topology

        if self.loaded is None or self.compiled:
            return (self.compiled or self.compile().compiled)[0].topology
        spec = self.loaded.spec.topology
        require_graph(spec.family, spec.parameters())
        return build_topology(spec.family, spec.parameters())

    @cached_property
    def builds(self) -> tuple[Build, ...]:
        """The build of each plane.

        Raises:
            InputError: the inventory cannot hold the fabric.
        """
        from compilers.tables.folders.build_folder import with_identity

        builds = self.compiled or self.compile().compiled
        return tuple(build if build.identity else with_identity(build) for build in builds)

    @property
    def build(self) -> Build:
        """The build of a fabric of one plane: tables, wiring and addresses as arrays.

        Raises:
            InputError: there are several planes, or the inventory cannot hold the fabric.
        """
        self.require_one_plane()
        return self.builds[0]

    def require_one_plane(self) -> None:
        """Pass if the fabric has a single plane. It is not compiled for this.

        Raises:
            InputError: there are several planes.
        """
        planes = len(self.compiled) or (self.loaded.spec.planes if self.loaded else 1)
        if planes == 1:
            return
        subject = "several planes"
        todo = "compile it and name a plane, such as build/plane-1; in Python: fabric.planes[0]"
        if self.folder:
            subject = "a folder of several planes"
            todo = f"name one of them, such as {self.folder / 'plane-1'}"
        raise InputError.of("the build of one plane", subject, todo, str(self.folder or ""))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folder of each plane's build; () for a fabric in memory."""
        from compilers.tables.folders.build_folder import plane_folders

        return plane_folders(self.folder) if self.folder else ()

    @property
    def planes(self) -> tuple[Fabric, ...]:
        """Each plane as a fabric of its own."""
        folders = self.folders or [None] * len(self.builds)
        return tuple(
            Fabric(None, folder, (build,))
            for folder, build in zip(folders, self.builds, strict=True)
        )

    def compile(self, before: Fabric | None = None, ports_stay: bool = True) -> Fabric:
        """The fabric with its tables, in memory.

        Args:
            before: an earlier build. Its nodes, links and hosts keep their vertices, ports and
                numbers if these can still be used. None for the build of `keeping`, if any.
            ports_stay: False to plan ports anew; vertices and numbers stay.

        Raises:
            InputError: the inventory cannot hold the fabric (all problems of a step), or the
                earlier build is of another topology or has another number of planes.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> len(fabric.compile().build.wiring.names)
            13
        """
        from compilers.pipeline import compile_fabric
        from compilers.planes import compile_planes

        if self.loaded is None:
            subject = "a build" if self.compiled else "nothing"
            todo = "make it with Fabric.from_spec"
            raise InputError.of("a fabric from its spec, to compile", subject, todo)
        loaded = with_installed(self.loaded, before, ports_stay)
        if loaded.spec.planes > 1:
            return Fabric(loaded, compiled=compile_planes(loaded))
        return Fabric(loaded, compiled=(compile_fabric(loaded),))

    def keeping(self, before: Fabric | None) -> Fabric:
        """The fabric, not compiled, with vertices, ports, units and numbers of an earlier build.

        `polarfab.cables` and `polarfab.netbox` then plan it as `compile(before)` would.

        Args:
            before: an earlier build. None keeps the build that the fabric keeps already, or if
                there is none the numbers of the file that `allocations` names.

        Raises:
            InputError: the fabric was loaded from a build, or the earlier build is of another
                topology or has another number of planes.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> polarfab.cables(fabric.keeping(fabric.compile()))
            <CableSchedule lab: 24 cables>
        """
        if self.loaded is None:
            raise InputError.of("a fabric from its spec", "a build")
        return Fabric(with_installed(self.loaded, before))

    def save(self, folder: str | Path, prove: bool | Callable[[Fabric], object] = True) -> Fabric:
        """Write its build into a folder, as `polarfab compile` does; an earlier build is replaced.

        The folder is marked with what `verify` has proved of this fabric. If `verify` was not
        called, what the policy promises is proved now.

        Args:
            folder: the folder to write.
            prove: False leaves the folder without a mark, for a later `verify` of the fabric in it.
                A function is called with that fabric, to prove it before it replaces an earlier
                one.

        Raises:
            InputError: the folder holds something else, or cannot be written or marked, or the
                proof fails or needs more memory than there is; an earlier build is kept.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     fabric.save(f"{folder}/build").folder.name
            'build'
        """
        from compilers.tables.folders.build_folder import load_planes, write_planes
        from compilers.tables.folders.folder_contents import real_path
        from compilers.tables.folders.replaced_folder import new_build

        path = real_path(Path(folder))  # a path such as `.` changes its meaning when it is replaced
        # With `prove=True`, a fabric that was verified is written and marked with the results, and
        # another is verified in the new folder (`_mark`). With False, none is marked.
        judged = list(self._verifications) if prove is True else []
        builds = self.builds if judged else self.compiled or self.compile().compiled
        with new_build(path) as new:
            write_planes(builds, new)
            written = Fabric(self.loaded, new, load_planes(new))
            if callable(prove):
                prove(written)
            elif prove:
                written._mark(judged)
                written._verifications[-1].require_passed(str(path), SAVE_UNPROVED)
        saved = Fabric(self.loaded, path, written.builds)
        saved._verifications.extend(written._verifications)
        return saved

    def _mark(self, judged: Sequence[Verification]) -> None:
        """Mark the folder with what earlier verifications have proved; without any, verify now.

        Raises:
            InputError: the mark cannot be written.
        """
        self._verifications.extend(
            verification.mark(self.builds, self.folders) for verification in judged
        )
        if not self._verifications:
            self.verify()
        for verification in self._verifications:
            verification.require_marked()

    def verify(
        self,
        failures: Sequence[str] | None = None,
        sample: int | None = None,
        seed: int = 0,
        channels: bool | None = False,
        progress: Progress | None = None,
        method: Method = "auto",
        scheduler: str = "",
    ) -> Verification:
        """Judge every ordered pair by the tables; a build in a folder is marked if it passed.

        A fabric in memory keeps the result for `save`.

        Args:
            failures: the kinds of failures to try (docs/how-to/verify.md); None for those that
                `protect` promises to survive.
            sample: how many cases of several failures at once; None for all pairs if that is quick.
            seed: the seed of the sample.
            channels: whether to count the channels of a lossless fabric; None to count them if that
                is quick.
            progress: called with (done, all) in each of the walks.
            method: `walk`, `local` for a proof state by state, or `auto` for the quicker one.
            scheduler: the address of a Dask scheduler whose workers share the walks.

        Raises:
            InputError: there is no such kind of failure, no such method, no such scheduler, or too
                little memory.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> fabric.verify().passed
            True
        """
        from compilers.memory_bound import CHANNEL_BYTES, MemoryBound
        from compilers.proof.proof_options import ProofOptions
        from compilers.proof.verification import judge
        from compilers.workers.local_processes import workers_at

        bound = MemoryBound.of_build(self.builds[0])
        if not scheduler:
            (bound.storing(CHANNEL_BYTES) if channels else bound).require()
        # A fabric in memory has no folders; then workers get the builds themselves.
        with workers_at(scheduler, zip(self.builds, self.folders)) as workers:  # noqa: B905
            options = ProofOptions(
                failures=failures,
                sample=sample,
                seed=seed,
                channels=channels,
                method=method,
                progress=progress,
                workers=workers,
            )
            self._verifications.append(judge(self.builds, self.folders, options))
        return self._verifications[-1]

    @property
    def proved(self) -> tuple[Proved, ...]:
        """What verification has proved of each plane, by the mark in its folder."""
        from compilers.proof.proved import Proved

        return tuple(map(Proved.read, self.folders, self.builds))

    @contextmanager
    def usable(self, unverified: bool = False) -> Iterator[Fabric]:
        """The fabric in a verified folder, for a context.

        A fabric in memory is saved to a temporary folder, and every pair is walked.

        Args:
            unverified: whether verification is left out.

        Raises:
            InputError: verification has not passed.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> with fabric.usable() as verified:
            ...     verified.folder.name
            'build'
        """
        from tempfile import TemporaryDirectory

        from compilers.tables.folders.verified_mark import require_verified

        with ExitStack() as stack:
            fabric = self
            if not self.folder:
                path = Path(stack.enter_context(TemporaryDirectory(prefix="polarfab-"))) / "build"
                was_verified = bool(self._verifications)
                if was_verified and not unverified:
                    self._verifications[-1].require_passed(todo=USE_UNPROVED)
                # `save` marks the folder with what was verified in memory.
                fabric = self.save(path, prove=was_verified and not unverified)
                if not was_verified and not unverified:
                    fabric.verify(failures=()).require_passed(todo=USE_UNPROVED)
            if not unverified:
                for folder, build in zip(fabric.folders, fabric.builds, strict=True):
                    require_verified(folder, build)
            yield fabric

    def explain(
        self, source: str | int, destination: str | int, fail: Iterable[str] = ()
    ) -> Explanation:
        """The paths between two switches, and their paths while links or nodes are down.

        Args:
            source: a node's name, a vertex number, a host's name or an address.
            destination: named in the same ways.
            fail: the elements that are down: nodes, links as `A-B`, and groups such as
                `module:A/0`.

        Raises:
            InputError: there is no such node, link, host or address.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> fabric.explain(0, 5).minimal
            (0, 1, 5)
        """
        from compilers.proof.explanation import explain
        from compilers.proof.name_lookup import find_failures, find_switch

        build = self.build
        ends = find_switch(build, source, "SRC"), find_switch(build, destination, "DST")
        with at_key("fail"):
            dead = [element for word in fail for element in find_failures(build, word)]
        return explain(build, *ends, dead)

    def render(
        self,
        target: str,
        folder: str | Path,
        *,
        templates: str | Path | None = None,
        options: Mapping[str, str] | None = None,
        nodes: Sequence[str] = (),
        systems: Sequence[str] = (),
        unverified: bool = False,
        check: bool = True,
        accept: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> tuple[Rendering, ...]:
        """Write every switch's configuration in FOLDER/<node>/, planes in FOLDER/plane-1/<node>/.

        Args:
            target: a name that `polarfab targets` lists; "" for the own system of each switch.
            folder: the folder to write.
            templates: a folder of your own templates, TARGET/FILE.j2.
            options: the options of the target.
            nodes: only these switches; () for all.
            systems: only the switches with these systems; () for all.
            unverified: whether to take tables that verification has not passed on.
            check: whether to read the files back and compare them with the tables.
            accept: the beginnings of statements of your own templates that no reader knows, or
                files of yours.
            progress: called with (switches done, all switches) for each plane.

        Raises:
            EmittedWrongError: the files differ from the tables.
            InputError: there is no such target, the target lacks an ability that the fabric needs,
                an option, a template or a node is wrong, or verification has not passed.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     fabric.render("frr", f"{folder}/configs")[0].nodes
            13
        """
        from compilers.memory_bound import MemoryBound
        from compilers.targets.node_systems import builds_for
        from compilers.targets.rendering.plane_rendering import PlaneRendering
        from compilers.targets.rendering.selected_nodes import nodes_with_systems

        if not nodes:
            MemoryBound.of_build(self.builds[0]).require()
        own_templates = Path(templates) if templates else None
        with self.usable(unverified) as fabric:
            rendering = PlaneRendering(
                builds=builds_for(fabric.builds, target),
                target=target,
                templates=own_templates,
                options=options,
                nodes=nodes_with_systems(fabric.builds, nodes, systems),
                progress=progress,
                check=check,
                accept=accept,
            )
            return rendering.into(Path(folder))

    def check_emitted(
        self,
        folder: str | Path,
        target: str = "",
        options: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        accept: Sequence[str] = (),
    ) -> tuple[EmittedReport, ...]:
        """Read the files of `render`, follow every pair through them, and compare with the tables.

        Args:
            folder: the folder of the files.
            target: the target of the files; "" to recognize it by them.
            options: the options with which they were rendered.
            progress: called with (switches done, all switches) for each plane.
            accept: the beginnings of statements of your own templates, or files of yours.

        Raises:
            InputError: there is no file that can be read back.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     rendered = fabric.render("frr", folder, check=False)
            ...     fabric.check_emitted(folder)[0].passed
            True
        """
        from compilers.targets.rendering.plane_check import check_planes

        return check_planes(
            self.builds,
            folder=Path(folder),
            target=target,
            options=options,
            progress=progress,
            accept=accept,
        )

    def check_messages(self, progress: Progress | None = None) -> tuple[EmittedReport, ...]:
        """Read the messages that a controller sends, and compare them with the tables.

        Raises:
            InputError: OpenFlow switches lack an ability that the fabric needs.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> fabric.check_messages()[0].passed
            True
        """
        from compilers.targets.openflow.emitted_messages import check_messages

        return tuple(check_messages(build, progress) for build in self.builds)

    def expand(self, clusters: str, beside: Iterable[Fabric] = ()) -> GrowthReport:
        """The larger fabric (`.build`) with more clusters on unused ports; no cable is moved.

        Args:
            clusters: `quadric:N` for odd q, `fan:N`, or `nucleus` for even q.
            beside: the other planes, whose places in racks are taken.

        Raises:
            InputError: such a fabric does not grow by these clusters, lacks ports or addresses, or
                has node types that cannot hold the larger tables.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> fabric.expand("quadric:1").build.topology.graph.order
            17
        """
        from compilers.expansion.growth_report import GrowthReport

        other_planes = [plane.build for plane in beside]
        growth = GrowthReport.of_clusters(self.build, clusters, other_planes)
        if self.loaded and self.loaded.inventory:
            from compilers.pipeline import check_limits

            check_limits(growth.build, self.loaded, self.loaded.inventory)
        return growth

    def remaining(self, larger: Fabric) -> GrowthReport:
        """The nodes and cables to add to come from this fabric to more of the same fabric.

        Raises:
            InputError: they are not parts of one fabric.
        """
        from compilers.expansion.growth_report import GrowthReport

        return GrowthReport.of_rest(self.build, larger.build)

    def diff(self, other: Fabric) -> Comparison:
        """The differences between this fabric and another one.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> fabric.diff(fabric)
            <Comparison: 0 nodes added, 0 removed; 0 cables added, 0 removed; 0 switches change>
        """
        from compilers.update.compare import compare

        return compare(self.build, other.build)

    def plan(
        self, new: Fabric, mixtures: int = 2, seed: int = 0, progress: Progress | None = None
    ) -> MoveReport:
        """The changes of a move to a new fabric, and the proof that no packet is lost.

        Args:
            new: the fabric to move to.
            mixtures: how many random mixtures of switches to walk in each round.
            seed: the seed of the mixtures.
            progress: called with (done, all).

        Raises:
            InputError: no order of rows is safe.

        Example:
            >>> import polarfab
            >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
            >>> fabric = polarfab.Fabric.from_spec(lab)
            >>> fabric.plan(fabric).lossless
            True
        """
        from compilers.update.move_report import MoveReport

        return MoveReport.of(self.build, new.build, mixtures, seed, progress)


def with_installed(
    loaded: LoadedFabric, before: Fabric | None, ports_stay: bool = True
) -> LoadedFabric:
    """A loaded fabric that keeps the vertices, ports, units and numbers of an earlier build.

    Args:
        loaded: the spec and the inventory.
        before: the earlier build. None keeps what the loaded fabric keeps already, or if that is
            nothing the numbers of the file that `allocations` names.
        ports_stay: False to plan ports anew.

    Raises:
        InputError: the earlier build is of another topology, or has another number of planes.
    """
    from compilers.cabling.installed_numbers import installed_planes, require_same_topology
    from compilers.tables.folders.build_folder import last_proved_build

    installed = loaded.installed
    if before or not installed:
        builds = before.builds if before else ()
        last_builds = last_proved_build(before.folder, builds) if before and before.folder else ()
        if builds:
            require_same_topology(loaded, builds)
        installed = installed_planes(loaded, builds, last_builds)
    if not ports_stay:
        installed = tuple(replace(plane, port_of_link={}, port_of_host={}) for plane in installed)
    return replace(loaded, installed=installed)
