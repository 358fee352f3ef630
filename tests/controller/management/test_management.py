"""The management API without a network: what it answers, to whom, and that nothing stops it."""

import asyncio
import errno
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from threading import Event, current_thread, main_thread
from time import monotonic, time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest

from compilers.update.move_plan import plan
from compilers.update.programs import SwitchPrograms
from controller import state as fabric_state
from controller.cluster.shared_record import SharedRecord, read_record
from controller.management import action_log, http_api, site
from controller.management.action_log import ActionLog, Actor
from controller.management.http_api import Api
from controller.management.metrics import Metrics
from controller.management.site import MOST_GUESSES, STALE
from controller.management.tokens import Token, Tokens
from controller.rollout.build_history import BuildHistory
from controller.rollout.mover import Mover
from controller.rollout.resumption import mover_with_journal
from controller.rollout.rollout import Rollout
from controller.state import Overview, State
from controller.switches.current import read_build
from controller.switches.events import (
    EVENTS_KEPT,
    BugFound,
    ProgramRefused,
    SwitchLeft,
    SwitchReaddressed,
)
from controller.switches.peers import MOST_REASONS, REPORT_PERIOD
from controller.switches.session import LiveFabric
from controller.upkeep.background import at_once, in_thread
from controller.upkeep.port_counters import COUNTERS, PortCounters
from controller.upkeep.repair_keeper import Keeper
from inventory.problems import InputError
from polarfab.fabric import Fabric
from tests.compilers.fabrics import polarfly_build
from tests.compilers.update import updates
from tests.controller.cluster.test_leading import Etcd
from tests.controller.cluster.test_several import Store
from tests.controller.makers import Unwatched, loaded, no_history
from tests.controller.management.site_client import Client
from tests.waiting import until

TOKEN = "0123456789abcdef"  # noqa: S105
READER, OPERATOR = "reader-0123456789", "operator-0123456789"
OTHERS = Token("rita", "read", READER.encode()), Token("otto", "operate", OPERATOR.encode())


@pytest.fixture
def fabric():
    build = replace(polarfly_build(3), identity="0123456789abcdef")
    fabric = LiveFabric(loaded(build), lambda *_: ("type", "code"))
    fabric.connected("here", 4, "192.0.2.4:40000")
    fabric.connected("there", 5, "192.0.2.5:40000")
    return fabric


def unmoved(fabric, folder):
    """A mover that has no build to move to."""
    return Mover(fabric, Unwatched(), BuildHistory(folder / "build"))


@pytest.fixture
def leading():
    """What a member of a cluster says of itself."""
    return {}


@pytest.fixture
def overview(fabric, leading):
    return Overview(lambda: replace(State.of(fabric), leading=leading))


@pytest.fixture
def api(fabric, overview, tmp_path):
    return Client(made(fabric, overview, tmp_path))


def bugs_of(fabric):
    return lambda what, error: fabric.tell(BugFound(what, repr(error)))


EVERY = Tokens((Token("alice", "apply", TOKEN.encode()), *OTHERS))


def made(fabric, overview, folder, tokens=EVERY, mover=None, metrics=None, **options):
    """The API of a fabric, whose files are beside this folder."""
    actions, metrics = ActionLog(folder / "build", fabric.tell), metrics or Metrics(overview)
    mover = mover or unmoved(fabric, folder)
    return Api(overview, metrics, tokens, actions, mover, bugs_of(fabric), **options)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_health_says_what_is_missing(api):
    answer = api.get("/api/health")
    assert answer.status_code == 503
    assert answer.json["connected"] == 2
    assert (answer.json["complete"], answer.json["in_sync"]) == (False, 0)


def test_health_says_what_was_proved(overview, api, tmp_path, fabric):
    """Of a build without a mark nothing; of one proved in part, what is missing."""
    assert api.get("/api/health").json["proved"] == "nothing"
    keys = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 3},
        "routing": {"protect": "link"},
    }
    lab = Fabric.from_spec(keys).compile().save(tmp_path / "build", prove=False)
    lab.verify(failures=())
    fabric.load(read_build(lab.folder))
    health, state = api.get("/api/health").json, api.get("/api/state").json
    assert health["proved"] == state["proved"] == "delivery, identities"
    assert health["caveat"] == "delivery proved; link failures not walked"
    assert overview.current_state().status["caveat"] == health["caveat"]
    loaded = [str(event) for event in fabric.take_events() if event.kind == "loaded"]
    assert loaded == [f"build {health['build']} is loaded; proved: delivery, identities"]
    lab.verify()
    fabric.load(read_build(lab.folder))
    assert (
        api.get("/api/health").json["proved"]
        == "delivery, identities, link failures, two failures at once"
    )
    assert api.get("/api/health").json["caveat"] == ""


def test_one_controller_leads(api):
    assert api.get("/api/health").json["role"] == "leader"
    assert "polarfab_leader 1.0" in api.get("/metrics").text


@pytest.mark.parametrize(("role", "code"), [("follower", 200), ("preparing", 503)])
def test_one_of_several_leaves_changes_to_the_leader(api, leading, role, code):
    leading |= {"role": role, "leader": "other"}
    answer = api.get("/api/health")
    assert (answer.status_code, answer.json["leader"]) == (code, "other")
    assert "polarfab_leader 0.0" in api.get("/metrics").text
    for path in ("/api/reconcile", "/api/apply"):
        assert api.post(path).status_code == 401
        refused = api.post(path, headers=bearer(TOKEN))
        assert refused.status_code == 409
        assert refused.json["error"] == "send changes to the controller that leads: other"


