"""The library's functions for pictures of fabrics and graphs, and for charts of fabrics.

They return SVG or HTML as a `Picture`, a text that notebooks display. `polarfab draw` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from polarfab.fabric import Fabric

if TYPE_CHECKING:
    from compilers.choices import Chart, PictureForm
    from compilers.forwarding.walks import Progress
    from compilers.topology.labelled_graph import Topology


class Picture(str):
    """The text of an SVG picture or of an HTML page, which notebooks display."""

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        """The picture, for notebooks."""
        return None if self._is_page() else str(self)

    def _repr_html_(self) -> str | None:
        """The page in a frame of its own, for notebooks."""
        from html import escape

        style = "width: 100%; height: 600px; border: 0"
        frame = f'<iframe srcdoc="{escape(self)}" style="{style}"></iframe>'
        return frame if self._is_page() else None

    def _is_page(self) -> bool:
        """Whether the text is an HTML page."""
        return self.lstrip()[:9].lower() == "<!doctype"


def draw(
    subject: Fabric | Topology,
    form: PictureForm = "svg",
    layout: str = "",
    racks: Sequence[str] = (),
) -> Picture:
    """A picture of a fabric or a graph, or an interactive page that needs no network.

    Args:
        subject: the fabric, or the graph.
        form: `svg` is a picture, `html` a page.
        layout: the boxes: clusters by name, or `racks` for the racks of the inventory.
        racks: one or two racks or clusters to highlight, by name or number, or a risk group, such
            as `["module:A/0"]`.

    Raises:
        InputError: there is no such form, layout or rack, or the fabric is too large.

    Example:
        >>> import polarfab
        >>> polarfab.draw(polarfab.topology("polarfly", q=3)).startswith("<svg")
        True
    """
    from compilers.drawing.picture import draw, subject_of_build, subject_of_topology

    drawn = (
        subject_of_build(subject.build)
        if isinstance(subject, Fabric)
        else subject_of_topology(subject)
    )
    return Picture(draw(drawn, form, layout, tuple(racks)))


def chart(
    fabric: Fabric,
    show: Chart,
    form: PictureForm = "svg",
    *,
    pattern: str = "",
    before: Fabric | None = None,
    progress: Progress | None = None,
) -> Picture:
    """A chart of a fabric as `svg`, or in a page that needs no network (`html`).

    Args:
        fabric: the fabric; it is compiled if it is not.
        show: `racks` and their cables, the `load` of each link, `failures` of each link, or the
            `rounds` of a move.
        form: `svg` or `html`.
        pattern: the pattern of the traffic that loads the links; "" for uniform.
        before: the fabric that the switches hold before the move.
        progress: called with (done, all) while failures are walked.

    Raises:
        InputError: there is no such chart, form or pattern, or no build to move from.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> polarfab.chart(fabric, "load").startswith("<svg")
        True
    """
    from compilers.drawing.picture import draw_chart
    from compilers.memory_bound import FLOW_BYTES, MemoryBound

    if show == "load" and pattern in ("", "uniform"):
        MemoryBound.of_build(fabric.build).storing(FLOW_BYTES).require()
    old = before.build if before else None
    return Picture(
        draw_chart(
            fabric.build, show=show, form=form, pattern=pattern, before=old, progress=progress
        )
    )
