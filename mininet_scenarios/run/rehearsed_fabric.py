"""The state of a fabric while the events of a timeline happen: its builds, outage and controller.

`mininet_scenarios.run.timeline` applies each event to the engine and to a `RehearsedFabric`, and
takes from this what the tables do then (`predicted`). A fabric that has begun to move to another
build holds a mixture of both until the move ends.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from mininet_scenarios.run.rehearsal_plan import Plan
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.outage import BuildChange, ControllerChange, Event, Link, Outage
from mininet_scenarios.verdict.checks import Examiner
from mininet_scenarios.verdict.predict import Prediction


class RehearsedFabric:
    """What the fabric holds, what of it is out of order, and whether a controller runs."""

    def __init__(self, plan: Plan, examiner: Examiner, controlled: bool) -> None:
        """Begin without failures.

        Args:
            plan: has the builds.
            examiner: compares observations with the first build, without failures.
            controlled: whether a controller runs.
        """
        self.plan = plan
        self.first_examiner = self.current_examiner = examiner
        """Compare observations with the first build, and with the one that the fabric holds now,
        both without failures."""
        self.next_examiner: Examiner | None = None
        """Compares observations with the build that the fabric moves to; None while it does not
        move."""
        self.outage = Outage()
        """The switches and links that are out of order now."""
        self.repaired_outage = Outage()
        """The failures that the controller has routed around."""
        self.controlled = controlled
        """Whether a controller runs."""

    @property
    def moved(self) -> bool:
        """Whether the fabric holds another build than the first, without failures."""
        is_undamaged = self.outage == Outage() and self.next_examiner is None
        return is_undamaged and self.current_examiner is not self.first_examiner

    @property
    def controller_repairs(self) -> bool:
        """Whether a controller runs that routes around failures."""
        return self.controlled and self.plan.scenario.repair

    def apply(self, event: Event) -> None:
        """Change the state by an event; with a `BuildChange` a move begins."""
        self.outage = self.outage.after(event)
        if isinstance(event, ControllerChange):
            self.controlled = event.running
        if self.controller_repairs:
            self.repaired_outage = self.outage.links_around
        if isinstance(event, BuildChange):
            build = self.plan.build(event.build)
            hosts = HostSample.of(build, self.plan.scenario.hosts)
            self.next_examiner = Examiner(Prediction.of(build), hosts)

    def suppress(self, links: AbstractSet[Link]) -> None:
        """Let the controller route around more links than those of the outage."""
        self.repaired_outage = replace(
            self.repaired_outage, links=self.repaired_outage.links | links
        )

    def end_move(self) -> None:
        """End a move: all switches hold the new build."""
        if self.next_examiner:
            self.current_examiner = self.next_examiner
        self.next_examiner = None

    def take_move_back(self) -> None:
        """End a move: all switches hold the old build again."""
        self.next_examiner = None

    def predicted(self) -> Prediction:
        """What the tables do now; during a move, what any mixture of both builds does."""
        prediction = self.current_examiner.prediction.under(self.outage, self.repaired_outage)
        if self.next_examiner is None:
            return prediction
        after_move = self.next_examiner.prediction.under(self.outage, self.repaired_outage)
        return prediction.during_move(after_move)