def test_state_has_every_switch(api):
    switches = api.get("/api/state").json["switches"]
    assert len(switches) == 13
    by_state = {one["name"]: (one["state"], one["peer"]) for one in switches if one["peer"]}
    assert by_state == {
        "3": ("being programmed", "192.0.2.4:40000"),
        "4": ("being programmed", "192.0.2.5:40000"),
    }


def test_state_and_metrics_are_told_while_the_fabric_grows(tmp_path):
    """Both were errors for as long as the move went on."""
    old = updates.build("{family: polarfly, q: 3}")
    new = updates.grown(old, "quadric", 1)
    fabric = LiveFabric(loaded(old), lambda *_: ("type", "code"))
    keeper = Keeper(fabric)
    overview = Overview(lambda: State.of(fabric, keeper))
    counters = PortCounters(fabric)
    metrics = Metrics(overview, counters=counters)
    counters.tick()
    counters.by_vertex[0] = {"port": np.ones(1, int), **dict.fromkeys(COUNTERS, np.ones(1))}
    Rollout(fabric, SwitchPrograms(plan(old, new)), loaded(new))
    for datapath_id in fabric.current.programs.by_datapath_id:
        fabric.connected(datapath_id, datapath_id)
    for switch in fabric.present.values():
        fabric.synced(switch)
        switch.last_read_at = 0.0
    assert len(fabric.present) > len(old.wiring.names)
    counters.tick()
    assert counters.by_vertex == {}, "numbers may be those of other switches now"
    every = {"port": np.ones(1, int), **dict.fromkeys(COUNTERS, np.ones(1))}
    counters.by_vertex |= dict.fromkeys(fabric.present, every)
    api = Client(made(fabric, overview, tmp_path, metrics=metrics))
    assert len(api.get("/api/state").json["switches"]) == len(fabric.present)
    assert "polarfab_port_errors_total{port=" in api.get("/metrics").text


def test_floor_has_every_link_once(api, overview):
    links = api.get("/api/floor").json["links"]
    assert len(links) == overview.current_state().build.topology.graph.size == 24
    wiring = overview.current_state().build.wiring
    for a, port, b, far_port in links:
        here = wiring.far[a].tolist().index(b)
        assert port == wiring.port_name(a, int(wiring.port[a, here]))
        assert far_port == wiring.port_name(b, int(wiring.far_port[a, here]))


def test_events_after_a_number(api, overview):
    for number in range(EVENTS_KEPT + 2):
        overview.happened(SwitchLeft(str(number), at=1000.0004))
    assert [e["number"] for e in api.get(f"/api/events?after={EVENTS_KEPT}").json] == [
        EVENTS_KEPT + 1,
        EVENTS_KEPT + 2,
    ]
    every = api.get("/api/events").json
    assert len(every) == EVENTS_KEPT
    last, number = every[-1], str(EVENTS_KEPT + 1)
    assert (last["event"], last["node"], last["switch"]) == ("left", number, number)
    assert last["at"] == 1000.0


def test_many_events_of_a_kind_leave_those_of_other_kinds(api, overview):
    """A stranger who claims the datapath id of a switch that is away washed all others away."""
    overview.happened(BugFound("repairing", "KeyError"))
    for number in range(EVENTS_KEPT):
        overview.happened(SwitchLeft("3"))
        overview.happened(SwitchReaddressed("3", "192.0.2.9:1", "192.0.2.1"))
        if number == EVENTS_KEPT // 2:
            overview.happened(ProgramRefused("3", "why", None, None, "", 0))
            api.get("/api/events")  # the HTTP process keeps its own
    for client in (api, Client(api.api)):
        kept = client.get("/api/events").json
        assert len(kept) == EVENTS_KEPT
        assert [event["number"] for event in kept] == sorted(event["number"] for event in kept)
        assert [event["event"] for event in kept if "3" not in event["node"]] == ["bug"]
        assert sum(event["event"] == "refused" for event in kept) == 1


@pytest.mark.parametrize("after", ["x", "-1", "9" * 40])
def test_bad_event_numbers(api, after):
    assert api.get(f"/api/events?after={after}").status_code == 400


def test_metrics_count(api, overview):
    overview.happened(ProgramRefused("3", "why", None, None, "", 0))
    text = api.get("/metrics").text
    values = dict(re.findall(r"^(polarfab_\S+) (\S+)$", text, re.MULTILINE))
    assert values["polarfab_switches"] == "13.0"
    assert values["polarfab_switches_connected"] == "2.0"
    assert values['polarfab_events_total{event="refused"}'] == "1.0"
    assert values['polarfab_reconciled_total{what="added"}'] == "0.0"


def test_metrics_in_slices_are_the_same_text(api, monkeypatch):
    """One metric of a thousand switches held the loop for 34 ms."""
    monkeypatch.setattr(http_api, "SAMPLES_AT_ONCE", 5)
    slices = [text.decode() for text in api.api.exposition()]
    assert "".join(slices) == generate_latest(api.api.metrics.registry).decode()
    kinds = [text for text in slices if "polarfab_events_total{" in text]
    assert len(kinds) > 5
    assert max(text.count("polarfab_events_total{") for text in kinds) == 5


def test_what_readers_get_is_made_in_slices(api, monkeypatch):
    """The state of a thousand switches held the loop for 76 ms."""
    monkeypatch.setattr(fabric_state, "SWITCHES_AT_ONCE", 3)
    breaths = []
    api.api.slices = lambda: breaths.append(len(breaths))
    told = json.loads(api.api.all_pages()["state"])
    assert len(breaths) > len(told["switches"]) / 3


def test_what_readers_get_is_of_one_build(api, fabric):
    """Where a move ended in between they read that it is done, and that the fabric has the build
    that it had before.
    """
    other = loaded(replace(polarfly_build(3), identity="fedcba9876543210"))
    api.api.slices = lambda: fabric.load(other)
    told = api.api.all_pages()
    builds = {json.loads(told[part])["build"] for part in ("health", "state", "move")}
    assert len(builds) == 1


