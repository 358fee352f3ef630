"""Charts as values for an SVG template: grids of shaded cells with texts and a legend.

`link_matrix`, `move_chart` and `rack_chart` fill `Grid`s with values; this module turns values into
shades (`Scale`), puts grids side by side, and makes a `Chart` of them. A grid has one cell for a
link, a switch or a pair of racks. Its cells are one SVG path for each shade, so that a chart of a
large fabric stays small. Positions are whole pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from templates import environment

SHADES = 9
"""How many shades there are; shade 0 is the faintest."""
ZERO_SHADE = -1
"""Stands for the shade of the value zero."""
CHART_MARGIN = 24
"""Pixels around a chart."""
CHART_HEAD = 68
"""Pixels above the drawing, for the heading."""
GRID_HEAD = 40
"""Pixels above a grid for its title and note."""
GRID_GAP = 34
"""Pixels between two grids."""
LEGEND_HEIGHT = 26
"""Pixels of the legend."""
LETTER_WIDTH = 6.4
"""Pixels of a letter of a note or a name."""
GRID_TITLE_LETTER = 7.4
"""Pixels of a letter of a grid's title."""
TITLE_LETTER, SUBTITLE_LETTER = 12, 6.8
"""Pixels of a letter of the chart's heading, and of the line below it."""
DIGIT_WIDTH = 7
"""Pixels of a digit below a swatch."""
LINE = 12
"""Pixels of a line of text."""
SWATCH = 22
"""Pixels of the width of a swatch of the legend, if its number is short."""
SWATCH_HEIGHT = 10
"""Pixels of the height of a swatch."""
SPACED_CELL = 4
"""The least side in pixels of cells that have a pixel between them."""
Array = NDArray[Any]
"""Numbers of any type."""


