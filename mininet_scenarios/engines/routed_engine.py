"""The engines `linux` and `frr`, from outside: they run rendered configurations."""

from __future__ import annotations

from pathlib import Path

from compilers.targets.target_lookup import target
from mininet_scenarios.engines.mininet_engine import MininetEngine
from mininet_scenarios.machine.preflight import require_routers
from mininet_scenarios.scenario.engine import Setup, Step


class RoutedEngine(MininetEngine):
    """Every switch is a network namespace whose kernel forwards; hosts as in Mininet's engine."""

    def __init__(self, setup: Setup, name: str) -> None:
        """`name` is that of the engine and of the target.

        Raises:
            InputError: this machine lacks something that it needs; all of it at once.
        """
        require_routers(name)
        super().__init__(setup, "routed_child")
        self.name = name

    def start(self, step: Step) -> None:
        """Render, start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        rendered = Path(self.inner.job.logs) / self.name
        with step("render", f"render {switches} configurations for {self.name}") as told:
            target(self.name).render(self.build, rendered, progress=told)
        with step("start", f"start {switches} routers with {links} links, and their hosts") as told:
            self.inner.start()
            self.inner.call("start", self.name, str(rendered), progress=told)