def test_changes_need_a_token(api, fabric):
    fabric.send.take()
    for headers in ({}, bearer("0123456789abcdee"), {"Authorization": TOKEN}, bearer("")):
        answer = api.post("/api/reconcile", headers=headers)
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert api.get("/api/reconcile", headers=bearer(TOKEN)).status_code == 405
    assert not fabric.send.take()
    answer = api.post("/api/reconcile", headers=bearer(TOKEN))
    assert (answer.status_code, answer.json) == (202, {"switches": 2})


def test_one_switch_is_read_again(api):
    answer = api.post("/api/reconcile", headers=bearer(TOKEN), json={"node": "4"})
    assert answer.json == {"switches": 1}
    for node, status in (("nobody", 404), ("7", 503), ({}, 400)):
        answer = api.post("/api/reconcile", headers=bearer(TOKEN), json={"node": node})
        assert answer.status_code == status, node


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 60000])
def test_bad_bodies(api, body):
    answer = api.post("/api/reconcile", headers=bearer(TOKEN), data=body)
    assert answer.status_code == 400


@pytest.mark.parametrize("headers", [{}, bearer(TOKEN), bearer(READER)])
def test_a_refused_body_is_not_read(api, headers):
    """18.9 GB of one were read in 8 s."""
    for path in ("reconcile", "nothing", "health"):
        answer = api.post(f"/api/{path}", headers=headers, data=b" " * (2 << 20))
        assert (answer.status_code >= 400, answer.headers["Connection"]) == (True, "close")
        assert answer.read == 0, path


def test_a_body_that_is_too_long_is_refused(api):
    """Its sender reads why, as it is not so long that it has to be cut off."""
    answer = api.post("/api/reconcile", headers=bearer(TOKEN), data=b" " * 100_000)
    assert (answer.status_code, answer.json["error"]) == (
        413,
        "required a body of at most 65,536 bytes",
    )


def test_a_build_larger_than_this_fabric_can_take_is_not_read(api):
    """A body of 300 MB took 1.3 GB in the process and .7 GB in the controller."""
    answer = api.post("/api/apply", headers=bearer(TOKEN), data=bytes(13 << 20))
    assert (answer.status_code, answer.read) == (413, 0)


def test_builds_are_received_one_after_another(api):
    """All that were sent at once stood in memory together."""
    head = {"host": "localhost", "authorization": f"Bearer {TOKEN}", "content-length": "5"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/apply",
        "query_string": b"",
        "client": ("127.0.0.1", 40000),
        "headers": [(name.encode(), value.encode()) for name, value in head.items()],
    }

    async def statuses_of_two():
        statuses, rest_arrives = [], asyncio.Event()

        async def receive():
            await rest_arrives.wait()
            return {"type": "http.request", "body": b"build", "more_body": False}

        async def send(message):
            if "status" in message:
                statuses.append(message["status"])

        first = asyncio.create_task(api.site(scope, receive, send))
        await asyncio.sleep(0)
        second = asyncio.create_task(api.site(scope, receive, send))
        while not statuses:
            await asyncio.sleep(0)
        rest_arrives.set()
        await asyncio.gather(first, second)
        return statuses

    assert asyncio.run(asyncio.wait_for(statuses_of_two(), 20)) == [503, 400]
    answer = api.post("/api/apply", headers=bearer(TOKEN), data=b"build")
    assert answer.status_code == 400  # the place is free again


@pytest.mark.parametrize("change", ["withdrawn", "lowered"])
def test_a_token_that_is_withdrawn_while_the_body_arrives_changes_nothing(api, tmp_path, change):
    """Two minutes later, an upload that had begun before moved the fabric."""
    asked = api.site.ask

    async def late(header, body):
        lowered = Token("alice", "read", TOKEN.encode())
        api.api.tokens = Tokens(OTHERS if change == "withdrawn" else (lowered, *OTHERS))
        return await asked(header, body)

    api.site.ask = late
    answer = api.post("/api/apply", headers=bearer(TOKEN), data=b"build")
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert "withdrawn" in answer.json["error"]
    assert not (tmp_path / ".build.actions").exists()


def test_a_token_that_is_renamed_while_the_body_arrives_stays_accepted(api):
    """Its request was refused: a comment above a token without a name had changed its line."""
    asked = api.site.ask

    async def late(header, body):
        api.api.tokens = Tokens((Token("bob", "apply", TOKEN.encode()),))
        return await asked(header, body)

    api.site.ask = late
    answer = api.post("/api/reconcile", headers=bearer(TOKEN))
    assert answer.status_code == 202, answer.json


