"""The cable schedule of a fabric: the cables of all its planes, in all forms of print.

`CableSchedule` is what `polarfab cables` prints. It joins the cables of each plane (`cable_plan`),
their way through panels (`panel_plan`, `cords`) and the bill of materials (`bill`), and prints them
by `cable_formats`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np

from compilers.cabling import cable_formats as formats
from compilers.cabling.bill import BillItem, bill
from compilers.cabling.cable_plan import CabledFabric, Cables, cables_of, hardware_of
from compilers.cabling.cords import CORD_COLUMNS, Cord, bill_items, cords, labels_of_cords
from compilers.cabling.host_cables import as_host_csv
from compilers.cabling.netbox_cables import as_netbox
from compilers.cabling.panel_plan import (
    PanelPlan,
    lacks_links,
    panel_plan,
    panel_summary,
    require_whole,
)
from compilers.cabling.schedule_columns import Row, ScheduleRows
from compilers.tables.build import Build
from inventory.problems import InputError, did_you_mean

CABLE_FORMATS = ("csv", "markdown", "netbox", "labels", "bom", "hosts", "panels")
"""The formats of `CableSchedule.text` besides `json`."""
BILL = ("kind", "name", "detail", "quantity")
"""The keys of an item of the bill in JSON."""


class PlaneCables(NamedTuple):
    """The selected cables of a plane."""

    build: Build | CabledFabric
    """The plane, with or without tables."""
    rows: ScheduleRows
    """Its selected cables."""


@dataclass(frozen=True, eq=False, repr=False)
class CableSchedule:
    """The cables between the nodes of a fabric, or those that end in one rack."""

    planes: tuple[PlaneCables, ...]
    """The build and the selected cables of each plane."""
    rack: str = ""
    """The name of the rack in which the selected cables end; "" if all are selected."""

    @classmethod
    def of(cls, builds: Sequence[Build | CabledFabric], rack: str = "") -> CableSchedule:
        """The schedule of these planes.

        Args:
            builds: one a plane, with or without tables.
            rack: only the cables with an end in the rack of this name; "" for all.

        Raises:
            InputError: there is no such rack.
        """
        planes = tuple(PlaneCables(build, _rows(build)) for build in builds)
        return cls(_planes_of_rack(planes, rack) if rack else planes, rack)

    @property
    def name(self) -> str:
        """The names of the planes."""
        return " and ".join(build.name for build, _ in self.planes)

    def __len__(self) -> int:
        """The number of selected cables."""
        return sum(len(rows.selected) for _, rows in self.planes)

    @property
    def metres(self) -> float:
        """The lengths of the selected cables together."""
        return float(sum(rows.cables.length[rows.selected].sum() for _, rows in self.planes))

    def __iter__(self) -> Iterator[Row]:
        """Yield a row of `schedule_columns.CABLE_COLUMNS` for each cable."""
        return chain.from_iterable(rows for _, rows in self.planes)

    def __repr__(self) -> str:
        """`<CableSchedule lab: 228 cables>`."""
        return f"<CableSchedule {self.name}: {len(self):,} cables>"

    @cached_property
    def plan_of_plane(self) -> tuple[PanelPlan | None, ...]:
        """How the links of each plane run through panels.

        None for a plane without panels, or in which links are missing.
        """
        return tuple(
            panel_plan(build.topology, build.wiring, rows.cables.hardware)
            for build, rows in self.planes
        )

    @property
    def plans(self) -> tuple[PanelPlan, ...]:
        """The plans that there are, in the order of the planes."""
        return tuple(plan for plan in self.plan_of_plane if plan)

    @property
    def has_bill(self) -> bool:
        """Whether the fabric has a bill: with panels, only if no link is missing."""
        return not any(lacks_links(rows.cables.hardware) for _, rows in self.planes)

    def bill(self) -> list[BillItem]:
        """The bill of materials. With panels, ribbons and trunks take the place of cables.

        Raises:
            InputError: there are panels, and links are missing.
        """
        direct = bill(*((build.wiring, rows.cables) for build, rows in self.planes))
        plans = self._whole_plans()
        if not plans:
            return direct
        without_cables = [item for item in direct if item.kind not in ("cable", "fibre")]
        return without_cables + [item for plan in plans for item in bill_items(plan)]

    def _whole_plans(self) -> tuple[PanelPlan, ...]:
        """A plan for each plane that has panels.

        Raises:
            InputError: there are panels, and links are missing.
        """
        for _, rows in self.planes:
            require_whole(rows.cables.hardware)
        return self.plans

    def _cords(self) -> Iterator[Cord]:
        """Yield the ribbons and trunks that end in the selected rack, or all."""
        for plan in self._whole_plans():
            for cord in cords(plan):
                if self.rack in ("", cord.a_rack, cord.b_rack):
                    yield cord

    def _require_panels(self) -> None:
        """Pass if the fabric has panels.

        Raises:
            InputError: it has none, or links are missing.
        """
        if not self._whole_plans():
            todo = "add `panels: {trunk: mpo24}` to the inventory and compile"
            raise InputError.of("a fabric with panels", self.name, todo, key="format")

    def summaries(self) -> list[dict[str, Any]]:
        """Counts of cables and bundles of each plane."""
        summaries = [_summary(build, rows) for build, rows in self.planes]
        for summary, plan in zip(summaries, self.plan_of_plane, strict=True):
            if plan:
                summary["panels"] = panel_summary(plan)
        return summaries

    def text(self, form: str) -> Iterator[str]:
        """The schedule in a format of `CABLE_FORMATS` or as `json`, piece by piece.

        Raises:
            InputError: there is no such format.
        """
        if form not in (*CABLE_FORMATS, "json"):
            raise InputError.of(", ".join((*CABLE_FORMATS, "json")), form, key="format")
        if form == "panels":
            self._require_panels()
            return formats.as_table(CORD_COLUMNS, map(astuple, self._cords()))
        if form == "labels":
            through = self._whole_plans()
            labels = labels_of_cords(self._cords()) if through else formats.labels_of_rows(self)
            return formats.as_labels(labels, f"{self.name}: cable labels")
        if form == "bom":
            return formats.as_bill(self.bill())
        if form == "hosts":
            return as_host_csv(self.planes, self.rack)
        if form == "netbox":
            return as_netbox(zip_longest((rows for _, rows in self.planes), self._whole_plans()))
        if form == "csv":
            return formats.as_csv(self, self._through())
        if form == "json":
            return self._json()
        return chain((f"# {self.name}: {len(self):,} cables\n",), formats.as_markdown(self))

    def _through(self) -> Iterator[str] | None:
        """The panels that each selected cable runs through; None if any plane has no panels."""
        if len(self.plans) < len(self.planes):
            return None
        return (
            plan.through(cable)
            for plan, (_, rows) in zip(self.plans, self.planes, strict=True)
            for cable in rows.selected.tolist()
        )

    def _json(self) -> Iterator[str]:
        """A JSON document in pieces, as there may be a million cables.

        It has no bill if panels lack links.
        """
        summaries = self.summaries()
        summary = summaries[0] if len(summaries) == 1 else {"planes": summaries}
        if self.has_bill:
            summary["bom"] = [dict(zip(BILL, astuple(item), strict=True)) for item in self.bill()]
        # The document without its last line, the brace; the schedule follows as its last key.
        yield json.dumps(summary, indent=2)[:-2] + ',\n  "schedule": ['
        comma = "\n"
        for record in formats.as_records(self):
            yield f"{comma}    {json.dumps(record)}"
            comma = ",\n"
        yield "\n  ]\n}\n"


def _rows(build: Build | CabledFabric) -> ScheduleRows:
    """All cables of a plane."""
    return ScheduleRows.of(build.wiring, cables_of(build.wiring, hardware_of(build)))


def _planes_of_rack(planes: Sequence[PlaneCables], name: str) -> tuple[PlaneCables, ...]:
    """The planes with a rack of this name, and their cables that end in it.

    Raises:
        InputError: no plane has such a rack.
    """
    racks = [rows.cables.hardware.rack_names for _, rows in planes]
    if not any(name in names for names in racks):
        all_names = [word for names in racks for word in names]
        todo = did_you_mean(name, all_names, f"the racks are {all_names[0]} to {all_names[-1]}")
        raise InputError.of("the name of a rack", name, todo, key="rack")
    return tuple(
        PlaneCables(build, rows.of_rack(names.index(name)))
        for (build, rows), names in zip(planes, racks, strict=True)
        if name in names
    )


def _summary(build: Build | CabledFabric, rows: ScheduleRows) -> dict[str, Any]:
    """The counts of a plane, and the identity of its build if it has tables."""
    cables = rows.cables
    sizes, count = np.unique(cables.bundles.cables, return_counts=True)
    identity = {"build": build.identity} if isinstance(build, Build) else {}
    return {
        "fabric": build.name,
        **identity,
        "cables": len(cables),
        "metres": float(cables.length.sum()),
        "loose": int((cables.bundle < 0).sum()),
        "bundles": {int(s): int(c) for s, c in zip(sizes, count, strict=True)},
        "cluster_pairs": _cluster_pairs(cables),
    }


def _cluster_pairs(cables: Cables) -> dict[int, int]:
    """How many pairs of clusters are joined by each number of cables, in whatever racks."""
    pairs = np.sort(cables.bundles.clusters.astype(np.int64), axis=1)
    is_between = pairs[:, 0] != pairs[:, 1]
    clusters = len(cables.hardware.cluster_names)
    # One number for each pair of clusters.
    _, pair = np.unique(pairs[is_between] @ [clusters, 1], return_inverse=True)
    cables_of_pair = np.bincount(pair, cables.bundles.cables[is_between])
    sizes, count = np.unique(cables_of_pair, return_counts=True)
    return {int(s): int(c) for s, c in zip(sizes, count, strict=True)}
