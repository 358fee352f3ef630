"""The scenario of `polarfab rehearse`: one move, all pairs under a probe, no packet lost."""

from __future__ import annotations

from pathlib import Path

from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load
from inventory.problems import InputError, shown
from inventory.values import LONGEST_PLACE
from mininet_scenarios.engines.engine_kinds import require_known
from mininet_scenarios.scenario.scenario_file import LoadedScenario
from mininet_scenarios.scenario.scenario_format import Scenario


def move_scenario(
    old: str,
    new: str,
    engine: str = "auto",
    framework: str | None = None,
    interval: float = 0.1,
    pairs: int = 0,
) -> LoadedScenario:
    """One move, all pairs under a probe, no packet lost.

    Args:
        old: a build folder or a fabric.yaml.
        new: another one.
        engine: what to run on; auto is Mininet where it can run.
        framework: of the controller.
        interval: seconds between two packets of a pair.
        pairs: how many pairs send all the time; 0 is all.

    Raises:
        InputError: `old` is neither, or has mistakes, `new` is no printable path, or there is no
            such engine or framework.
    """
    require_known(engine, framework)
    if not new.isprintable() or not 1 <= len(new) <= LONGEST_PLACE:
        required = f"a path of 1 to {LONGEST_PLACE:,} printable characters"
        raise InputError.of(required, shown(new), "rename it", key="BUILD")
    folder = Path(old) if Path(old).is_dir() else None
    fabric = None if folder else load_fabric(old)
    name = load(folder).name if folder else fabric.spec.name if fabric else ""
    scenario = Scenario.model_validate(
        {
            "name": name,
            "engine": engine,
            "framework": framework,
            "traffic": {"probe": {"interval": interval, "pairs": pairs}},
            "timeline": [{"build": new, "expect": {"lost": 0, "converged_within": 0}}],
        }
    )
    return LoadedScenario(scenario, folder=folder, fabric=fabric)
