"""Plots with curves, by Matplotlib: the figures of `design`, `analyse` and the papers.

The functions `efficiency`, `acceptance` and `failures` turn rows of results into `Panel`s of
`Curve`s: Moore-bound efficiency over the radix (PolarFly paper, figure 2; PolarStar paper, figure
1), accepted over offered traffic, and diameter and mean distance over failed links (figure 14 of
both). `plot` draws panels as SVG or PNG. Matplotlib, the extra `plots`, is imported here only.
Curves differ in colour, dash and mark.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilers.topology.families import FAMILIES
from compilers.topology.family import Design
from inventory.problems import InputError, install_extra

if TYPE_CHECKING:
    from compilers.evaluation.saturation import PatternThroughput

COLOURS = ("#b34700", "#0063a0", "#00805a", "#a1005a", "#000000", "#8a6d00", "#5b6b7b", "#5a3fc0")
"""The colours of curves, in turn."""
DASHES = ("-", "--", "-.", ":")
"""The dashes of curves, in turn, as Matplotlib names them."""
CAPTION_WIDTH = 84
"""Letters of a legend that fit below a panel of the first width in `INCHES`."""
MOST_ACROSS = 4
"""The most panels in a row."""
INCHES = ((6.2, 5.0), (6.2, 5.0), (4.4, 3.7), (4.4, 3.7))
"""Inches of a panel, across and up, if one, two, three or four are in a row."""
ROUTINGS = {"minimal": "minimal", "as_emitted": "as emitted", "adaptive": "adaptive"}
"""The routes of a `PatternThroughput`, by field, in words."""
STYLES: dict[str, dict[str, Any]] = {
    "line": {"linewidth": 1.3},
    "points": {"linestyle": "", "markersize": 3, "markevery": 1},
    "limit": {"linestyle": "-", "linewidth": 2.4, "marker": "", "color": "#000000", "zorder": 1.9},
}
"""How a curve is drawn: a line with marks, marks alone, or a thick line for a theoretical limit."""
MARKS = ("s", "o", "^", "D", "v", "x", "P", "*", "<", ">", "h", "+")
"""The marks of curves, in turn, as Matplotlib names them."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot."""

    name: str
    """Its name in the legend; "" for a line that needs none."""
    x: tuple[float, ...]
    """Where its points are. In a panel of steps these are the edges of the steps, one more than
    there are y."""
    y: tuple[float, ...]
    """The value at each x."""
    style: str = "line"
    """How it is drawn, one of `STYLES`."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes, with its curves."""

    title: str
    """The heading above the axes."""
    across: str
    """The label of the horizontal axis."""
    up: str
    """The label of the vertical axis."""
    curves: tuple[Curve, ...]
    """The lines in it."""
    top: float | None = None
    """The end of the vertical axis; None: as the curves need."""
    steps: bool = False
    """Whether curves are drawn as bars, between the edges that are their x."""
    ticks: tuple[str, ...] = ()
    """Names of the places 1, 2, … on the vertical axis."""
    bottom: float = 0.0
    """The beginning of the vertical axis, unless it is logarithmic."""
    logarithmic: str = ""
    """The axes that are logarithmic: "", "x" or "y"."""


def efficiency(designs: Iterable[Design]) -> tuple[Panel, ...]:
    """Panels of the Moore-bound efficiency of direct networks of diameter 2 and 3.

    A curve has the largest network of a family at each radix. Indirect networks are left out: some
    of their nodes have no hosts, so the bound does not apply.
    """
    # The efficiency at each radix in percent, by diameter and family.
    best: dict[tuple[int, str], dict[int, float]] = {}
    for design in designs:
        share = design.moore_efficiency
        if design.diameter is not None and share is not None:
            points = best.setdefault((design.diameter, design.family), {})
            points[design.radix] = max(points.get(design.radix, 0.0), 100 * share)
    curves: dict[int, list[Curve]] = {2: [], 3: []}
    # Families of the core come before those to compare with.
    core_first = sorted(best, key=lambda key: (key[1] not in FAMILIES, key[1]))
    for diameter, family in core_first:
        points = best[diameter, family]
        if diameter in curves and _is_direct(family, points):
            radixes = sorted(points)
            shares = tuple(points[radix] for radix in radixes)
            curves[diameter].append(Curve(family, tuple(map(float, radixes)), shares))
    return tuple(
        Panel(
            title=f"Direct networks of diameter {diameter}",
            across="radix (fabric ports per node)",
            up="% of the Moore bound",
            curves=tuple(curves[diameter]),
        )
        for diameter in curves
    )


