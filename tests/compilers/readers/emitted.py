"""Rendered fabrics, and changes to a line of what was written."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from ipaddress import IPv6Network

from compilers.targets.target_lookup import target
from tests.compilers.routed import routed, with_words

IDENTITY = "0123456789abcdef"
IQ = {"family": "polarstar", "supernode": "inductive-quad", "q": 2, "degree": 0}
STAR = {"family": "polarstar", "supernode": "complete", "q": 2, "degree": 2}
FABRICS = {
    "minimal": {"q": 2},
    "two hosts": {"q": 2, "hosts": 2},
    "repaired": {"q": 3, "protect": "link"},
    "spread": {"q": 3, "spread": True},
    "spread, two hosts": {"q": 3, "spread": True, "hosts": 2},
    "spread, repaired": {"q": 3, "spread": True, "protect": "link", "hosts": 2},
    "aggregates": IQ,
    "spines": {"family": "oft", "q": 2, "spread": True, "protect": "link"},
}


@cache
def fabric(name):
    """One of `FABRICS`, in both address families."""
    build = routed(**FABRICS[name])
    addressing = replace(
        build.addressing, ipv6=IPv6Network("fd00::/48"), hierarchy=build.topology.hierarchy
    )
    return replace(build, identity=IDENTITY, addressing=addressing)


def write(name, build, out, words=None, only=None):
    """The files of a target in a folder, of all switches or of some; see `with_words`."""
    build, options = with_words(build, words or {})
    target(name).render(build, out, options=options, only=only)


def check(name, build, out, words=None, only=None):
    """What reading them back finds, at all switches or at some."""
    build, options = with_words(build, words or {})
    return target(name).check_emitted(build, out, options, only=only)


def check_switch(name, build, out, vertex, words=None):
    """What reading back one switch finds; of all, where only they together show a difference.

    Of all only where all were written: the folders that are not there are differences.
    """
    build, options = with_words(build, words or {})
    system = target(name)
    by_bgp = build.control.get("routing") == "bgp"
    if not by_bgp and not system.unreadable_reason(*system.check(build, options), part=True):
        report = check(name, build, out, options, only={vertex})
        if report.differences or not all((out / node).exists() for node in build.wiring.names):
            return report
    return check(name, build, out, options)


def change(path, old, new, count=1):
    """Replace a text that has to be there; the number of the first line that changed."""
    before = path.read_text()
    assert old in before, (path, old)
    after = before.replace(old, new, count)
    path.write_text(after)
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((n for n, (a, b) in enumerate(pairs, 1) if a != b), 0)


def assert_each_is_told(name, build, out, file, changes, words=None):
    """Each change of a file of the first switch, alone, is a difference."""
    path = out / build.wiring.names[0] / file
    before = path.read_text()
    for old, new in changes:
        change(path, old, new)
        assert check_switch(name, build, out, 0, words).differences, (old, new)
        path.write_text(before)
