"""A fabric in pictures and charts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from inventory.problems import InputError
from polarfab.contract import contracted

if TYPE_CHECKING:
    from compilers.choices import Chart, PictureForm
    from compilers.tables.build import Build
    from polarfab.runnable_fabric import Progress


class Picture(str):
    """The text of an SVG picture, or of an HTML page; notebooks show it as such."""

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
        return self.lstrip()[:9].lower() == "<!doctype"


@contracted
class DrawableFabric(ABC):
    """The part of `Fabric` that draws."""

    compiled: tuple[Build, ...]

    def _repr_svg_(self) -> str | None:
        """The picture that a notebook shows: of one plane with its tables, if it is not large."""
        try:
            return self.draw()._repr_svg_() if len(self.compiled) == 1 else None
        except InputError:
            return None  # the fabric is too large for a picture

    @property
    @abstractmethod
    def build(self) -> Build:
        """The build of the one plane."""

    def draw(
        self, form: PictureForm = "svg", layout: str = "", racks: Sequence[str] = ()
    ) -> Picture:
        """A picture of the fabric (`svg`), or an interactive page that needs no network (`html`).

        layout: the boxes: clusters by name, or `racks` for the inventory's. racks: one or two racks
        or clusters to highlight, by name or number, or what shares a risk, as `["module:A/0"]`.

        Raises:
            InputError: no such form, layout or rack, or the fabric is too large.
        """
        from compilers.drawing.picture import draw, of_build
        from compilers.estimates import Size, require

        require(Size.of_build(self.build), "draw")
        return Picture(draw(of_build(self.build), form, layout, tuple(racks)))

    def chart(
        self,
        show: Chart,
        form: PictureForm = "svg",
        *,
        pattern: str = "",
        before: DrawableFabric | None = None,
        progress: Progress | None = None,
    ) -> Picture:
        """A chart of the fabric as `svg`, or in a page that needs no network (`html`).

        Args:
            show: `racks` and their cables, the `load` of each link, `failures` of each link, or the
                `rounds` of a move.
            form: svg or html.
            pattern: of the traffic that loads the links; "" for uniform.
            before: what the switches hold before the move.
            progress: called with (done, all) while failures are walked.

        Raises:
            InputError: no such chart, form or pattern, or no build to move from.
        """
        from compilers.drawing.picture import draw_chart
        from compilers.estimates import Size, require

        if show == "load" and pattern in ("", "uniform"):
            require(Size.of_build(self.build), "draw load")
        old = before.build if before else None
        return Picture(draw_chart(self.build, show, form, pattern, old, progress))