def _is_direct(family: str, points: dict[int, float]) -> bool:
    """Whether all nodes of a family have hosts, judged by its smallest design."""
    from compilers.evaluation.comparison.designs import families

    design = next(families([family])[0].designs(min(points)))
    return design.endpoints == design.nodes


def acceptance(throughputs: Sequence[PatternThroughput], title: str) -> tuple[Panel, ...]:
    """Panels of accepted over offered traffic, one for each of `ROUTINGS`; a curve a pattern."""
    offered = tuple(range(101))
    panels = []
    for routing, words in ROUTINGS.items():
        curves = []
        for throughput in throughputs:
            saturation = getattr(throughput, routing)
            if throughput.flows and saturation:
                limit = 100 * saturation.share
                accepted = tuple(min(x, limit) for x in offered)
                curves.append(Curve(throughput.pattern, offered, accepted))
        if curves:
            axes = ("offered, % of injection", "accepted, %")
            panels.append(Panel(f"{title}: {words}", *axes, tuple(curves)))
    return tuple(panels)


def failures(curves: Sequence[tuple[str, Sequence[dict[str, Any]]]]) -> tuple[Panel, ...]:
    """Panels of the diameter and the mean distance over the fraction of failed links.

    Args:
        curves: the name of each curve, and its rows with `fraction`, `diameter` and
            `mean_distance`. Diameter and mean distance are None where the network is disconnected.
    """
    shown = (("diameter", "diameter"), ("mean_distance", "mean distance"))
    return tuple(
        Panel(
            title=f"Random link failures: {words}",
            across="failed links, %",
            up=f"{words}, links",
            curves=tuple(_curve(name, rows, key) for name, rows in curves),
        )
        for key, words in shown
    )


def read_failures(file: Path) -> tuple[str, list[dict[str, Any]]]:
    """The name and rows of a file that `polarfab analyse --what resilience --json` has printed.

    Raises:
        InputError: the file cannot be read or is something else.
    """
    try:
        document = json.loads(file.read_text())
        words = [f"{key}={value}" for key, value in document["parameters"].items()]
        rows = [
            {key: _number(row[key]) for key in ("fraction", "diameter", "mean_distance")}
            for row in document["resilience"]["rows"]
        ]
        return " ".join([str(document["family"]), *words]), rows
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError.of(
            file=str(file),
            required="the output of polarfab analyse --what resilience --json",
            given=getattr(error, "strerror", None) or "something else",
            todo="make it with: polarfab analyse polarfly --q 31 --what resilience --json",
        ) from error


def _number(value: object) -> float | None:
    """A number of a JSON document, or None.

    Raises:
        TypeError: the value is something else.
    """
    if value is not None and not isinstance(value, int | float):
        raise TypeError("not a number")
    return value


def _curve(name: str, rows: Sequence[dict[str, Any]], key: str) -> Curve:
    """A curve of the values at a key, without rows of disconnected networks."""
    connected = [row for row in rows if row[key] is not None]
    return Curve(
        name=name,
        x=tuple(100 * float(row["fraction"]) for row in connected),
        y=tuple(float(row[key]) for row in connected),
    )


def require_matplotlib() -> None:
    """Raise InputError if Matplotlib, which `plot` needs, is not installed."""
    if not find_spec("matplotlib"):
        required, given = "Matplotlib, for plots", "an installation without it"
        raise InputError.of(required, given, install_extra("plots"))