@pytest.mark.parametrize(
    ("seconds", "size", "status"),
    [(9, 5, 400), (11, 5, 408), (59, 6_000_000, 400), (61, 6_000_000, 408), (61, 62_000_000, 400)],
)
def test_a_build_that_drips_keeps_no_place(api, monkeypatch, seconds, size, status):
    """One of 1.3 MB kept the builds of others out for two minutes."""
    times = iter([0.0, *[0.0] * (size // 65536), *[float(seconds)] * 2])
    monkeypatch.setattr(site, "monotonic", lambda: next(times))
    monkeypatch.setattr(Mover, "most_switches", 1000)
    answer = api.post("/api/apply", headers=bearer(TOKEN), data=bytes(size))
    assert answer.status_code == status
    if status == 408:
        assert answer.json["error"] == (
            "required a body within 10 s and a second more for each 100,000 bytes, and after 60 s"
            " at 1,000,000 bytes a second or more"
        )


@pytest.mark.parametrize("large", ["path", "query", "header"])
def test_a_head_that_is_too_long_is_refused(api, large):
    """One of 100 KB that arrived at once got 200."""
    for size, status in ((12_000, 404 if large == "path" else 200), (100_000, 431)):
        path = "/api/state" + {"path": "/" + "x" * size, "query": "?x=" + "x" * size}.get(large, "")
        headers = {"X-Long": "x" * size} if large == "header" else {}
        assert api.get(path, headers=headers).status_code == status, size


@pytest.mark.parametrize(
    ("path", "key"), [("rollback", "build"), ("drain", "what"), ("reconcile", "node")]
)
@pytest.mark.parametrize("name", ["\0", "\ud800", "a\nb", "\x1b[2J", "0" * 60_000])
def test_names_that_no_log_can_hold_are_refused_in_words(api, tmp_path, path, key, name):
    """They were errors 500 without a word, or forged lines of the log."""
    answer = api.post(f"/api/{path}", headers=bearer(TOKEN), json={key: name})
    assert answer.status_code == 400
    assert answer.json["error"].startswith(f"{key}: required ")
    assert len(answer.text) < 300
    assert not (tmp_path / ".build.actions").exists()


def test_an_error_of_ours_is_counted_and_told(api, fabric, monkeypatch):
    """It was a 500 without a word, of which no log and no metric knew."""
    monkeypatch.setattr(api.api.mover, "confirm", lambda: 1 / 0)
    answer = api.post("/api/confirm", headers=bearer(TOKEN))
    assert (answer.status_code, "internal error" in answer.json["error"]) == (500, True)
    (bug,) = [event for event in fabric.take_events() if event.kind == "bug"]
    assert (bug.step, "ZeroDivisionError" in bug.reason) == ("POST /api/confirm", True)
    assert "polarfab_http_errors_total 1.0" in api.get("/metrics").text


def test_an_error_in_the_http_process_is_told_to_the_controller(api, monkeypatch):
    monkeypatch.setattr(type(api.site), "_token_of", lambda *_: 1 / 0)
    assert api.post("/api/confirm", headers=bearer(TOKEN)).status_code == 500
    (note,) = api.notes
    assert note["fault"] == "answering POST /api/confirm"
    assert "ZeroDivisionError" in note["text"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("evil.example:8080", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost:8080", 200),
        ("LOCALHOST", 200),
        ("192.0.2.7:8080", 200),
        ("[2001:db8::7]:8080", 200),
        ("fabric.example", 200),
    ],
)
def test_who_is_called_by_another_name_does_not_answer(fabric, overview, tmp_path, host, status):
    """A page of evil.example, resolved to our address, read everything."""
    names = frozenset({"localhost", "fabric.example"})
    api = Client(made(fabric, overview, tmp_path), hosts=names)
    answer = api.get("/api/state", host=host)
    assert answer.status_code == status
    if status == 421:
        assert "`http_host`" in answer.json["error"]
        assert api.post("/api/confirm", host=host, headers=bearer(TOKEN)).status_code == 421
    with_tls = Client(made(fabric, overview, tmp_path), hosts=None)
    assert with_tls.get("/api/state", host=host).status_code == 200


def test_a_controller_of_which_nothing_is_heard_is_not_alive(api):
    """Its last words said that it is."""
    assert api.get("/api/health").json["alive"] is True
    api.silent, now = True, monotonic()
    api.site.clock = lambda: now + STALE + 1
    health = api.get("/api/health")
    assert (health.status_code, health.json["alive"]) == (503, False)
    assert api.get("/api/state").json["alive"] is False
    assert "\npolarfab_alive 0.0\n" in api.get("/metrics").text


def test_metrics_alone_are_no_sign_that_the_loop_goes_on(api):
    """They are made beside it."""
    api.silent, now = True, monotonic()
    api.site.clock = lambda: now + STALE + 1
    asyncio.run(api.site.receive_pages({"metrics": b"\npolarfab_alive 1.0\n"}))
    assert api.get("/api/health").json["alive"] is False
    asyncio.run(api.site.receive_pages(api.api.changed_pages()))
    assert api.get("/api/health").json["alive"] is True
    assert "health" in api.api.changed_pages(), "also where nothing has changed"


def test_a_token_that_lacks_a_role_does_not_fill_the_action_log(api, tmp_path):
    """Each request was a line on the disk, for which the loop that repairs waited."""
    post = lambda path, token: api.post(path, headers=bearer(token)).status_code  # noqa: E731
    assert [post("/api/confirm", READER) for _ in range(12)] == [403] * 10 + [429] * 2
    assert len((tmp_path / ".build.actions").read_text().splitlines()) == 10
    assert post("/api/confirm", OPERATOR) == 403, "another token"
    assert post("/api/drain", READER) == 403, "another role"
    assert post("/api/reconcile", OPERATOR) == 202
    api.site.low_roles.clock = lambda: monotonic() + REPORT_PERIOD + 1
    assert post("/api/confirm", READER) == 403, "a minute later"


def test_a_token_that_operates_does_not_fill_the_action_log(api, tmp_path, monkeypatch):
    """It filled 50 MB in 18 s; then a good trial could not be confirmed."""
    monkeypatch.setattr(action_log, "TOKEN_BYTES", 1000)
    now = [0.0]
    api.api.actions = ActionLog(tmp_path / "build", lambda _: None, clock=lambda: now[0])
    post = lambda path, token: api.post(f"/api/{path}", headers=bearer(token))  # noqa: E731
    statuses = [post("reconcile", OPERATOR).status_code for _ in range(20)]
    done = statuses.count(202)
    assert statuses == [202] * done + [429] * (20 - done)
    assert 3 < done < 10
    size = (tmp_path / ".build.actions").stat().st_size
    assert 1000 < size < 1200
    wait = int(post("reconcile", OPERATOR).headers["Retry-After"])
    assert wait == 1
    assert post("reconcile", TOKEN).status_code == 202, "another token"
    now[0] += wait
    assert post("reconcile", OPERATOR).status_code == 202
    for _ in range(20):
        last = post("confirm", TOKEN)
    assert "a build on trial" in last.text, "moves are not limited"
    now[0] += 86400.0
    for _ in range(20):
        post("reconcile", OPERATOR)
    assert (tmp_path / ".build.actions").read_text().count('"otto"') < 2 * done + 3


def test_guesses_from_many_hosts_hide_no_token_that_lacks_a_role(api, tmp_path):
    """After a hundred addresses, tokens that lack a role were counted as one: of the eleventh
    request, whosever, there was no line in the action log."""
    for number in range(MOST_REASONS + MOST_GUESSES):
        wrong = {"client": f"192.0.2.{number}", "headers": bearer("guess-0123456789")}
        assert api.post("/api/reconcile", **wrong).status_code in (401, 429)
    for _ in range(MOST_GUESSES):
        assert api.post("/api/apply", headers=bearer(READER)).status_code == 403
    assert api.post("/api/apply", headers=bearer(OPERATOR)).status_code == 403
    assert '"otto"' in (tmp_path / ".build.actions").read_text()


def test_a_history_that_cannot_be_read_stops_no_report(api, monkeypatch):
    """As while no more files can be opened."""

    def none():
        raise OSError(errno.EMFILE, "Too many open files")

    before = api.get("/api/history").json
    monkeypatch.setattr(api.api.mover.history, "entries_as_data", none)
    assert api.get("/api/history").json == before
    assert api.get("/api/health").json["alive"] is True


def test_what_readers_get_does_not_wait_for_the_history(fabric, overview, tmp_path, monkeypatch):
    """It was read from the disk in each tick, by the loop that hears switches."""
    answers, app = Event(), made(fabric, overview, tmp_path)

    def late():
        assert current_thread() is not main_thread(), "the loop waits for the disk"
        assert answers.wait(60.0)
        return [{"build": "0123"}]

    monkeypatch.setattr(app.mover.history, "entries_as_data", late)
    for _ in range(3):
        assert "history" not in app.changed_pages()
    answers.set()
    assert b"0123" in until(lambda: app.changed_pages().get("history"), "the history")


def test_without_tokens_nothing_is_changed(overview, tmp_path, fabric):
    api = Client(made(fabric, overview, tmp_path, Tokens()))
    answer = api.post("/api/reconcile", headers=bearer(""))
    assert answer.status_code == 403
    assert "`token_file`" in answer.json["error"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS", "NO"]),
    path=st.one_of(
        st.text(max_size=40).map(
            lambda text: f"/{text.lstrip('/')}"
        ),  # //[ is refused by the client
        st.builds(
            lambda name, query: f"/api/{name}?{query}",
            st.sampled_from(["health", "state", "events", "reconcile", "floor"]),
            st.text(max_size=30).map(lambda text: f"from={text}&to={text}&after={text}"),
        ),
    ),
    data=st.binary(max_size=60),
)
def test_whatever_is_asked_gets_an_answer(api, method, path, data):
    answer = api.open(path, method=method, data=data, headers=bearer(TOKEN))
    assert answer.status_code in {200, 202, 308, 400, 404, 405, 503}
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        (f"{TOKEN}\n", 0o644, "mode 644; chmod 600"),
        ("", 0o600, "at least one token"),
        ("short\n", 0o600, "at least 16 characters, given one of 5"),
        (f"{TOKEN} {TOKEN}\n", 0o600, "NAME ROLE TOKEN, or TOKEN, given 2 words"),
        (f"# us\nalice aply {TOKEN}\n", 0o600, "tokens:2: token_file: required read or operate"),
        (f"al/ice apply {TOKEN}\n", 0o600, "a name of letters"),
        ("schlüssel-schlüssel\n", 0o600, "ASCII"),
        ("\0" * 20, 0o600, "tokens:1: token_file: required a token of printable characters"),
        (f"alice apply {TOKEN}\x7f\n", 0o600, "a token of printable characters, given others"),
    ],
)
def test_bad_token_files(tmp_path, text, mode, said):
    file = tmp_path / "tokens"
    with pytest.raises(InputError, match="one a line, given No such file or directory; "):
        Tokens.read(file)
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(InputError) as error:
        Tokens.read(file)
    assert said in str(error.value)
    assert TOKEN not in str(error.value)


def test_a_token_file_that_is_a_named_pipe_is_refused(tmp_path):
    """At a SIGHUP, the controller waited for a writer for ever."""
    file = tmp_path / "tokens"
    os.mkfifo(file, 0o600)
    with pytest.raises(InputError, match="one a line, given a named pipe; make one with"):
        Tokens.read(file)


def test_a_token_file_without_an_end_is_refused(tmp_path):
    """A link to /dev/zero was read before anything was looked at: 11 GB, and the process ended."""
    file, large = tmp_path / "tokens", tmp_path / "large"
    for target in (Path("/dev/zero"), tmp_path):
        file.symlink_to(target)
        with pytest.raises(InputError, match="one a line, given something else than a file; make"):
            Tokens.read(file)
        file.unlink()
    large.touch(0o600)
    os.truncate(large, 1 << 40)
    with pytest.raises(InputError, match="one a line, given more than 1,048,576 characters"):
        Tokens.read(large)
    large.chmod(0o644)
    with pytest.raises(InputError, match="mode 644"):
        Tokens.read(large)


def test_good_token_files(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"# operators\n\n{TOKEN}\n  alice operate  {TOKEN[::-1]}  \n")
    file.chmod(0o600)
    tokens = Tokens.read(file)
    assert tokens.bearer(f"bearer {TOKEN[::-1]}") == Token("alice", "operate", TOKEN[::-1].encode())
    assert tokens.bearer(f"Bearer {TOKEN}") == Token("line 3", "apply", TOKEN.encode())
    assert tokens.bearer(f"Basic {TOKEN}") is None
    assert tokens.bearer(f"Bearer {TOKEN}x") is None
    assert tokens.bearer(None) is None


ROLES = {
    "read": [("GET", "/api/build")],
    "operate": [("POST", "/api/reconcile")],
    "apply": [("POST", "/api/apply"), ("POST", "/api/confirm"), ("POST", "/api/rollback")],
}


@pytest.mark.parametrize(
    ("token", "good"), [(READER, 1), (OPERATOR, 2), (TOKEN, 3)], ids=["read", "operate", "apply"]
)
def test_a_role_is_for_what_it_names_and_less(api, token, good):
    for place, calls in enumerate(ROLES.values()):
        for method, path in calls:
            assert api.open(path, method=method).status_code == 401
            answer = api.open(path, method=method, headers=bearer(token))
            assert (answer.status_code == 403) == (place >= good), path


def test_every_request_is_written_down(api, overview, tmp_path, fabric):
    api.post("/api/reconcile", headers=bearer(OPERATOR), client="192.0.2.9")
    api.post("/api/confirm", headers=bearer(OPERATOR))
    api.post("/api/rollback", headers=bearer("nobody-0123456789"))
    lines = [json.loads(line) for line in (tmp_path / ".build.actions").read_text().splitlines()]
    assert [(one["who"], one["role"], one["action"], one["outcome"]) for one in lines] == [
        ("otto", "operate", "reconcile", "asked"),
        ("otto", "operate", "POST", "refused: needs the role apply"),
    ]
    assert lines[0]["address"] == "192.0.2.9"
    assert lines[0]["at"] == pytest.approx(time(), abs=60)
    assert (tmp_path / ".build.actions").stat().st_mode & 0o777 == 0o600
    told = [event for event in fabric.take_events() if event.kind == "action"]
    assert str(told[0]) == "otto: reconcile every switch (operate 192.0.2.9): asked"
    overview.happened(told[0])
    assert "otto" not in api.get("/api/events").text, "it is for who may read the file"


def test_a_line_that_the_full_disk_cut_off_spoils_no_other(api, tmp_path):
    log = tmp_path / ".build.actions"
    log.write_bytes(b'{"at": 1.0, "who"')
    assert api.post("/api/reconcile", headers=bearer(OPERATOR)).status_code == 202
    _, line = log.read_bytes().splitlines()
    assert json.loads(line)["who"] == "otto"


def test_a_full_log_goes_on_in_another_file(tmp_path, monkeypatch):
    """Who may change things washed it away in seconds: what is younger than a week stays."""
    monkeypatch.setattr(action_log, "MOST_BYTES", 1000)
    actions = ActionLog(tmp_path / "build", lambda _: None)
    for number in range(200):
        actions.write(Actor("otto", "apply", ""), "apply", str(number), "asked")
    full = sorted(tmp_path.glob(".build.actions.*"))
    lines = [line for name in full for line in name.read_text().splitlines()]
    assert len(lines) >= 190
    assert len(full) > 12
    monkeypatch.setattr(action_log, "WEEK", -1.0)
    for number in range(200, 210):
        actions.write(Actor("otto", "apply", ""), "apply", str(number), "asked")
    names = [*(f".build.actions.{number}" for number in range(12, 0, -1)), ".build.actions"]
    assert {file.name for file in tmp_path.iterdir()} == {*names}
    lines = [line for name in names for line in (tmp_path / name).read_text().splitlines()]
    kept = [json.loads(line)["what"] for line in lines]
    assert kept == [str(number) for number in range(210)][-len(kept) :]
    assert max((tmp_path / name).stat().st_size for name in names) < 1200


def test_logrotate_may_move_the_log(tmp_path):
    """Without a signal."""
    actions, log = ActionLog(tmp_path / "build", lambda _: None), tmp_path / ".build.actions"
    for who in ("otto", "anna"):
        actions.write(Actor(who, "apply", ""), "apply", "", "asked")
        log.rename(tmp_path / who)
    assert "anna" in (tmp_path / "anna").read_text()
    assert not log.exists()


@pytest.fixture
def hung(monkeypatch):
    """A disk that answers once this event is set."""
    answers, fsync = Event(), action_log.os.fsync
    monkeypatch.setattr(action_log.os, "fsync", lambda file: answers.wait(60.0) and fsync(file))
    yield answers
    answers.set()


def outcomes(folder):
    """What the lines of the action log say became of requests."""
    lines = (folder / ".build.actions").read_text().splitlines()
    return [(line["what"], line["outcome"]) for line in map(json.loads, lines)]


def test_nobody_else_waits_for_the_disk_that_takes_a_line(tmp_path, hung):
    """All switches disconnected while it did not answer."""
    told, breaths, otto = [], [], Actor("otto", "apply", "")

    def pause(seconds):
        breaths.append(seconds)
        hung.set()

    actions = ActionLog(tmp_path / "build", told.append, pause)
    actions.finish(0.0)
    assert told == []
    for number in range(3):
        actions.note(otto, "drain", str(number), "asked")
    actions.finish(0.0)
    assert [event.kind for event in told] == ["action"] * 3 + ["status"]
    assert "before the end" in told[-1].text
    with actions.recording(otto, "drain", "3"):
        assert outcomes(tmp_path)[-1] == ("3", "asked")
    assert breaths
    assert outcomes(tmp_path) == [(str(number), "asked") for number in range(4)]
    actions.finish(60.0)
    assert [event.kind for event in told[4:]] == ["action"]


def test_what_the_disk_does_not_take_in_time_is_not_done(api, tmp_path, hung, monkeypatch):
    monkeypatch.setattr(action_log, "PATIENCE", 0.0)
    answer = api.post("/api/reconcile", headers=bearer(OPERATOR))
    assert (answer.status_code, "a disk that does not answer" in answer.text) == (400, True)
    hung.set()
    api.api.actions.finish(60.0)
    (_, first), (_, second) = outcomes(tmp_path)
    assert (first, second.startswith("refused: ")) == ("asked", True)


def test_a_switch_that_leaves_while_the_disk_takes_the_line_is_not_read(
    api, fabric, tmp_path, hung
):
    """The request was answered with an internal error."""

    def pause(_):
        if not hung.is_set():
            fabric.closed("there")
            hung.set()

    api.api.actions = ActionLog(tmp_path / "build", fabric.tell, pause)
    answer = api.post("/api/reconcile", headers=bearer(OPERATOR))
    assert (answer.status_code, answer.json) == (202, {"switches": 1})


def test_lines_that_find_no_room_are_counted(tmp_path, hung, monkeypatch):
    monkeypatch.setattr(action_log, "MOST_LINES", 2)
    told, otto = [], Actor("otto", "apply", "")
    actions = ActionLog(tmp_path / "build", told.append)
    for number in range(10):
        actions.note(otto, "drain", str(number), "asked")
    actions.tick()
    assert any(event.kind == "status" and "are left out" in event.text for event in told)
    with pytest.raises(InputError, match="are left out"):
        actions.write(otto, "drain", "10", "asked")
    hung.set()
    actions.finish(60.0)
    kept = [what for what, _ in outcomes(tmp_path)]
    assert kept in (["0", "1"], ["0", "1", "2"]), "one may have been begun already"


def test_nothing_is_done_that_cannot_be_written_down(api, fabric, tmp_path):
    (tmp_path / ".build.actions").mkdir()
    answer = api.post("/api/reconcile", headers=bearer(OPERATOR))
    assert answer.status_code == 400
    assert "nothing is done without a record" in answer.json["error"]
    assert fabric.take_events()[-1].kind == "connected", "and nothing after"


def test_the_page_runs_only_its_own_script(api):
    answer = api.get("/")
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    named = re.findall(r'(?:href|src)="(/[^"]+)"', answer.text)
    assert sorted(named) == ["/page.css", "/page.js", "/style.css"]
    assert all(api.get(name).status_code == 200 for name in named)
    assert "<script>" not in answer.text
    assert json.loads(api.get("/api/floor").text)["names"][0] == "0"


DASHBOARD = Path(__file__).parents[3] / "docs" / "operate" / "grafana-dashboard.json"


def test_the_dashboard_names_only_metrics_that_exist(api):
    dashboard = json.loads(DASHBOARD.read_text())
    told = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]
    named = {name for text in told for name in re.findall(r"polarfab_\w+", text)}
    known = set(re.findall(r"^# TYPE (\w+)", api.get("/metrics").text, re.MULTILINE))
    known |= {f"polarfab_{what}_seconds_bucket" for what in ("sync", "repair")}
    known |= {"polarfab_certificate_days"}
    known |= {f"polarfab_port_{what}_total" for what in COUNTERS}
    assert len(named) == 19
    assert named <= known


