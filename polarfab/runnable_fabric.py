"""A fabric where switches run: brought up, rehearsed, read, moved to by a controller."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from inventory.problems import InputError
from polarfab.contract import contracted

if TYPE_CHECKING:
    from compilers.audit.route_report import RouteReport
    from compilers.choices import EngineName, FrameworkName
    from compilers.tables.build import Build
    from controller.devices.device_push import PushWay
    from controller.devices.push_report import PushReport
    from mininet_scenarios.run.emulation import Emulated

Progress = Callable[[int, int], None]
"""Is told (done, all)."""


@contextmanager
def _said_of(fabric: RunnableFabric) -> Iterator[None]:
    """Problems with the policy within are this fabric's: they begin with its folder."""
    try:
        yield
    except InputError as error:
        place = str(fabric.folder or "")
        if not place or any(not problem.key.startswith("routing.") for problem in error.problems):
            raise
        raise InputError(replace(each, file=place) for each in error.problems) from None


@contracted
class RunnableFabric(ABC):
    """The part of `Fabric` that needs running switches."""

    folder: Path | None

    @property
    @abstractmethod
    def _folders(self) -> tuple[Path, ...]:
        """Those of its planes; none in memory."""

    @property
    @abstractmethod
    def build(self) -> Build:
        """The build of the one plane."""

    @abstractmethod
    def usable(self, unverified: bool = False) -> AbstractContextManager[RunnableFabric]:
        """The fabric in a folder, verified."""

    def check_routes(
        self,
        files: Iterable[str | Path],
        target: str = "",
        options: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> RouteReport:
        """Compare the routing tables of switches with the tables.

        Args:
            files: named by their switches, and folders of them.
            target: that configured the switches; "" where the form of the files tells.
            options: those that it was rendered with.
            progress: called with (switches done, all switches).

        Raises:
            InputError: a file cannot be read or names no switch, or the target has no routes.
        """
        from compilers.audit.route_report import RouteReport

        return RouteReport.of(self.build, map(Path, files), target, options, progress)

    def push(
        self,
        target: str,
        way: PushWay,
        options: Mapping[str, str] | None = None,
        nodes: Sequence[str] = (),
        unverified: bool = False,
        progress: Progress | None = None,
        old: RunnableFabric | None = None,
    ) -> PushReport:
        """Have routers hold this fabric's routes: add, take away, prove from their tables, save.

        Args:
            target: frr, linux, eos, nxos, junos, sonic, srlinux or nvue.
            way: how they are reached, how many at a time, whether only to look.
            options: of the target, as for `render`.
            nodes: only these switches.
            unverified: take tables that verification has not passed on.
            progress: called with (rounds on a switch done, all rounds), from several threads.
            old: what the routers hold: go in the rounds of `plan`, all of them each.

        Raises:
            InputError: there is no such target or switch, ssh would take the name of one for
                another address, verification has not passed, or there are no rounds.
        """
        from compilers.targets.rendering.plane_rendering import PlaneRendering
        from controller.devices.device_push import DevicePush

        with self.usable(unverified) as fabric, TemporaryDirectory() as folder:
            build, out, before = fabric.build, Path(folder) / "new", None
            with _said_of(self):
                PlaneRendering((build,), target, None, options, nodes).into(out)
            if old:
                before = old.build, Path(folder) / "old"
                with _said_of(old):
                    PlaneRendering((before[0],), target, None, options).into(before[1])
            return DevicePush(build, target, options or {}, out, way, progress, before).run(nodes)

    def apply(
        self,
        url: str,
        token_file: Path | None = None,
        authority: Path | None = None,
        *,
        accept_loss: bool = False,
        unverified: bool = False,
        progress: Progress | None = None,
        confirm_within: int = 0,
    ) -> dict[str, Any]:
        """Have a controller move its fabric to this one; returns how the move ended.

        url, token_file and authority are as for `running`; with accept_loss it goes on although
        pairs of hosts lose packets; progress is called with (rounds done, all rounds); unless
        somebody confirms within confirm_within seconds the fabric goes back, 0: it stays.

        Raises:
            InputError: it does not answer, or refuses.
        """
        from controller.rollout.build_archive import pack
        from polarfab.controller_client import Client

        with self.usable(unverified) as fabric:
            client = Client.to(url, "--to", token_file, authority)
            packed = pack(fabric._folders[0])
            return client.apply(packed, accept_loss, unverified, progress, confirm_within)

    def emulate(
        self,
        engine: EngineName = "auto",
        framework: FrameworkName | None = None,
        unverified: bool = False,
    ) -> Emulated:
        """Bring it up on real Open vSwitch and Mininet, or on another engine, and check every pair.

        The options, and what is raised, are those of `polarfab.emulate`.
        """
        from mininet_scenarios.run.plane_emulation import emulate

        with self.usable(unverified) as fabric:
            return emulate(str(fabric.folder), engine, framework, unverified=unverified)

    def rehearse(
        self,
        new: RunnableFabric,
        unverified: bool = False,
        engine: EngineName = "auto",
        framework: FrameworkName | None = None,
        interval: float = 0.1,
        pairs: int = 0,
    ) -> Emulated:
        """Bring it up, let every host send to every other, move to `new`, see that nobody loses.

        Args:
            new: what the switches are to hold.
            unverified: take builds that verification has not passed on.
            engine: what to run on; auto is Mininet where it can run.
            framework: of the controller.
            interval: seconds between two packets of a pair.
            pairs: how many pairs send all the time; 0 is all.

        What is raised is that of `polarfab.emulate`.
        """
        from mininet_scenarios.run.emulation import Emulation
        from mininet_scenarios.run.move_scenario import move_scenario

        with self.usable(unverified) as old, new.usable(unverified) as other:
            folders = str(old.folder), str(other.folder)
            loaded = move_scenario(*folders, engine, framework, interval, pairs)
            return Emulation(loaded, unverified=unverified).run()
