"""The library's rehearsals: a fabric on emulated switches is checked, or moved under traffic.

`emulate` takes a fabric or a scenario, `rehearse` two fabrics. Each starts an emulation engine and
returns the engine's report.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from polarfab.fabric import Fabric

if TYPE_CHECKING:
    from compilers.choices import EngineName, FrameworkName
    from mininet_scenarios.run.rehearsal_plan import Observer
    from mininet_scenarios.verdict.report import Emulated


def emulate(
    scenario: str | Path | Fabric,
    engine: EngineName | None = None,
    framework: FrameworkName | None = None,
    keep: str | Path | None = None,
    unverified: bool = False,
    observer: Observer | None = None,
) -> Emulated:
    """Bring a scenario up, prove that a wrong table would be seen, check every pair and every link.

    Args:
        scenario: a fabric, the name of a scenario that comes with polarfab, a scenario file, or a
            build folder.
        engine: the engine; None for that of the scenario, which for a fabric is Mininet where it
            can run.
        framework: the controller's framework, `ryu` or `os-ken`; None for that of the scenario.
        keep: the folder where the build and all logs stay; None to remove them.
        unverified: whether to run tables that verification has found wrong.
        observer: is notified of each step.

    Raises:
        InputError: the scenario or its fabric is wrong, or the machine lacks something.
        WrongTables: verification has not passed on a build.
        EngineError: the engine failed.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> polarfab.emulate(fabric, engine="model").passed
        True
    """
    from mininet_scenarios.run.emulation import Emulation, with_engine
    from mininet_scenarios.run.rehearsal_plan import Silent
    from mininet_scenarios.scenario.scenario_file import load_scenario

    usable = scenario.usable(unverified) if isinstance(scenario, Fabric) else nullcontext(scenario)
    with usable as subject:
        place = str(subject.folder if isinstance(subject, Fabric) else subject)
        loaded = with_engine(load_scenario(place), engine, framework)
        folder = Path(keep) if keep else None
        return Emulation(loaded, folder, unverified, observer=observer or Silent()).run()


def rehearse(
    fabric: Fabric,
    new: Fabric,
    unverified: bool = False,
    engine: EngineName = "auto",
    framework: FrameworkName | None = None,
    interval: float = 0.1,
    pairs: int = 0,
) -> Emulated:
    """Bring a fabric up, let every host send to every other, move to `new`, count lost packets.

    Args:
        fabric: the fabric that the switches hold at first.
        new: the fabric to move to.
        unverified: whether to take builds that verification has not passed on.
        engine: the engine; `auto` is Mininet where it can run.
        framework: the controller's framework.
        interval: seconds between two packets of a pair.
        pairs: how many pairs of hosts send all the time; 0 is all.

    Raises:
        InputError: a fabric has mistakes, or the machine lacks something.
        WrongTables: verification has not passed on a build.
        EngineError: the engine failed.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> larger = polarfab.Fabric.of(fabric.expand("quadric:1").build)
        >>> polarfab.rehearse(fabric, larger, engine="model").passed
        True
    """
    from mininet_scenarios.run.emulation import Emulation, move_scenario

    for each in (fabric, new):
        each.require_one_plane()
    with fabric.usable(unverified) as old, new.usable(unverified) as target:
        loaded = move_scenario(
            str(old.folder),
            new=str(target.folder),
            engine=engine,
            framework=framework,
            interval=interval,
            pairs=pairs,
        )
        return Emulation(loaded, unverified=unverified).run()