@dataclass(frozen=True, slots=True)
class Label:
    """A text on a chart."""

    x: float
    """Pixels from the top left corner of the chart."""
    y: float
    """Pixels from the top left corner of the chart."""
    text: str
    """What is written."""
    style: str = "label"
    """Its class in the template."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An SVG path."""

    style: str
    """Its class in the template."""
    path: str
    """The commands of the path."""
    count: int
    """How many pieces the path has."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A box with a label in the middle of its top edge."""

    x: int
    """Pixels, the top left corner."""
    y: int
    """Pixels, the top left corner."""
    width: int
    """Pixels."""
    height: int
    """Pixels."""
    label: str
    """The text at the top edge."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A complete chart, in pixels."""

    title: str
    """The heading, and the title of the page."""
    subtitle: str
    """The line below the heading."""
    about: str
    """What the chart shows, for readers who cannot see it."""
    width: int
    """Pixels of the whole chart."""
    height: int
    """Pixels of the whole chart."""
    frames: tuple[Frame, ...]
    """The boxes around its parts."""
    shapes: tuple[Shape, ...]
    """What is drawn, from back to front."""
    labels: tuple[Label, ...]
    """What is written."""

    def svg(self) -> str:
        """The chart as SVG, light or dark as the reader's screen is."""
        return environment().get_template("draw/chart.svg.j2").render(c=self)

    def html(self) -> str:
        """The chart in a self-contained HTML page."""
        return environment().get_template("draw/chart.html.j2").render(c=self, picture=self.svg())


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """The shades of values.

    Each value has a shade of its own if these are few; else there are nine equal steps to the peak.
    """

    levels: NDArray[np.float64]
    """float64[k], the distinct values; empty if there are too many for a shade each."""
    peak: float
    """The largest value, which has the darkest shade."""
    has_whole_numbers: bool = False
    """Whether all values are whole numbers, such as counts."""

    @classmethod
    def of(cls, *values: Array) -> Scale:
        """A scale for some arrays of values, none of which is negative."""
        levels = np.unique(np.round(np.concatenate([array.ravel() for array in values]), 6))
        levels = levels[levels > 0]
        has_whole_numbers = bool((levels == np.floor(levels)).all())
        peak = float(levels.max(initial=0))
        if len(levels) > SHADES:
            levels = levels[:0]
        return cls(levels, peak, has_whole_numbers)

    def shades(self, values: Array) -> NDArray[np.int64]:
        """The shade of each value, int64 in the shape of the values; ZERO_SHADE for zero."""
        rounded = np.round(values.astype(np.float64), 6)
        if len(self.levels):
            faintest = 0 if len(self.levels) > 1 else SHADES // 2
            shade_of_level = np.round(np.linspace(faintest, SHADES - 1, self.steps))
            level = np.searchsorted(self.levels, rounded).clip(0, self.steps - 1)
            shade = shade_of_level.astype(np.int64)[level]
        else:
            shade = np.ceil(rounded / max(self.peak, 1e-9) * SHADES).astype(np.int64) - 1
        shades: NDArray[np.int64] = np.where(rounded > 0, shade.clip(0, SHADES - 1), ZERO_SHADE)
        return shades

    @property
    def steps(self) -> int:
        """How many shades the legend shows."""
        return len(self.levels) or SHADES

    def legend(self, x: int, y: int, words: str) -> tuple[list[Shape], list[Label]]:
        """A row of swatches with their values below.

        Args:
            x: pixels of the left end.
            y: pixels of the upper end.
            words: what the values are, written above.
        """
        one_shade_a_value = bool(len(self.levels)) or not self.peak
        if one_shade_a_value:
            values = self.levels if self.peak else np.zeros(1)
            shades = self.shades(values).tolist()
            width = max(SWATCH, DIGIT_WIDTH * max(map(len, map(short_number, values.tolist()))) + 8)
            labelled = range(len(shades))
        else:
            values = self.peak * np.arange(1, SHADES + 1) / SHADES
            if self.has_whole_numbers:
                values = np.floor(values)  # the largest value of that shade
            shades = list(range(SHADES))
            width = SWATCH
            labelled = range(0, SHADES, SHADES // 2)  # the first, the middle and the last
        shapes, labels = [], [Label(x, y - 6, words, "key")]
        for step, (value, shade) in enumerate(zip(values.tolist(), shades, strict=True)):
            left = x + step * width
            path = f"M{left} {y}h{width}v{SWATCH_HEIGHT}h-{width}z"
            shapes.append(Shape(f"{_style(shade)} swatch", path, 1))
            if step in labelled:
                labels.append(Label(left + width / 2, y + 22, short_number(value), "tick"))
        return shapes, labels


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Shaded cells in rows and columns, one for each of n entries."""

    title: str
    """The heading above the cells."""
    note: str
    """A line below the heading."""
    row: Array
    """int[n], the row of each entry."""
    column: Array
    """int[n], the column of each entry."""
    value: Array
    """float[n], the value of each entry, shown as a shade."""
    size: int
    """Pixels of the side of a cell."""
    rows: int
    """How many rows there are."""
    columns: int
    """How many columns there are."""
    row_bounds: Sequence[int] = ()
    """Rows before which a line is drawn."""
    column_bounds: Sequence[int] = ()
    """Columns before which a line is drawn."""
    writes_values: bool = False
    """Whether each cell has its value as text, too."""

    @property
    def width(self) -> int:
        """Pixels from the first column to the last, or to the end of the texts."""
        texts = max(len(self.title) * GRID_TITLE_LETTER, len(self.note) * LETTER_WIDTH)
        return max(self.columns * self.size, int(texts))

    @property
    def height(self) -> int:
        """Pixels from the first row to the last."""
        return self.rows * self.size

    def shapes(self, x: int, y: int, scale: Scale) -> Iterator[Shape]:
        """Yield the ground, the cells by shade, and the lines between groups, at a place."""
        wide, high = self.columns * self.size, self.height
        yield Shape("ground", f"M{x} {y}h{wide}v{high}h-{wide}z", 1)
        edge = self.size - 1 if self.size >= SPACED_CELL else self.size
        shade = scale.shades(self.value)
        for number in np.unique(shade).tolist():
            is_in_shade = shade == number
            left = x + self.column[is_in_shade] * self.size
            top = y + self.row[is_in_shade] * self.size
            corners = zip(left.tolist(), top.tolist(), strict=True)
            path = "".join(
                f"M{cell_x} {cell_y}h{edge}v{edge}h-{edge}z" for cell_x, cell_y in corners
            )
            yield Shape(f"{_style(number)} cell", path, int(is_in_shade.sum()))
        lines = [f"M{x} {y + bound * self.size - 0.5}h{wide}" for bound in self.row_bounds]
        lines += [f"M{x + bound * self.size - 0.5} {y}v{high}" for bound in self.column_bounds]
        yield Shape("bounds", "".join(lines), len(lines))

    def labels(self, x: int, y: int, scale: Scale) -> Iterator[Label]:
        """Yield title and note, and the values if they are written, at a place."""
        yield Label(x, y - 24, self.title, "grid-title")
        yield Label(x, y - 8, self.note, "key")
        if self.writes_values:
            shade = scale.shades(self.value)
            cells = (self.row, self.column, self.value, shade)
            for row, column, value, shade_of_cell in zip(
                *(part.tolist() for part in cells), strict=True
            ):
                middle = x + (column + 0.5) * self.size - 0.5, y + (row + 0.5) * self.size - 0.5
                style = "value strong" if shade_of_cell > SHADES // 2 - 1 else "value"
                yield Label(*middle, short_number(value), style)


def _style(shade: int) -> str:
    """The class of a shade in the template."""
    return "zero" if shade == ZERO_SHADE else f"s{shade}"


def short_number(value: float) -> str:
    """A number in few digits.

    >>> short_number(1204), short_number(12.5), short_number(1 / 3)
    ('1,204', '12.5', '0.333')
    """
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def row_labels(names: Sequence[str], middles: Iterable[float], x: int) -> list[Label]:
    """The names of rows to the left of a grid; names that would touch an earlier one are left out.

    Args:
        names: of groups of rows.
        middles: the y of the middle of each group.
        x: the left edge of the grid.
    """
    labels: list[Label] = []
    for name, y in zip(names, middles, strict=True):
        if not labels or y - labels[-1].y >= LINE:
            labels.append(Label(x - 7, y, name, "row-name"))
    return labels


class Drawing(NamedTuple):
    """Grids that are drawn."""

    shapes: list[Shape]
    """What is drawn."""
    labels: list[Label]
    """What is written."""
    right: int
    """Pixels where the drawing ends on the right."""
    bottom: int
    """Pixels where it ends below."""


def side_by_side(
    grids: Sequence[Grid],
    legends: Sequence[tuple[Scale, str]],
    names: Sequence[str],
    middles: Array,
    corner: tuple[int, int],
) -> Drawing:
    """Draw grids of the same rows side by side, with the names of the rows and the legends.

    Args:
        grids: the grids, at least one.
        legends: a scale and what its shades mean, for each grid or one for all.
        names: of groups of rows.
        middles: the middle of each group, in rows.
        corner: x and y of the upper left end.
    """
    corner_x, corner_y = corner
    left = x = corner_x + int(max(map(len, names), default=0) * LETTER_WIDTH) + 8
    y = corner_y + GRID_HEAD
    foot = y + max(grid.height for grid in grids) + 28
    shapes: list[Shape] = []
    labels = row_labels(names, (middles * grids[0].size + y).tolist(), left)
    for number, grid in enumerate(grids):
        scale, words = legends[number % len(legends)]
        shapes += grid.shapes(x, y, scale)
        labels += grid.labels(x, y, scale)
        if number < len(legends):
            swatches, texts = scale.legend(x, foot, words)
            shapes, labels = shapes + swatches, labels + texts
        x += grid.width + GRID_GAP
    longest = max(len(words) for _, words in legends)
    right = max(x - GRID_GAP, left + 2 * SWATCH * SHADES, left + int(longest * LETTER_WIDTH))
    return Drawing(shapes, labels, right, foot + LEGEND_HEIGHT)


def chart_of_grids(
    title: str,
    subtitle: str,
    grids: Sequence[Grid],
    names: Sequence[str],
    middles: Array,
    words: str,
) -> Chart:
    """A chart of grids that share one scale.

    Args:
        title: the heading.
        subtitle: the line below the heading.
        grids: the grids, at least one, all with the same rows.
        names: of groups of rows.
        middles: the middle of each group, in rows.
        words: what the shades mean.
    """
    legend = Scale.of(*(grid.value for grid in grids)), words
    corner = CHART_MARGIN, CHART_HEAD
    drawing = side_by_side(grids, [legend], names, middles, corner)
    ends = drawing.right, drawing.bottom
    return compose_chart(
        title,
        subtitle=subtitle,
        frames=(),
        shapes=drawing.shapes,
        labels=drawing.labels,
        ends=ends,
        grids=grids,
    )


def compose_chart(
    title: str,
    subtitle: str,
    frames: Sequence[Frame],
    shapes: Sequence[Shape],
    labels: Sequence[Label],
    ends: tuple[int, int],
    grids: Sequence[Grid],
) -> Chart:
    """A chart that is wide enough for its texts.

    Args:
        title: the heading.
        subtitle: the line below the heading.
        frames: boxes.
        shapes: what is drawn, from back to front.
        labels: what is written.
        ends: pixels where the drawing ends on the right and below.
        grids: their titles and notes describe the chart to readers who cannot see it.
    """
    right, bottom = ends
    about = ". ".join([subtitle, *(f"{grid.title}: {grid.note}" for grid in grids)])
    width = (
        max(right, int(TITLE_LETTER * len(title)), int(SUBTITLE_LETTER * len(subtitle)))
        + CHART_MARGIN
    )
    parts = tuple(frames), tuple(shapes), tuple(labels)
    return Chart(title, subtitle, about, width, bottom + CHART_MARGIN // 2, *parts)