def test_who_guesses_tokens_is_not_listened_to_for_a_while(overview, tmp_path, fabric):
    """1,400 a second were neither limited, logged nor counted."""
    now = [0.0]
    fabric.rejected.clock = lambda: now[0]
    api = Client(made(fabric, overview, tmp_path))
    api.site.refusals.clock = lambda: now[0]
    fabric.take_events()
    for number in range(MOST_GUESSES):
        wrong = bearer(f"guess-{number:016}")
        assert api.post("/api/reconcile", headers=wrong).status_code == 401
    refused = api.post("/api/reconcile", headers=bearer("guess-0123456789"))
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) == REPORT_PERIOD
    known = api.post("/api/reconcile", headers=bearer(TOKEN))
    assert known.status_code == 202, "behind a proxy, which is one host, others send wrong ones"
    other = {"client": "192.0.2.9", "headers": bearer("guess-0123456789")}
    assert api.post("/api/reconcile", **other).status_code == 401
    told = [str(event) for event in fabric.take_events() if event.kind == "token-refused"]
    assert told == [
        f"a client on {at} is refused: a token that is not known"
        for at in ("127.0.0.1", "192.0.2.9")
    ]
    assert f"polarfab_wrong_tokens_total {MOST_GUESSES + 1}.0" in api.get("/metrics").text
    now[0] += REPORT_PERIOD
    assert api.post("/api/reconcile", headers=bearer("guess-0123456789")).status_code == 401


