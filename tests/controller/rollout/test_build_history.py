"""Builds from elsewhere are proved when they come in, whatever their sender says of them."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from time import monotonic, sleep
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from compilers.tables.folders.build_folder import load, save
from compilers.tables.folders.folder_contents import MANIFEST
from compilers.tables.folders.verified_mark import mark_verified
from compilers.targets.openflow.encoder import Encoder
from controller.rollout import build_history
from controller.rollout.build_archive import pack
from controller.rollout.build_history import BUILDS_KEPT, BuildHistory
from controller.rollout.fabric_record import digest_of
from controller.rollout.mover import Mover
from controller.switches.current import current_of, read_build
from controller.switches.session import LiveFabric
from controller.upkeep.background import InOrder, in_thread
from inventory.problems import InputError
from polarfab.controller_client import HTTP_PATIENCE
from tests.compilers.fabrics import polarfly_build
from tests.compilers.wiring.makers import damaged, missing
from tests.controller.makers import Unwatched, loaded
from tests.controller.rollout.makers import sent, wrong_route
from tests.controller.switches.session_talk import names


@pytest.fixture
def history(tmp_path):
    return BuildHistory(tmp_path / "build")


def far_egress(build):
    """A class that no switch has, which the encoder would look up."""
    egress = build.tables.routes.egress.copy()
    egress[0, 5] = np.iinfo(egress.dtype).max - 2
    routes = replace(build.tables.routes, egress=egress)
    return replace(build, tables=replace(build.tables, routes=routes))


def test_a_good_build_gets_our_mark(tmp_path, history):
    made, data = sent(tmp_path / "sent", polarfly_build(3))
    breaths = []
    received = history.receive(data, yield_to_others=lambda: breaths.append(1))
    assert (received.identity, str(received.proved)) == (made.identity, "delivery, identities")
    assert breaths
    assert history.kept_builds() == [made.identity]
    assert str(history.read(made.identity).proved) == "delivery, identities"
    assert history.packed(made.identity)


def test_an_upload_to_a_full_disk_is_refused_as_such(tmp_path, history, monkeypatch):
    """It was said to be no ZIP file of a build."""
    made, data = sent(tmp_path / "sent", polarfly_build(3))
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("controller.rollout.build_archive._unpack_file", Mock(side_effect=full))
    with pytest.raises(InputError, match=r"given No space left on device; .* make room") as refused:
        history.receive(data)
    assert refused.value.problems[0].file == str(history.place / made.identity)
    assert not history.place.exists()


def test_what_to_do_about_a_list_that_a_full_disk_does_not_take_is_said(
    tmp_path, history, monkeypatch
):
    """The event advised an option that a controller does not have."""
    current = current_of(save(polarfly_build(3), tmp_path / "build"), None)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(
        "compilers.tables.folders.written_file.replace_file", Mock(side_effect=full)
    )
    with pytest.raises(InputError, match=r"history.json: .*make its disk writable, or make room$"):
        history.record_held(current, "alice")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(wrong_route, "1 of 156 pairs"), (far_egress, "route_egress has values outside")],
)
def test_a_build_that_loses_packets_is_refused(tmp_path, history, spoil, said):
    _, data = sent(tmp_path / "sent", spoil(polarfly_build(3)))
    with pytest.raises(InputError, match=said):
        history.receive(data)
    assert history.kept_builds() == []


def test_planned_nodes_do_not_make_the_next_build_too_large(tmp_path, history, monkeypatch):
    """Four times the installed switches were taken: where more were planned, none was applied."""
    monkeypatch.setattr("controller.rollout.mover.SWITCHES_ALLOWED", 1)
    whole = polarfly_build(3)
    near = int(whole.wiring.far[0, 0])
    planned = [vertex for vertex in range(13) if vertex not in (0, near)]
    build = damaged(whole, missing(whole.wiring, planned, []))
    made, data = sent(tmp_path / "sent", build)
    fabric = LiveFabric(loaded(made), names)
    assert fabric.expected == 2
    assert Mover(fabric, Unwatched(), history).receive(data).identity == made.identity


def test_a_build_that_loses_packets_can_be_asked_for(tmp_path, history):
    made, data = sent(tmp_path / "sent", wrong_route(polarfly_build(3)))
    assert str(history.receive(data, unverified=True).proved) == "nothing"
    assert str(history.read(made.identity).proved) == "nothing"


def test_an_unverified_build_that_the_fabric_holds_is_read_again(tmp_path, history):
    """A controller that had taken it did not start any more."""
    _, data = sent(tmp_path / "sent", wrong_route(polarfly_build(3)))
    held = history.receive(data, unverified=True)
    shutil.copytree(history.place / held.identity, history.folder, dirs_exist_ok=True)
    again = BuildHistory(history.folder)
    with pytest.raises(InputError, match="has passed polarfab verify"):
        again.read_folder()
    history.record_held(held, "ann")
    assert again.read_folder().identity == held.identity
    later, _ = sent(tmp_path / "later", polarfly_build(4))
    history.record_held(read_build(tmp_path / "later", unverified=True), "ann")
    assert later.identity != held.identity
    with pytest.raises(InputError, match="has passed polarfab verify"):
        again.read_folder()


def test_a_damaged_build_is_refused_all_the_same(tmp_path, history):
    sent(tmp_path / "sent", polarfly_build(3))
    file = tmp_path / "sent" / "arrays" / "far.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\x07")
    with pytest.raises(InputError, match="another digest than in its manifest"):
        history.receive(pack(tmp_path / "sent"), unverified=True)
    manifest = tmp_path / "sent" / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"switches": 12}))
    with pytest.raises(InputError):
        history.receive(pack(tmp_path / "sent"), unverified=True)
    assert history.kept_builds() == []


def test_another_build_than_the_record_names_is_refused(tmp_path, history):
    _, data = sent(tmp_path / "sent", polarfly_build(3))
    with pytest.raises(InputError, match="required build 0123"):
        history.receive(data, expect="0123")


def test_the_last_builds_are_kept(tmp_path, history):
    identities = []
    for number in range(BUILDS_KEPT + 2):
        made = save(replace(polarfly_build(3), name=f"lab{number}"), tmp_path / "build")
        current = current_of(made, None)
        history.keep(current)
        history.record_held(current, "alice")
        identities.append(made.identity)
    assert history.kept_builds() == sorted(identities[-BUILDS_KEPT:])
    assert [one.build for one in history.entries()] == identities
    assert history.previous_build(identities[-1]) == identities[-2]


@pytest.fixture
def mover(history):
    """Of a fabric of 13 switches."""
    fabric = SimpleNamespace(names=range(13), identity="", survey=None, clock=monotonic, told=[])
    fabric.tell = fabric.told.append
    return Mover(fabric, Unwatched(), history)


@pytest.fixture
def threaded(mover):
    """The same with threads, as in a controller, by a clock that the test sets."""
    fabric, files = mover.fabric, InOrder(0, "files of the test").add
    fabric.now = 0.0
    fabric.clock = lambda: fabric.now
    return Mover(fabric, Unwatched(), mover.history, start=in_thread, files=files)


def test_a_build_is_received_while_the_disk_hangs_and_other_work_goes_on(tmp_path, threaded, disk):
    """It was unpacked, flushed and renamed in the loop: for as long no switch was answered."""
    made, data = sent(tmp_path / "sent", polarfly_build(3))
    disk.clear()
    breaths = []

    def pause(_):
        breaths.append(1)
        if len(breaths) > 3:
            disk.set()
        sleep(0.001)

    assert threaded.receive(data, pause=pause).identity == made.identity
    assert len(breaths) > 3
    assert threaded.history.kept_builds() == [made.identity]


def test_a_build_is_refused_that_the_disk_does_not_take(tmp_path, threaded, disk):
    _, data = sent(tmp_path / "sent", polarfly_build(3))
    disk.clear()

    def pause(seconds):
        threaded.fabric.now += 0.25
        sleep(seconds)

    with pytest.raises(InputError, match="a disk that does not answer"):
        threaded.receive(data, pause=pause)
    assert threaded.fabric.now < HTTP_PATIENCE, "who asked still waits"


def test_a_build_that_another_request_prepares_is_not_tidied_away(tmp_path, threaded):
    running = current_of(save(polarfly_build(3), tmp_path / "build"), None)
    threaded.history.record_held(running, "")
    one, other = (
        sent(tmp_path / name, replace(polarfly_build(3), name=name)) for name in ("one", "other")
    )
    threaded.fabric.current, threaded.fabric.identity = running, running.identity
    received = []

    def pause(_):
        if not received:
            received.append(1)
            threaded.receive(other[1], pause=sleep)

    threaded.prepare(current_of(one[0], None), pause)
    assert received
    assert one[0].identity in threaded.history.kept_builds()


def test_refused_builds_do_not_fill_the_disk(tmp_path, history, mover):
    running = current_of(save(polarfly_build(3), tmp_path / "build"), None)
    history.keep(running)
    history.record_held(running, "alice")
    for number in range(4):
        made, data = sent(tmp_path / f"{number}", replace(polarfly_build(3), name=f"no{number}"))
        mover.receive(data)
        assert history.kept_builds() == sorted([running.identity, made.identity])


def test_the_folder_gets_a_build_only_in_place_of_the_one_before(tmp_path, history):
    old = save(polarfly_build(3), tmp_path / "build")
    new, data = sent(tmp_path / "sent", replace(polarfly_build(3), name="other"))
    history.receive(data)
    history.install(new.identity, instead_of=["0123456789abcdef"], stamp=history.stamp())
    assert load(tmp_path / "build").identity == old.identity
    history.install(new.identity, instead_of=[old.identity], stamp=history.stamp())
    assert load(tmp_path / "build").identity == new.identity


@pytest.mark.parametrize("file", ["arrays/far.npy", "manifest.json", "manifest.sha256"])
def test_the_folder_gets_a_build_in_place_of_a_damaged_one(tmp_path, history, file):
    """It kept the damaged one, nobody was told, and the next controller did not start."""
    old = save(polarfly_build(3), tmp_path / "build")
    new, data = sent(tmp_path / "sent", replace(polarfly_build(3), name="other"))
    history.receive(data)
    content = (tmp_path / "build" / file).read_bytes()
    (tmp_path / "build" / file).write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert history.has_one_of([old.identity])
    history.install(new.identity, instead_of=[old.identity], stamp=history.stamp())
    assert load(tmp_path / "build").identity == new.identity


def test_a_build_that_is_written_over_stays_as_it_was_read(tmp_path, history):
    """A build was mapped: `cp -r` of another one over it had the audit write nonsense into all
    switches, and a file that is cut short ends the process that looks at it.
    """
    made = save(polarfly_build(3), tmp_path / "build")
    mark_verified(tmp_path / "build", made.identity, {})
    current = read_build(tmp_path / "build")
    history.keep(current)
    kept = history.read(made.identity)
    before = [programmed(made, vertex) for vertex in range(13)]
    files = [*history.place.rglob("*.npy"), *(tmp_path / "build").rglob("*.npy")]
    for file in files:
        with file.open("r+b") as stream:
            stream.write(bytes(file.stat().st_size))
    for build in (current.build, kept.build):
        assert [programmed(build, vertex) for vertex in range(13)] == before


def programmed(build, vertex):
    """The bytes of a switch's program."""
    program = Encoder(build).program(vertex, 0)
    return [block.tobytes() for block in (*program.groups, *program.flows)]


