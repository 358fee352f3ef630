"""Switches rendered apart, and read back where they were rendered: archives, and other machines."""

from __future__ import annotations

import atexit
import hashlib
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from compilers.readers.difference_list import DifferenceList
from compilers.readers.emitted_report import EmittedReport
from compilers.readers.switch_check import CheckedSwitch
from compilers.tables.build import Build
from compilers.targets.options import Chosen
from compilers.targets.rendering.tar_pieces import compressed, packed
from compilers.targets.rendering.text_target import Written
from compilers.targets.target_lookup import target as target_of
from compilers.workers.local_processes import LEAST_SWITCHES, SWITCHES_A_TASK
from compilers.workers.shards import Workers, told
from compilers.workers.source_digest import folder_digest
from inventory.problems import InputError

if TYPE_CHECKING:
    from compilers.targets.target import Progress


@dataclass(frozen=True, slots=True)
class SwitchFiles:
    """The files of a switch as a piece of an archive, their digests, and what reading them found.

    more: differences that are not of where packets go.
    """

    piece: bytes
    digests: dict[str, str]
    written: Written
    checked: CheckedSwitch | None
    more: DifferenceList | None


@dataclass(frozen=True, slots=True)
class SwitchShards:
    """How the switches of a build are rendered, each by itself; it travels to other processes.

    own: the digest of the folder `templates`. folder: a name for a temporary folder that no other
    run has. above: what names of files begin with. form: of the archive. check: whether to read
    them back. accept: see `Target.check_emitted`.
    """

    target: str
    options: Chosen
    templates: Path | None
    own: str
    form: str
    check: bool
    accept: tuple[str, ...]
    folder: str
    above: str = ""

    def __call__(self, build: Build) -> Callable[[int], SwitchFiles]:
        """What renders a switch of this build by its vertex.

        Raises:
            InputError: the templates on this machine are others.
        """
        if self.templates and folder_digest(self.templates) != self.own:
            todo = "put them where every worker sees the same, under this path"
            given = f"others on {platform.node()}"
            raise InputError.of("the templates of this run", given, todo, str(self.templates))
        target = target_of(self.target)
        build, chosen = target.check(build, self.options)
        write = target.switch_writer(target.renderer(self.templates), build, chosen)
        place = self.place()
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        check = target.emitted_check(build, chosen, place, self.accept) if self.check else None

        def one(vertex: int) -> SwitchFiles:
            folders = write(place, vertex)
            try:
                found = [file for each in folders for file in sorted(each.iterdir())]
                files = [(str(file.relative_to(place)), file.read_bytes()) for file in found]
                checked = more = None
                if check:
                    checked = check.switch(vertex)
                    more = target.more_differences(build, chosen, place, [vertex])
            finally:
                for each in folders:
                    shutil.rmtree(each, ignore_errors=True)
            named = [(self.above + name, content) for name, content in files]
            return SwitchFiles(
                compressed(self.form, packed(named)),
                {name: hashlib.sha256(content).hexdigest() for name, content in named},
                Written(len(files), sum(len(content) for _, content in files)),
                checked,
                more,
            )

        return one

    def place(self) -> Path:
        """The temporary folder on this machine."""
        return Path(tempfile.gettempdir(), self.folder)


@dataclass(slots=True)
class RenderedSwitches:
    """The switches of a build, as they are rendered.

    digests: of all files so far. written: how much. checked: what reading them back found.
    """

    shards: SwitchShards
    build: Build
    digests: dict[str, str] = field(default_factory=dict)
    written: Written = field(default_factory=Written)
    _checked: list[CheckedSwitch] = field(default_factory=list)
    _more: list[DifferenceList] = field(default_factory=list)

    def pieces(self, workers: Workers, vertices: list[int], progress: Progress) -> Iterator[bytes]:
        """The pieces of an archive of all files, one for each switch, in order.

        Raises:
            InputError: a template is wrong, or a worker is not as it has to be.
        """
        given = (self.shards, self.build, vertices, SWITCHES_A_TASK, LEAST_SWITCHES)
        for switch in told(workers.over(*given), [(v,) for v in vertices], progress):
            self.digests |= switch.digests
            self.written += switch.written
            self._checked += [switch.checked] if switch.checked else []
            self._more += [switch.more] if switch.more else []
            yield switch.piece

    def report(self, whole: bool, folder: Path) -> EmittedReport:
        """What reading all of them back found, as if they stood in this folder."""
        target, place = target_of(self.shards.target), self.shards.place()
        build, chosen = target.check(self.build, self.shards.options)
        check = target.emitted_check(build, chosen, place, self.shards.accept)
        report = check.report(target.name, self._checked, whole)
        for more in self._more:
            report = report.also(more)
        return report.moved(place, folder)