def test_tokens_are_read_again(overview, tmp_path, fabric):
    file = tmp_path / "tokens"
    file.write_text(f"alice apply {TOKEN}\nrita read {READER}\n")
    file.chmod(0o600)
    app = made(fabric, overview, tmp_path, Tokens.read(file))
    api = Client(app, private=True)
    fabric.take_events()
    assert api.get("/api/health").status_code == 503
    for path in ("/api/state", "/metrics", "/api/events"):
        assert api.get(path).status_code == 401
        assert api.get(path, headers=bearer(READER)).status_code == 200
    file.write_text(f"alice apply {TOKEN}\n")
    app.read_tokens_again()
    assert api.get("/api/state", headers=bearer(READER)).status_code == 401
    for text in ("short\n", "\0" * 200):
        file.write_text(text)
        app.read_tokens_again()
        assert api.get("/api/state", headers=bearer(TOKEN)).status_code == 200
        assert [event.kind for event in fabric.take_events()][-1] == "tokens-kept"


def test_a_token_file_on_a_disk_that_hangs_holds_nobody_up(overview, tmp_path, fabric):
    """The loop stood until the guard ended it, and all switches left."""
    file = tmp_path / "tokens"
    file.write_text(f"alice apply {TOKEN}\n")
    file.chmod(0o600)
    app, over = made(fabric, overview, tmp_path, Tokens.read(file)), Event()
    app.start = lambda work: in_thread(lambda: (over.wait(60), work()))
    fabric.take_events()
    app.read_tokens_again()
    app.report_tokens()
    assert not fabric.take_events()
    over.set()
    until(lambda: app.report_tokens() or fabric.take_events())