def test_a_build_whose_copy_is_damaged_is_not_said_to_be_kept(tmp_path, history, monkeypatch):
    """`status --history` said that it can come back. An unchanged copy is read once."""
    current = current_of(save(polarfly_build(3), tmp_path / "build"), None)
    history.keep(current)
    history.record_held(current, "")
    reads, require = [], build_history.require_undamaged

    def counted(*words):
        reads.append(1)
        require(*words)

    monkeypatch.setattr(build_history, "require_undamaged", counted)
    kept = lambda: [entry["kept"] for entry in history.entries_as_data()]  # noqa: E731
    assert (kept(), kept(), len(reads)) == ([True], [True], 1)
    file = history.place / current.identity / "arrays" / "far.npy"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert (kept(), kept(), len(reads)) == ([False], [False], 2)
    shutil.rmtree(history.place / current.identity)
    (history.place / current.identity).mkdir()
    assert kept() == [False]
    assert not BuildHistory(history.folder).has_undamaged(current.identity)


def test_a_link_to_nothing_in_a_copy_hides_no_history(tmp_path, history):
    """An editor's lock did: the history was empty, and no build could be moved to."""
    current = current_of(save(polarfly_build(3), tmp_path / "build"), None)
    history.keep(current)
    history.record_held(current, "")
    lock = history.place / current.identity / f".#{MANIFEST}"
    lock.symlink_to("ann@host.1234:5678")
    assert [entry["kept"] for entry in history.entries_as_data()] == [True]
    history.require_room(current.identity)
    shutil.rmtree(history.folder)
    assert history.restore_folder(current.identity, {current.identity})
    assert history.folder_build == current.identity
    assert not list(history.folder.glob(".*"))
    lock.unlink()
    lock.symlink_to(lock.name)
    assert [entry["kept"] for entry in history.entries_as_data()] == [True]


