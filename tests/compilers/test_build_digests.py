"""The same bytes as before: what a hundred specs compile to, and what targets write for some."""

import pytest

from polarfab.fabric import Fabric
from tests.compilers.build_digests import TARGETS, cases, examples, identity, rendered

LARGE = "q31"
CASES = tuple(cases())
WRITTEN = (*("pf3-spread-node", "pf3-dual-compact-valiant", "oft3-spread-none"),)
WRITTEN_TOO = (
    *("pf3-minimal-none", "pf3-minimal-node", "pf3-compact-valiant-node"),
    *("pf5-compact-valiant-link", "pf5-valiant-none", "ps3iq3-ecmp-link"),
    *("pf7-compact-valiant-node-bounce", "pf5-damaged-1"),
    *("ps3iq3-compact-valiant-node", "ps4p2-minimal-node", "pn3-compact-valiant-node"),
    *("oft3-spread-node", "sf5-compact-valiant-node", "hx333-transit-node", "ft4-ecmp-none"),
    *("df2-transit-none", "pf3-dual-minimal", "pf3-dual-spread"),
)


@pytest.fixture
def kept(golden):
    """Compare lines with a list in `golden/digests`."""
    return lambda lines, name: golden("\n".join(lines) + "\n", f"digests/{name}")


def test_identities(kept):
    lines = [f"{case.name} {identity(case)}" for case in CASES]
    lines += [f"examples/{name} {fabric.build.identity}" for name, fabric in examples()]
    kept(lines, "builds.txt")


def _rendered(names, kept, file):
    fabrics = ((case.name, Fabric.of(case.compiled())) for case in CASES if case.name in names)
    _compared(fabrics, kept, file)


def _compared(fabrics, kept, file):
    kept(
        [
            f"{name} {target} {rendered(fabric, target)}"
            for name, fabric in fabrics
            for target in TARGETS
        ],
        file,
    )


def test_rendered_text(kept):
    _rendered(WRITTEN, kept, "rendered.txt")


@pytest.mark.long
def test_more_rendered_text(kept):
    _rendered(WRITTEN_TOO, kept, "rendered_too.txt")


@pytest.mark.long
def test_rendered_examples(kept):
    fabrics = (example for example in examples() if example[0] != LARGE)
    _compared(fabrics, kept, "examples.txt")