@pytest.fixture
def repairing():
    """A fabric without switches, and its keeper."""
    build = replace(polarfly_build(3), identity="0123456789abcdef")
    fabric = LiveFabric(loaded(build), lambda *_: ("type", "code"))
    return fabric, Keeper(fabric)


def test_drains_are_asked_for_by_operators(tmp_path, repairing, monkeypatch):
    fabric, keeper = repairing
    build, overview = keeper.build, Overview(lambda: State.of(fabric, keeper))
    mover = mover_with_journal(fabric, BuildHistory(tmp_path / "build"), keeper, at_once)
    api = Client(made(fabric, overview, tmp_path, mover=mover))
    names = build.wiring.names
    ends = names[3], names[int(build.wiring.far[3, 0])]
    link = {"what": "-".join(ends)}
    assert api.post("/api/drain", json=link).status_code == 401
    assert api.post("/api/drain", json=link, headers=bearer(READER)).status_code == 403
    for wrong in ({}, {"what": 3}, {"what": "n99"}, {"what": "module:n3/m0"}):
        assert api.post("/api/drain", json=wrong, headers=bearer(OPERATOR)).status_code == 400
        assert api.post("/api/undrain", json=wrong, headers=bearer(OPERATOR)).status_code == 400
    assert "otto" not in (tmp_path / ".build.actions").read_text(), "unknown names are not logged"
    answer = api.post("/api/drain", json=link, headers=bearer(OPERATOR))
    assert answer.json == {"asked": [link["what"]], "cut_off_pairs": 0, "repairing": True}
    (dead,) = api.get("/api/state").json["links"]
    assert {dead["node"], dead["far_node"]} == {*ends}
    journal = tmp_path / ".build.journal"
    assert json.loads(journal.read_text())["known"]["asked"] == [[link["what"]]], "no tick since"
    assert api.post("/api/undrain", json=link, headers=bearer(OPERATOR)).json["asked"] == []
    assert api.post("/api/undrain", json=link, headers=bearer(OPERATOR)).status_code == 400
    assert api.get("/api/state").json["links"] == []
    journal.mkdir()  # as on a full disk: nothing can be written there
    monkeypatch.setattr(http_api, "RECORD_PATIENCE", 0.0)
    late = api.post("/api/drain", json=link, headers=bearer(OPERATOR))
    assert (late.status_code, "disk does not take it" in late.json["error"]) == (503, True)
    fabric.survey = {}
    late = api.post("/api/drain", json=link, headers=bearer(OPERATOR))
    assert "too few switches have said yet which build they hold" in late.json["error"]
    fabric.survey = None
    journal.rmdir()
    assert api.post("/api/drain", json=link, headers=bearer(OPERATOR)).status_code == 202
    assert '"drain", ' in (tmp_path / ".build.actions").read_text()


