"""Prints the changes from an earlier build to a new one, for `polarfab compile`.

It also writes the file of numbers: those of links, hosts, addresses and AS numbers that a fabric
keeps from build to build (`compilers.spec.allocations`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from polarfab.output.verb_output import counted, say, volume, warn

if TYPE_CHECKING:
    from compilers.spec.allocations import Allocations
    from compilers.tables.build import Build
    from polarfab.fabric import Fabric

MOST_PRINTED = 6
"""The most changes of a kind that are printed without --verbose."""
AS_NUMBERS_STAY = (
    "switches that are there keep their AS numbers: `base.asn` is for new ones; write `asn` at a "
    "node to give it another"
)
"""The note where the first AS number changes, but those of existing switches do not."""
RESTART_OF_FRR = (
    "TTL security is turned on with BFD: restart FRR on its switches after they have it, one by "
    "one; until then BFD stays down there"
)
"""The note where switches with FRR get neighbours of another make."""
Change = tuple[str, str]
"""A kind of change, and a change of this kind in words."""
Ends = tuple[str, str]
"""The names of the switches, or of the ports, at both ends of a cable."""


def say_changes(before: Fabric, after: Fabric) -> None:
    """Say what changes from one build of a fabric to the next, and that nothing else changes."""
    changes = [
        change
        for old, new in zip(before.builds, after.builds, strict=True)
        for change in changes_of(old, new)
    ]
    _say_first_of_each_kind(changes)
    if changes:
        say("nothing else changes")
    else:
        links = sum(build.topology.graph.size for build in before.builds)
        say(f"no switch, cable, host or link number changes ({counted(links, 'link')} kept)")


def say_changes_of_file(fabric: Fabric) -> None:
    """Say which numbers differ from those in the file that the spec names.

    This is for a fabric without an earlier build. Ports of cables have no number in the file, so
    they cannot be compared.
    """
    from compilers.cabling.installed_numbers import numbers_in

    if fabric.loaded is None:
        return
    listed = fabric.loaded.allocations.values()
    numbers = map(numbers_in, fabric.builds)
    changes = [
        change
        for before, after in zip(listed, numbers, strict=True)
        for change in _number_changes(before, after)
    ]
    _say_first_of_each_kind(changes)
    file = fabric.loaded.allocations_file
    say(f"{'other numbers' if changes else 'numbers'} are those of {file}; its build is not here")
    warn(
        "do not push this build yet: ports of cables and hosts, and units, are planned anew, and "
        "may differ from those that run; compile with --from BUILD, which keeps them"
    )


def _number_changes(before: Allocations, after: Allocations) -> Iterator[Change]:
    """Yield the numbers that come, go or change between two lists."""
    from compilers.spec.allocations import ASN, KINDS, POOL, POOL_VALUES, VERTEX

    for kind in KINDS:
        old, new = before.of(kind).used, after.of(kind).used
        noun, numbers = kind, f"numbers of a {kind}"
        if kind == ASN:
            noun, numbers = "AS number of vertex", "AS numbers"
        names = {**before.names, **after.names} if kind == VERTEX else {}
        for key, number in old.items():
            words = f"{noun} {names.get(key, key)}"
            text = POOL_VALUES[key] if kind == POOL else int
            if key not in new:
                yield f"{numbers} that go", f"{words} goes: {text(number)}"
            elif new[key] != number:
                change = f"{words} changes: {text(number)} to {text(new[key])}"
                yield f"{numbers} that change", change
        for key, number in new.items():
            # Of the pools only those of addresses can be new.
            if key not in old and (kind != POOL or key in ("ipv4", "ipv6")):
                text = POOL_VALUES[key] if kind == POOL else int
                words = f"{noun} {names.get(key, key)} is new: {text(number)}"
                yield f"new {numbers}", words


def _say_first_of_each_kind(changes: Sequence[Change]) -> None:
    """Say the first changes of each kind, and how many more there are."""
    count_of_kind = Counter(kind for kind, _ in changes)
    count_said = Counter[str]()
    for kind, words in changes:
        count_said[kind] += 1
        if volume() > 0 or count_said[kind] <= MOST_PRINTED:
            say(words)
        elif count_said[kind] == MOST_PRINTED + 1:
            say(f"and {count_of_kind[kind] - MOST_PRINTED:,} more: {kind}")


def changes_of(old: Build, new: Build) -> Iterator[Change]:
    """Yield the changes of switches, cables, hosts and numbers in a fabric of one plane.

    Changes of the whole fabric, by fabric.yaml, come first.
    """
    from compilers.spec.allocations import ASN
    from compilers.targets.node_systems import needs_restart_of_frr
    from compilers.update.compare import fact_changes, host_changes
    from compilers.update.renumbering import AS_NUMBER, renumberings
    from compilers.update.switch_settings import renamed_switches
    from compilers.wiring.as_numbers import FIRST_ASN

    for word, (before, after) in fact_changes(old, new).items():
        if not word.startswith("input "):
            yield word, f"{word} changes: {before} to {after}"
    if needs_restart_of_frr(old, new):
        yield "restarts", RESTART_OF_FRR
    names = renamed_switches(old, new)
    yield from _switch_changes(old, new, names)
    yield from _cable_changes(old, new, names)
    hosts = host_changes(old, new)
    yield from (("hosts that go", f"host {name} goes") for name in hosts.removed)
    yield from (("new hosts", f"host {name} is new") for name in hosts.added)
    for name, old_place, new_place in hosts.moved:
        yield "hosts that move", f"host {name} moves: {old_place} to {new_place}"
    numbers = renumberings(old, new)
    for kind, owner, old_number, new_number in numbers:
        yield kind, f"{kind} changes, {owner}: {old_number} to {new_number}"
    has_other_first = old.base.get(FIRST_ASN) != new.base.get(FIRST_ASN)
    kinds = {number.kind for number in numbers}
    if has_other_first and new.allocations.of(ASN) and AS_NUMBER not in kinds:
        yield "AS numbers that stay", AS_NUMBERS_STAY
    yield from _reused_numbers(old, new)


def _switch_changes(old: Build, new: Build, names: Mapping[str, str]) -> Iterator[Change]:
    """Yield switches that come, go or are renamed, and settings of switches and cables that change.

    A switch without a serial number is known by its name, so with another name it is another
    switch.
    """
    from compilers.update.switch_settings import CABLE, setting_changes

    before, after = set(old.wiring.names), set(new.wiring.names)
    earlier_names = {new_name: old_name for old_name, new_name in names.items()}
    for name in old.wiring.names:
        if name not in names and (name not in after or name in earlier_names):
            yield "switches that go", f"switch {name} goes"
    for vertex, name in enumerate(new.wiring.names):
        earlier = earlier_names.get(name, name)
        if earlier not in before:
            yield "new switches", f"switch {name} is new, at vertex {vertex}"
        elif name != earlier:
            yield "renamed switches", f"switch {earlier} is called {name}"
    for kind, name, setting, old_value, new_value in setting_changes(old, new):
        plural = "cables" if kind == CABLE else "switches"
        words = f"{kind} {name}: {setting} {old_value} to {new_value}"
        yield f"{plural} with another {setting}", words


def _cable_changes(old: Build, new: Build, names: Mapping[str, str]) -> Iterator[Change]:
    """Yield cables that come, go, or are plugged into other ports."""
    before, after = _ports_of_cables(old, names), _ports_of_cables(new, {})
    for ends, ports in before.items():
        if ends not in after:
            yield "cables that go", f"cable goes: {_cable_in_words(ends, ports)}"
        elif after[ends] != ports:
            earlier, now = _cable_in_words(ends, ports), _cable_in_words(ends, after[ends])
            words = f"cable moves: {earlier}; now {now}"
            yield "cables that move", words
    for ends, ports in after.items():
        if ends not in before:
            yield "new cables", f"cable is new: {_cable_in_words(ends, ports)}"


def _ports_of_cables(build: Build, names: Mapping[str, str]) -> dict[Ends, Ends]:
    """The ports at both ends of each cable, by the switches at both ends.

    Args:
        build: has the cables.
        names: the new names of renamed switches, by their old names.
    """
    wiring = build.wiring
    switches = [names.get(name, name) for name in wiring.names]
    return {
        (switches[near], switches[far]): (
            wiring.port_name(near, port),
            wiring.port_name(far, far_port),
        )
        for near, port, far, far_port in wiring.each_cable()
    }


def _cable_in_words(ends: Ends, ports: Ends) -> str:
    """A cable in words, by its switches and ports."""
    return f"{ends[0]} {ports[0]} to {ends[1]} {ports[1]}"


def _reused_numbers(old: Build, new: Build) -> Iterator[Change]:
    """Yield the numbers of removed elements that others get, as none are free."""
    from compilers.spec.allocations import BEFORE, BUNDLE, CABLE, HOST, LINK
    from compilers.update.renumbering import same_switches
    from compilers.wiring.link_numbers import renumbered_key

    new_vertex = dict(same_switches(old, new))
    for kind in (LINK, CABLE, BUNDLE, HOST):
        before, after = old.allocations.of(kind), new.allocations.of(kind)
        earlier_keys = {
            (_number_space(kind, key), number): key
            for key, number in (*before.freed.items(), *before.used.items())
        }
        for key, number in after.used.items():
            earlier = earlier_keys.get((_number_space(kind, key), number), key)
            is_link = kind in (LINK, CABLE) and not earlier.startswith(BEFORE)
            if is_link and renumbered_key(earlier, new_vertex) == key:
                continue
            if earlier != key and earlier not in after.used:
                words = f"number {number} of {kind} {earlier} is taken again, by {key}"
                yield f"numbers of a {kind} taken again", words


def _number_space(kind: str, key: str) -> str:
    """The part of the fabric in which a number is unique: a host's switch, "" for all of it."""
    from compilers.spec.allocations import HOST

    return key.partition("/")[0] if kind == HOST else ""


def write_allocations(fabric: Fabric, is_trial: bool) -> str:
    """Write the numbers of all planes into the file that the spec names, if it names one.

    Args:
        fabric: the fabric.
        is_trial: whether the build that runs stays in another folder. Then an existing file is not
            changed.

    Returns:
        In words, whether the file was written; "" if it has these numbers already.

    Raises:
        InputError: the file cannot be written.
    """
    from compilers.cabling.installed_numbers import numbers_in
    from compilers.spec.allocations_file import text_of
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