def with_entries(file, **members):
    """Put these members into all entries of a list, which have no digests then."""
    entries = [entry | members for entry in json.loads(file.read_text())]
    for entry in entries:
        del entry["digest"]
    file.write_text(json.dumps(entries))


DAMAGES = {
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "empty": lambda file: file.write_text(""),
    "another letter": lambda file: file.write_text(file.read_text().replace("alice", "alicd")),
    "no entries": lambda file: file.write_text("[]"),
    "another form": lambda file: file.write_text('{"version": 2}'),
    "a time in words": lambda file: with_entries(file, at="yesterday"),
    "a time too late": lambda file: with_entries(file, at=1e300),
    "a time that is no number": lambda file: with_entries(file, at=float("nan")),
    "half a character": lambda file: with_entries(file, name="\ud800"),
    "a name that is no text": lambda file: with_entries(file, name=["lab"]),
    "gone": lambda file: file.unlink(),
    "a named pipe": lambda file: (file.unlink(), os.mkfifo(file)),  # reading it hung the controller
}


@pytest.mark.parametrize("damage", [*DAMAGES])
def test_a_list_that_cannot_be_read_costs_no_build(tmp_path, history, damage):
    """All builds but the fabric's own were removed, also the one that a trial falls back to."""
    file = history.place / "history.json"
    builds = [replace(polarfly_build(3), name=f"no{number}") for number in range(3)]
    one, two, three = (current_of(save(build, tmp_path / build.name), None) for build in builds)
    for current in (one, two, three):
        history.record_held(current, "alice")
        history.keep(current)
        os.utime(history.place / current.identity, (1e9 + len(history.kept_builds()),) * 2)
    DAMAGES[damage](file)
    held = [current.identity for current in (one, two, three)]
    assert [entry.build for entry in history.entries()] == held, "by age"
    assert json.dumps(history.entries_as_data(), ensure_ascii=False, allow_nan=False).encode()
    history.remove_refused()
    history.record_held(three, "")
    assert history.take_damage_report()
    assert history.take_damage_report() == "", "once"
    assert history.kept_builds() == sorted(held)
    assert file.with_name("history.json.damaged").exists() == (damage != "gone")
    assert history.previous_build(three.identity) == two.identity
    history.record_held(two, "bob")
    assert [entry.build for entry in history.entries()] == [*held, two.identity]
    assert history.take_damage_report() == ""


def test_a_list_of_a_later_version_is_read(tmp_path, history):
    history.record_held(current_of(save(polarfly_build(3), tmp_path / "build"), None), "alice")
    file = history.place / "history.json"
    (entry,) = json.loads(file.read_text())
    assert entry.pop("digest") == digest_of(entry)
    entry |= {"later": 1}
    for members in (entry, entry | {"digest": digest_of(entry)}):
        file.write_text(json.dumps([members]))
        assert [entry.by for entry in history.entries()] == ["alice"]
        assert history.take_damage_report() == ""