@pytest.mark.parametrize("moves", [False, True])
def test_a_drain_is_answered_when_the_store_has_it(tmp_path, repairing, monkeypatch, moves):
    """It was answered as soon as writing had begun, or as a move began: a kill then forgot it."""
    fabric, keeper = repairing
    jobs, breaths, etcd = [], [], Etcd()
    etcd.key = (1, "a", 7)

    def later(job):
        jobs.append(SimpleNamespace(done=lambda: len(breaths) >= 3, result=job))
        return jobs[-1]

    def pause(*_):
        breaths.append(len(jobs))
        if moves and len(breaths) == 1:
            mover.rollout = SimpleNamespace(over=False)
        record.poll()

    store, overview = Store(etcd), Overview(lambda: State.of(fabric, keeper))
    history = SimpleNamespace(packed=lambda _: None, is_verified=lambda _: True)
    record = SharedRecord(store, history, later)
    record.lead(7, None)
    mover = Mover(fabric, keeper, no_history(), record)
    app = made(fabric, overview, tmp_path, mover=mover, pause=pause)
    node = {"what": fabric.names[3]}
    answer = Client(app).post("/api/drain", json=node, headers=bearer(OPERATOR))
    assert (answer.status_code, breaths) == (202, [1, 1, 1])
    assert read_record(store).link_state["asked"] == [[node["what"]]]

    mover.rollout = None
    monkeypatch.setattr(http_api, "RECORD_PATIENCE", 0.0)
    store.put = lambda *_: False
    late = Client(app).post("/api/undrain", json=node, headers=bearer(OPERATOR))
    assert late.status_code == 503
    assert "not written down" in late.json["error"]


def test_every_path_of_the_page_of_the_api_is_there(api):
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "management.md").read_text()
    rows = re.findall(r"^\| (?:GET|POST) (.*?) \|", page, re.MULTILINE)
    named = {path for row in rows for path in re.findall(r"/\w[\w/]*", row)}
    assert len(named) > 10
    for path in named:
        assert api.get(path, headers=bearer(TOKEN)).status_code != 404, path
