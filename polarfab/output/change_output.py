"""What a compile changes of the build that was there, and the file in which numbers stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from polarfab.output.verb_output import counted, say, volume, warn

if TYPE_CHECKING:
    from compilers.spec.allocations import Allocations
    from compilers.tables.build import Build
    from polarfab.fabric import Fabric

NAMED = 6
"""The changes of a kind that are named without --verbose."""
KEPT_AS_NUMBERS = (
    "switches that are there keep their AS numbers: `base.asn` is for new ones; write `asn` at a "
    "node to give it another"
)
"""What another first AS number does in a fabric that is there."""
Change = tuple[str, str]
"""A kind of change, and a change of this kind in words."""


def say_changes(before: Fabric, after: Fabric) -> None:
    """Say what changes from one build of a fabric to the next, and that nothing else does."""
    changes = [
        change
        for old, new in zip(before.builds, after.builds, strict=True)
        for change in changes_of(old, new)
    ]
    _say(changes)
    kept = sum(build.topology.graph.size for build in before.builds)
    least = f"no switch, cable, host or link number changes ({counted(kept, 'link')} kept)"
    say("nothing else changes" if changes else least)


def say_changes_of_file(fabric: Fabric) -> None:
    """Say which numbers of the file that the spec names are others now: without a build before.

    What has no number, as ports of cables, has nothing to be compared with.
    """
    from compilers.cabling.fabric_numbers import numbers_in

    if fabric.loaded is None:
        return
    listed = fabric.loaded.allocations.values()
    numbers = map(numbers_in, fabric.builds)
    changes = [
        change
        for before, after in zip(listed, numbers, strict=True)
        for change in _changed_numbers(before, after)
    ]
    _say(changes)
    file = fabric.loaded.allocations_file
    say(f"{'other numbers' if changes else 'numbers'} are those of {file}; its build is not here")
    warn(
        "do not push this build yet: ports of cables and hosts, and units, are planned anew, and "
        "may differ from those that run; compile with --from BUILD, which keeps them"
    )


def _changed_numbers(before: Allocations, after: Allocations) -> Iterator[Change]:
    """Yield the numbers that come, go or change between two lists."""
    from compilers.spec.allocations import KINDS, POOL, VALUES, VERTEX

    for kind in KINDS:
        was, now = before.of(kind).used, after.of(kind).used
        names = {**before.names, **after.names} if kind == VERTEX else {}
        for key, number in was.items():
            words = f"{kind} {names.get(key, key)}"
            text = VALUES[key] if kind == POOL else int
            if key not in now:
                yield f"numbers of a {kind} that go", f"{words} goes: {text(number)}"
            elif now[key] != number:
                change = f"{words} changes: {text(number)} to {text(now[key])}"
                yield f"numbers of a {kind} that change", change
        for key, number in now.items():
            if key not in was and not (kind == POOL and key not in ("ipv4", "ipv6")):
                text = VALUES[key] if kind == POOL else int
                words = f"{kind} {names.get(key, key)} is new: {text(number)}"
                yield f"new numbers of a {kind}", words


def _say(changes: Sequence[Change]) -> None:
    """Say the first changes of each kind, and how many more there are."""
    count = Counter(kind for kind, _ in changes)
    shown = Counter[str]()
    for kind, words in changes:
        shown[kind] += 1
        if volume() > 0 or shown[kind] <= NAMED:
            say(words)
        elif shown[kind] == NAMED + 1:
            say(f"and {count[kind] - NAMED:,} more: {kind}")


def changes_of(old: Build, new: Build) -> Iterator[Change]:
    """Yield what changes of switches, cables, hosts and numbers in a fabric of one plane.

    What fabric.yaml says of the whole fabric comes first.
    """
    from compilers.spec.allocations import ASN
    from compilers.update.compare import facts_apart, host_changes
    from compilers.update.renumbering import AS_NUMBER, renumbered
    from compilers.update.switch_settings import renamed_switches
    from compilers.wiring.as_numbers import FIRST_ASN

    for word, (before, after) in facts_apart(old, new).items():
        if not word.startswith("input "):
            yield word, f"{word} changes: {before} to {after}"
    names = renamed_switches(old, new)
    yield from _switches(old, new, names)
    yield from _cables(old, new, names)
    hosts = host_changes(old, new)
    yield from (("hosts that go", f"host {name} goes") for name in hosts.removed)
    yield from (("new hosts", f"host {name} is new") for name in hosts.added)
    for name, was, now in hosts.moved:
        yield "hosts that move", f"host {name} moves: {was} to {now}"
    numbers = renumbered(old, new)
    for kind, what, was, now in numbers:
        yield kind, f"{kind} changes, {what}: {was} to {now}"
    is_other_first = old.base.get(FIRST_ASN) != new.base.get(FIRST_ASN)
    if is_other_first and new.allocations.of(ASN) and AS_NUMBER not in {n.kind for n in numbers}:
        yield "AS numbers that stay", KEPT_AS_NUMBERS
    yield from _reused(old, new)


def _switches(old: Build, new: Build, names: Mapping[str, str]) -> Iterator[Change]:
    """Yield switches that come, go, are replaced or are set up in another way; and cable lengths.

    A switch that has no serial is known by its name, so with another name it is another switch.
    """
    from compilers.update.switch_settings import CABLE, settings_apart

    before, after = set(old.wiring.names), set(new.wiring.names)
    earlier_names = {now: was for was, now in names.items()}
    for name in old.wiring.names:
        if name not in names and (name not in after or name in earlier_names):
            yield "switches that go", f"switch {name} goes"
    for vertex, name in enumerate(new.wiring.names):
        earlier = earlier_names.get(name, name)
        if earlier not in before:
            yield "new switches", f"switch {name} is new, at vertex {vertex}"
        elif name != earlier:
            yield "renamed switches", f"switch {earlier} is called {name}"
    for kind, name, word, was, now in settings_apart(old, new):
        those = "cables" if kind == CABLE else "switches"
        yield f"{those} with another {word}", f"{kind} {name}: {word} {was} to {now}"


def _cables(old: Build, new: Build, names: Mapping[str, str]) -> Iterator[Change]:
    """Yield cables that come, go, or are plugged into other ports."""
    before, after = _ports_of_cables(old, names), _ports_of_cables(new, {})
    for ends, ports in before.items():
        if ends not in after:
            yield "cables that go", f"cable goes: {_cable(ends, ports)}"
        elif after[ends] != ports:
            was, now = _cable(ends, ports), _cable(ends, after[ends])
            yield "cables that move", f"cable moves: {was}; now {now}"
    for ends, ports in after.items():
        if ends not in before:
            yield "new cables", f"cable is new: {_cable(ends, ports)}"


def _ports_of_cables(
    build: Build, names: Mapping[str, str]
) -> dict[tuple[str, str], tuple[str, str]]:
    """The ports at both ends of each cable, by the switches there.

    Args:
        build: the cables.
        names: the new names of switches that have one.
    """
    w = build.wiring
    now = [names.get(name, name) for name in w.names]
    return {
        (now[u], now[v]): (w.port_name(u, p), w.port_name(v, q)) for u, p, v, q in w.each_cable()
    }


def _cable(ends: tuple[str, str], ports: tuple[str, str]) -> str:
    """A cable in words."""
    return f"{ends[0]} {ports[0]} to {ends[1]} {ports[1]}"


def _reused(old: Build, new: Build) -> Iterator[Change]:
    """Yield numbers that were reserved and have been taken again, as no others are left."""
    from compilers.spec.allocations import BUNDLE, CABLE, HOST, LINK

    for kind in (LINK, CABLE, BUNDLE, HOST):
        before, after = old.allocations.of(kind), new.allocations.of(kind)
        scope = (lambda key: key.partition("/")[0]) if kind == HOST else (lambda _: "")
        had = {
            (scope(key), number): key
            for key, number in (*before.freed.items(), *before.used.items())
        }
        for key, number in after.used.items():
            other = had.get((scope(key), number), key)
            if other != key and other not in after.used:
                words = f"number {number} of {kind} {other} is taken again, by {key}"
                yield f"numbers of a {kind} taken again", words


def write_allocations(fabric: Fabric, is_trial: bool) -> str:
    """Write the numbers of all planes into the file that the spec names, if it names one.

    Args:
        fabric: the fabric.
        is_trial: whether the build that runs stays in another folder. Then a file that is there
            stays as it is, too.

    Returns:
        What became of the file, in words; "" if it has these numbers already.

    Raises:
        InputError: it cannot be written.
    """
    from compilers.cabling.fabric_numbers import numbers_in
    from compilers.spec.allocations import text_of
    from polarfab.output.verb_output import write_file

    if fabric.loaded is None or fabric.loaded.allocations_file is None:
        return ""
    planes = fabric.builds
    numbered: Iterable[tuple[int, Build]] = (
        enumerate(planes, 1) if len(planes) > 1 else ((0, planes[0]),)
    )
    text = "".join(text_of((plane, numbers_in(build)) for plane, build in numbered))
    file = fabric.loaded.allocations_file
    if file.exists() and file.read_text() == text:
        return ""
    if is_trial and file.exists():
        return f"not written: {file}; this is a trial, and the file follows the build that runs"
    write_file(file, text, "name another one at `allocations`")
    return f"written: {file}"
