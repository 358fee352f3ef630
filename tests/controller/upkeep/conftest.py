"""What switches hold is compared as values, whatever arrays it is in."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _compared_as_values(monkeypatch):
    monkeypatch.setattr(
        "controller.switches.reconcile.Held.__eq__",
        lambda a, b: (a.rows, a.groups) == (b.rows, b.groups),
    )