def plot(
    panels: Sequence[Panel],
    form: str,
    size: tuple[float, float] | None = None,
    plain: bool = False,
) -> bytes:
    """Draw panels as `svg` or `png`; the same panels give the same bytes.

    Up to three panels are in one row, more in several rows of up to `MOST_ACROSS`. Curves of the
    same name look the same in each panel. If one panel has the curves of all others, one legend is
    below all panels.

    Args:
        panels: at least one.
        form: `svg` or `png`.
        size: inches of a panel, across and up; None for those of `INCHES`.
        plain: whether letters of an SVG stay text, for a page, which has fonts; else they are
            drawn as paths.

    Raises:
        InputError: Matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # A fixed salt and no date: identical bytes on every run.
    style = rc_context(
        {
            "svg.hashsalt": "polarfab",
            "svg.fonttype": "none" if plain else "path",
            "font.family": "DejaVu Sans",
            "font.size": 9,
        }
    )
    count = len(panels)
    across = count if count < MOST_ACROSS else min(-(-count // 2), MOST_ACROSS)
    down = -(-count // across)  # rounded up
    wide, high = size or INCHES[across - 1]
    with style:
        figure = Figure(figsize=(wide * across, high * down), layout="constrained")
        FigureCanvasAgg(figure)
        _draw_panels(figure, panels, (down, across), wide)
        out = io.BytesIO()
        # Metadata that would differ between runs or versions is left out.
        left_out = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        figure.savefig(out, format=form, dpi=150, metadata=left_out)
    return out.getvalue()


def _draw_panels(figure: Any, panels: Sequence[Panel], shape: tuple[int, int], wide: float) -> None:
    """Draw the panels in a grid, with one legend for all, or with one for each.

    Args:
        figure: a figure of Matplotlib.
        panels: at least one.
        shape: rows and columns of the grid.
        wide: inches of a panel, across.
    """
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    fullest = max(panels, key=lambda panel: len(panel.curves))
    has_one_legend = len(panels) > 1 and len(names) == len(fullest.curves)
    all_axes = figure.subplots(*shape, squeeze=False).ravel()
    below_axes = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14)}
    for axes, panel in zip(all_axes, panels, strict=False):
        _draw_panel(axes, panel, names)
        if not has_one_legend:
            _legend(axes, axes, panel.curves, wide, below_axes)
    if has_one_legend:
        axes = all_axes[panels.index(fullest)]
        _legend(figure, axes, fullest.curves, wide * shape[1], {"loc": "outside lower center"})
    for axes in all_axes[len(panels) :]:  # the grid may have more cells than panels
        axes.set_visible(False)


def _legend(
    where: Any, axes: Any, curves: Sequence[Curve], inches: float, place: dict[str, Any]
) -> None:
    """Draw a legend in as few rows as fit.

    Args:
        where: the figure or the axes that get the legend.
        axes: the axes with all curves.
        curves: the curves.
        inches: the width that the legend may have.
        place: options of Matplotlib for its place.
    """
    if any(curve.name for curve in curves):
        letters = 6 + max(len(curve.name) for curve in curves)
        most = max(1, int(CAPTION_WIDTH * inches / INCHES[0][0]) // letters)
        rows = -(-len(curves) // most)
        columns = -(-len(curves) // rows)
        lines, named = axes.get_legend_handles_labels()
        where.legend(lines, named, fontsize=8, frameon=False, ncols=columns, **place)


def _draw_panel(axes: Any, panel: Panel, names: Sequence[str]) -> None:
    """Draw a panel.

    Args:
        axes: the axes of Matplotlib.
        panel: what is drawn.
        names: the names of all curves. The index of a curve's name decides its colour, dash and
            mark.
    """
    for curve in panel.curves:
        number = names.index(curve.name)
        colour = COLOURS[number % len(COLOURS)]
        if panel.steps:
            axes.stairs(curve.y, curve.x, label=curve.name, color=colour, fill=True, linewidth=0)
            continue
        look = {
            "color": colour,
            "linestyle": DASHES[(number + number // len(COLOURS)) % len(DASHES)],
            "marker": MARKS[number % len(MARKS)],
            "markersize": 3 if len(curve.x) > 40 else 4.5,
            "markevery": max(1, len(curve.x) // 24),
        }
        axes.plot(curve.x, curve.y, label=curve.name, **look | STYLES[curve.style])
    axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold")
    axes.set_xlabel(panel.across)
    axes.set_ylabel(panel.up)
    if panel.logarithmic:
        axes.set(**{f"{panel.logarithmic}scale": "log"})
    bottom = None if panel.logarithmic == "y" else panel.bottom
    axes.set_ylim(bottom=bottom, top=panel.top)
    if panel.ticks:
        axes.set_yticks(range(1, len(panel.ticks) + 1), panel.ticks)
    if panel.steps:
        axes.locator_params(integer=True, min_n_ticks=1)  # events and packets come whole
    if not panel.across:
        axes.set_xticks([])  # bars of names, no quantity
    axes.grid(visible=True, color="#d9dee3", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
