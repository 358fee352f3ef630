"""The process that serves the API: what no client can do to it, nor it to the controller."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from unittest.mock import Mock
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
import trustme
from uvicorn.server import ServerState

from controller.management import http_process
from controller.management.frames import frame
from controller.management.http_process import (
    FAULT_PERIOD,
    MOST_FAULTS,
    MOST_WAITING,
    ClientListener,
    ControllerLink,
    Faults,
)
from controller.management.http_supervisor import HttpSupervisor
from controller.management.site import Answer, Refusal
from polarfab.fabric import Fabric
from tests.controller.makers import COPY, POLARFAB, begun, free_port
from tests.waiting import until

TOKEN = "0123456789abcdef"  # noqa: S105
LIMIT = 60.0


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("http-process") / "build"
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}
    Fabric.from_spec(spec).save(folder).verify()
    return folder


class Running:
    """A controller without switches, and the process of its API.

    It has a copy of the build: two controllers of one folder do not start.
    """

    def __init__(self, folder, build, *options, scheme="http", program=(POLARFAB,)):
        build = shutil.copytree(build, folder / "build")
        self.port, self.http = free_port(), free_port()
        self.url, self.log = f"{scheme}://127.0.0.1:{self.http}", folder / "log"
        tokens = folder / "tokens"
        tokens.write_text(TOKEN)
        tokens.chmod(0o600)
        where = ("--listen", f"127.0.0.1:{self.port}", "--http", f"127.0.0.1:{self.http}")
        words = [*program, "controller", build, *where]
        words += ["--token-file", tokens, "--json", *options]
        with self.log.open("w") as log:
            self.process = begun(words, log, os.environ | {"PYTHONUNBUFFERED": "1"})

    def fetched(self, path, context=None, **headers):
        request = Request(self.url + path, headers=headers)  # noqa: S310
        with urlopen(request, timeout=20, context=context) as answer:  # noqa: S310
            return answer.read().decode()

    def answers(self, context=None):
        assert self.process.poll() is None, self.log.read_text()
        with suppress(URLError, ConnectionError):
            return self.fetched("/api/state", context)
        return ""

    def child(self):
        """The number of the process that serves HTTP; None while there is none."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        numbers = children.read_text().split()
        return int(numbers[0]) if numbers else None

    def said(self, kind):
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["event"] == kind]


@contextmanager
def running(folder, build, *options, **words):
    controller = Running(folder, build, *options, **words)
    try:
        yield controller
    finally:
        controller.process.kill()
        controller.process.wait()


@pytest.fixture(scope="module")
def served(build, tmp_path_factory):
    with running(tmp_path_factory.mktemp("served"), build, "--framework", "os-ken") as controller:
        until(controller.answers, "an answer", LIMIT)
        yield controller


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def test_why_a_short_body_is_refused_is_read_by_its_sender(served):
    body = bytes(500_000)
    head = b"POST /api/apply HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n"
    with connected(served.http) as client:
        client.sendall(head + body)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"required a token" in answer


def test_a_client_that_has_ended_its_side_gets_the_answer(served):
    """The change was carried out, and its sender heard nothing of that; or the connection was open
    for five more seconds."""
    head = f"POST /api/reconcile HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    request = head.encode() + b"Content-Length: 0\r\n\r\n"
    for times in (1, 2):
        with connected(served.http) as client:
            client.settimeout(4)  # less than uvicorn waits for a next request
            client.sendall(request * times)
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        assert answer.count(b"HTTP/1.1 202 ") == times


def test_a_client_that_ends_within_its_request_is_not_waited_for(served):
    with connected(served.http) as client:
        client.sendall(
            b"POST /api/reconcile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"
        )
        client.shutdown(socket.SHUT_WR)
        client.settimeout(8)  # without that it would be ended as idle after ten seconds
        assert client.recv(65536)[:12] in (b"", b"HTTP/1.1 401")


@pytest.mark.parametrize("path", ["/api/drain", "/api/apply"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_next_request_that_is_cut_off_is_not_waited_for(served, path, times):
    """Its connection stayed for ever, with its descriptor and the only place for builds."""
    head = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    whole = f"GET /api/build HTTP/1.1\r\n{head}\r\n".encode()
    cut = f"POST {path} HTTP/1.1\r\n{head}Content-Length: 500\r\n\r\n{{".encode()
    with connected(served.http) as client:
        client.settimeout(4)
        client.sendall(whole * times + cut)
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 200 ") == answer.count(b"HTTP/1.1 ") == times
    with connected(served.http) as client:
        client.sendall(f"POST /api/apply HTTP/1.1\r\n{head}Content-Length: 1\r\n\r\n{{".encode())
        assert client.recv(65536).startswith(b"HTTP/1.1 400 "), "the place for builds is free"


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""], ids=["whole", "without end"])
def test_a_head_of_100_kb_is_refused(served, end):
    """A whole one got 200; what has no end the server refuses by itself."""
    head = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 100_000
    with connected(served.http) as client:
        with suppress(OSError):  # the answer may come before all is sent
            client.sendall(head + end)
        assert client.recv(12) in (b"HTTP/1.1 431", b"HTTP/1.1 400")


BAD_CHUNK = "Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"


@pytest.mark.parametrize(
    "request_line",
    ["GET /api/state", "HEAD /api/state", "GET /nothing", "POST /api/drain", "POST /api/apply"],
)
def test_a_malformed_body_is_no_fault_of_ours(served, request_line):
    """Each was a traceback of 1.7 KB on standard error; where nobody read it, six of them took the
    API away."""
    token = f"Authorization: Bearer {TOKEN}\r\n"
    for _ in range(20):
        with connected(served.http) as client:
            client.sendall(f"{request_line} HTTP/1.1\r\n{token}{BAD_CHUNK}".encode())
            assert client.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert served.answers()
    assert "Traceback" not in served.log.read_text()
    assert "polarfab_http_errors_total 0.0" in served.fetched("/metrics")


def test_a_body_that_is_malformed_after_the_answer_began_ends_the_connection():
    """A second answer was tried, and the exception went to standard error."""
    begun = {"type": "http.response.start", "status": 200, "headers": []}
    part = {"type": "http.response.body", "body": b"x", "more_body": True}
    received = []

    async def site(_, receive, send):
        await send(begun)
        await send(part)
        received.append(await receive())
        await send(part)  # dropped: the connection is closing

    async def served_by(transport):
        config = http_process._server_config(site, None)
        protocol = config.http_protocol_class(config, ServerState(), {})
        protocol.connection_made(transport)
        protocol.data_received(b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: x\r\n\r\n")
        (task,) = protocol.tasks
        await asyncio.sleep(0)
        protocol.data_received(b"ZZ\r\n")
        await asyncio.wait_for(task, LIMIT)

    transport = Mock(**{"get_extra_info.side_effect": {"peername": ("192.0.2.1", 5)}.get})
    asyncio.run(served_by(transport))
    sent = b"".join(call.args[0] for call in transport.write.call_args_list)
    assert (sent.count(b"HTTP/1.1 "), received) == (1, [{"type": "http.disconnect"}])
    transport.close.assert_called_once()


def test_a_client_that_resets_at_once_has_an_address():
    """Its requests stood in the log of actions without one."""
    door = ClientListener(socket.create_server(("127.0.0.1", 0)).detach())
    client = connected(door.getsockname()[1])
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    host, port, accept = *client.getsockname(), door.accept

    def accept_and_lose():
        accepted = accept()
        client.close()
        return accepted

    async def served():
        scopes = asyncio.Queue()

        async def site(scope, *_):
            await scopes.put(scope)

        config, state = http_process._server_config(site, None), ServerState()
        made = partial(config.http_protocol_class, config, state, {})
        async with await asyncio.get_running_loop().create_server(made, sock=door):
            return await asyncio.wait_for(scopes.get(), LIMIT)

    door.accept = accept_and_lose
    assert asyncio.run(served())["client"] == (host, port)


def test_faults_go_to_the_controller_a_few_in_a_minute():
    """uvicorn wrote each to standard error."""
    now, notes = [0.0], []
    faults, log = Faults(notes.append, lambda: now[0]), logging.getLogger("a server of HTTP")
    log.addHandler(faults)
    log.propagate = False
    for _ in range(MOST_FAULTS + 3):
        try:
            raise KeyError("x")
        except KeyError as error:
            log.error("Exception in ASGI application\n", exc_info=error)
        log.warning("no error")
    assert len(notes) == MOST_FAULTS
    assert notes[0]["fault"] == "serving HTTP: Exception in ASGI application"
    assert "KeyError" in notes[0]["text"]
    now[0] = FAULT_PERIOD
    faults.tick()
    faults.tick()
    assert notes[-1]["text"] == "3 further faults in 60 s"
    assert sum(note["times"] for note in notes) == MOST_FAULTS + 3
    log.error("no room")
    assert notes[-1]["text"] == "serving HTTP: no room"


def test_its_death_is_told_and_it_is_started_again(served):
    first = served.child()
    os.kill(first, signal.SIGKILL)
    until(lambda: served.said("api-restarted"), "an event", LIMIT)
    assert served.said("api-restarted")[0]["reason"] == "signal 9"
    until(served.answers, "an answer", LIMIT)
    assert served.child() != first
    assert served.process.poll() is None
    until(
        lambda: "polarfab_http_restarts_total 1.0" in served.fetched("/metrics"), "a count", LIMIT
    )
    events = json.loads(served.fetched("/api/events"))
    assert [one["event"] for one in events].count("api-restarted") == 1, "the next one knows all"


@pytest.mark.parametrize(
    ("number", "framework"),
    [
        (signal.SIGTERM, "os-ken"),
        pytest.param(signal.SIGKILL, "ryu", marks=pytest.mark.live),
    ],
)
def test_it_ends_with_the_controller(build, tmp_path, number, framework):
    with running(tmp_path, build, "--framework", framework) as controller:
        until(controller.answers, "an answer", LIMIT)
        child = Path(f"/proc/{controller.child()}")
        controller.process.send_signal(number)
        controller.process.wait(LIMIT)
        until(lambda: not child.exists() or "Z" in (child / "stat").read_text(), "its end", 5.0)
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", controller.http))
        assert not controller.said("api-restarted")


def test_new_certificates_are_used_by_new_connections(build, tmp_path):
    authority, files = trustme.CA(), [tmp_path / name for name in ("key", "cert", "ca")]
    authority.cert_pem.write_to_path(files[2])

    def issue(end=None):
        issued = authority.issue_cert("127.0.0.1", not_after=end)
        issued.private_key_pem.write_to_path(files[0])
        issued.cert_chain_pems[0].write_to_path(files[1])

    def serial():
        with context.wrap_socket(connected(controller.http), server_hostname="127.0.0.1") as client:
            return client.getpeercert()["serialNumber"]

    expired = datetime.now(UTC) - timedelta(days=1)
    issue(expired)
    context = ssl.create_default_context(cafile=files[2])
    options = ("--tls-key", files[0], "--tls-cert", files[1], "--tls-ca", files[2])
    with running(tmp_path, build, *options, scheme="https") as controller:
        until(lambda: controller.said("certificates-faulty"), "that it has expired", LIMIT)
        issue()
        controller.process.send_signal(signal.SIGHUP)
        until(lambda: controller.answers(context), "an answer", LIMIT)
        first, child = serial(), controller.child()
        issue()
        controller.process.send_signal(signal.SIGHUP)  # `test_store_live` waits until it looks
        until(lambda: serial() != first, "the new certificate", LIMIT)
        assert controller.child() == child
        until(lambda: len(controller.said("certificates")) == 2, "an event", LIMIT)
        issue(expired)
        controller.process.send_signal(signal.SIGHUP)
        until(lambda: controller.said("certificates-kept"), "the one in use stays", LIMIT)
        os.kill(child, signal.SIGKILL)
        until(lambda: controller.answers(context), "it stays in the next process, too", LIMIT)
        assert controller.child() != child


IMPATIENT = """
from controller.management import http_supervisor
from polarfab import cli
http_supervisor.HANG_PATIENCE = 5.0
cli.main()
"""


def test_a_process_that_hangs_is_started_again(build, tmp_path):
    """Its clients waited for ever."""
    (script := tmp_path / "impatient.py").write_text(IMPATIENT)
    with running(tmp_path, build, program=(COPY, script)) as controller:
        until(controller.answers, "an answer", LIMIT)
        allowed = {"Authorization": f"Bearer {TOKEN}"}
        with suppress(URLError):  # refused by the controller: the process has asked it something
            urlopen(Request(f"{controller.url}/api/drain", b"{}", allowed), timeout=20)  # noqa: S310
        first = controller.child()
        os.kill(first, signal.SIGSTOP)
        until(lambda: controller.said("api-restarted"), "an event", LIMIT)
        until(controller.answers, "an answer", LIMIT)
        assert controller.child() != first


FAULTY = """
import os
from controller.watchdog import Watchdog
from polarfab import cli

read, write = os.pipe()  # nobody reads it, and it is full
os.set_blocking(write, False)
try:
    while True:
        os.write(write, bytes(4096))
except BlockingIOError:
    os.set_blocking(write, True)
os.dup2(write, 2)
end_round = Watchdog.end_round

def faulty(self):
    self.record_error("ending a round", ValueError(self.internal_errors))
    end_round(self)

Watchdog.end_round = faulty
cli.main()
"""


def test_tracebacks_hold_nobody_up_where_nobody_reads_them(build, tmp_path):
    """The loop that repairs stood still until the guard ended it."""
    (script := tmp_path / "faulty.py").write_text(FAULTY)
    with running(tmp_path, build, program=(COPY, script)) as controller:
        until(controller.answers, "an answer", LIMIT)
        until(lambda: len(controller.said("bug")) > 10, "rounds after errors", LIMIT)


def test_an_exception_in_an_answer_keeps_no_place():
    """Sixteen of them, and all later requests were refused."""
    frames, api = [], Mock()
    api.answer.side_effect = ValueError("no answer")
    api.changed_pages.return_value = {}
    process = HttpSupervisor(
        Mock(spawn=lambda work, *words: work(*words)), None, {}, lambda _: None
    )
    process._queue_frame = frames.append
    header = {"request": 7, "method": "POST", "path": "/api/drain", "query": {}, "needs": "read"}
    header["secret"] = TOKEN
    actor = {"name": "alice", "role": "operate", "address": "::1"}
    for one in ({**header, "actor": actor}, {**header, "actor": {}}):
        process._handle_frames(SimpleNamespace(recv=BytesIO(frame(one)).read), api)
    assert [b'"answer": 7, "status": 500' in data for data in frames] == [True, True]
    assert api.failed.call_count == 2


def test_after_a_request_others_wait_for_as_long_as_it_took(monkeypatch):
    """Sixteen were answered in a row, and switches waited for all of them."""
    now, slept, api = [0.0], [], Mock()
    api.changed_pages.return_value = {}

    def passes(seconds):
        now[0] += seconds

    def sleep(seconds):
        slept.append(round(seconds, 3))
        passes(seconds)

    def answer(*_):
        passes(0.02)
        return Answer(200, b"")

    api.answer = answer
    hub = Mock(spawn=lambda work, *words: work(*words), sleep=sleep)
    process = HttpSupervisor(hub, None, {}, lambda _: None, lambda: now[0])
    monkeypatch.setattr(process, "_make_changed_pages", lambda _: passes(0.01))
    actor = {"name": "alice", "role": "operate", "address": "::1"}
    header = {"request": 7, "path": "/api/build", "query": {}, "needs": "read", "actor": actor}
    header["secret"] = TOKEN
    for method in ("POST", "GET", "GET"):
        one = frame({**header, "method": method})
        process._handle_frames(SimpleNamespace(recv=BytesIO(one).read), api)
    assert slept == [0.03, 0.02], "only what changes something is told to readers at once"


def test_what_is_older_is_not_sent_last():
    """What readers get is made in slices: who changes something waits for what is being made."""
    made, hub, waiting = [], Mock(), []
    process = HttpSupervisor(hub, None, {}, lambda _: None)

    def changed_pages():
        number = len(made)
        made.append(number)
        if not number:  # while the first is made, somebody else comes
            other = Thread(target=process._make_changed_pages, args=(api,))
            waiting.append(other)
            hub.sleep = lambda _: slept.set()
            other.start()
            assert slept.wait(LIMIT)
            assert made == [0]
        return {"state": b"%d" % number}

    slept, api = Event(), Mock(changed_pages=changed_pages)
    process._make_changed_pages(api)
    waiting[0].join(LIMIT)
    assert (made, process._unsent_pages["state"]) == ([0, 1], b"1")
    api.report_bug.assert_not_called()


def test_repairs_do_not_wait_for_who_changes_something():
    """The loop that repairs large fabrics waited while sixteen clients told readers something."""
    hub, made = Mock(sleep=Mock(side_effect=AssertionError("it waits"))), []
    process = HttpSupervisor(hub, Mock(), {}, lambda _: None)

    def changed_pages():
        made.append(len(made))
        if len(made) == 1:  # while a client has it made
            process.tick(api, has_event=True)
            assert made == [0]
        return {}

    api = Mock(changed_pages=changed_pages, all_pages=dict)
    process._handle_frames = lambda *_: (
        process._make_changed_pages(api),
        process.tick(api, has_event=False),
    )
    process._run_session(Mock(), api)
    assert made == [0, 1], "what has happened meanwhile is told at the next tick"
    api.report_bug.assert_not_called()


def test_a_process_is_told_the_settings_first():
    """Certificates that were new while it was told everything came before: it ended at once."""
    sent, writers = [], []
    hub = Mock(spawn=lambda work, link: writers.append((work, link)))
    process = HttpSupervisor(hub, Mock(), {"tls": None}, lambda _: None)

    def all_pages():
        process.renew_certificates({})  # other work goes on
        for work, link in writers:
            work(link)
        return {"state": b"{}"}

    def sendall(data):
        sent.append(data)
        raise OSError("enough")

    process._handle_frames = lambda link, _: [work(link) for work, _ in writers]
    process._run_session(Mock(sendall=sendall), Mock(all_pages=all_pages))
    assert b'"settings"' in sent[0]
    assert sent[0].endswith(frame({"reload": True}))


def test_an_answer_is_not_given_to_the_next_process():
    """Its requests have the same numbers."""
    process = HttpSupervisor(Mock(), Mock(), {}, lambda _: None, lambda: 0.0)
    answer = Answer(202, b"of the last process")
    api = Mock(
        answer=lambda *_: answer, changed_pages=lambda: setattr(process, "_process", 2) or {}
    )
    actor = {"name": "alice", "role": "operate", "address": "::1"}
    words = {"method": "POST", "path": "/api/drain", "query": {}, "needs": "operate"}
    words["secret"] = TOKEN
    process._process = 1
    process._answer(api, {"request": 0, "actor": actor, **words}, b"{}")
    assert not process._frames


def test_a_process_that_cannot_be_told_anything_is_reaped(monkeypatch):
    """It stayed as a zombie for each try."""
    listener, api = socket.create_server(("127.0.0.1", 0)), Mock(metrics=Mock(http=Counter()))
    api.all_pages.side_effect = ValueError("nothing to say")
    ended = Mock(side_effect=KeyboardInterrupt)
    hub = Mock(sleep=lambda seconds: time.sleep(seconds) if seconds < 1 else ended())
    process = HttpSupervisor(hub, listener, {}, lambda _: None)
    monkeypatch.setattr(process, "_tell", ended)
    with listener, pytest.raises(KeyboardInterrupt):
        process.run(api)
    assert process._process.returncode is not None


def test_the_end_of_the_process_within_a_frame_is_no_bug():
    """It was one, with a traceback, where a killed process had sent a part of a request."""
    whole = frame({"fault": "x", "text": "y", "times": 1}, b"body")
    api, process = Mock(), HttpSupervisor(Mock(), None, {}, lambda _: None)
    for end in range(len(whole)):
        process._handle_frames(SimpleNamespace(recv=BytesIO(whole[:end]).read), api)
    api.failed.assert_not_called()
    process._handle_frames(SimpleNamespace(recv=BytesIO(whole).read), api)
    api.failed.assert_called_once()


def test_sixteen_requests_wait_for_the_controller():
    """The seventeenth is refused at once."""

    async def asked():
        ours, theirs = socket.socketpair()
        with theirs:
            controller = ControllerLink(*await asyncio.open_connection(sock=ours))
            waiting = [asyncio.create_task(controller.ask({}, b"")) for _ in range(MOST_WAITING)]
            await asyncio.sleep(0)
            with pytest.raises(Refusal) as refusal:
                await controller.ask({}, b"")
            for task in waiting:
                task.cancel()
            return refusal.value.answer.status

    assert MOST_WAITING == 16
    assert asyncio.run(asked()) == 503


def test_who_keeps_the_server_waiting_is_cut_off(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        door = ClientListener(os.dup(listener.fileno()))
        clients = [connected(listener.getsockname()[1]) for _ in range(3)]
        accepted = [door.accept() for _ in clients]
        slow, working, ended = (address for _, address in accepted)
        door.stop_waiting_for(working)
        accepted[2][0].close()
        monkeypatch.setattr(http_process, "CLIENT_PATIENCE", -1.0)
        door.end_slow()
        assert clients[0].recv(1) == b"", slow
        clients[1].settimeout(0.05)
        with pytest.raises(TimeoutError):
            clients[1].recv(1)
        door.start_waiting_for(ended)  # what is gone is not waited for
        for sock in (door, *clients, *(sock for sock, _ in accepted)):
            sock.close()


def test_hosts_with_a_token_keep_their_connections(monkeypatch):
    """Strangers of many addresses kept the client away that was to confirm a trial."""
    monkeypatch.setattr(http_process, "MOST_IDLE", 2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        door, port = ClientListener(os.dup(listener.fileno())), listener.getsockname()[1]
        door.trust("127.0.0.1")
        clients, accepted = [], []
        for number in (1, 2, 3, 4):
            source = (f"127.0.0.{number}", 0)
            clients.append(socket.create_connection(("127.0.0.1", port), 20, source))
            accepted.append(door.accept()[0])
        assert [client.recv(1) for client in clients[1:3]] == [b"", b""]
        clients[0].settimeout(0.05)
        with pytest.raises(TimeoutError):
            clients[0].recv(1)
        for sock in (door, *clients, *accepted):
            sock.close()


def test_idle_connections_give_way(monkeypatch):
    monkeypatch.setattr(http_process, "MOST_IDLE", 2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        door = ClientListener(os.dup(listener.fileno()))
        clients, accepted = [], []
        for _ in range(3):
            clients.append(connected(listener.getsockname()[1]))
            accepted.append(door.accept()[0])
        assert clients[0].recv(1) == b""
        for sock in (door, *clients, *accepted):
            sock.close()


def accepted_in_turn(door):
    """The connections that asyncio accepts until other work goes on."""
    accepted = []
    with suppress(BlockingIOError):
        while True:
            accepted.append(door.accept()[0])
    return accepted


def test_a_flood_of_connections_leaves_time_for_other_work():
    """asyncio accepted 2,048 in a row: for 12 s the process heard nothing from the controller, and
    said of it that it was not alive."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        door = ClientListener(os.dup(listener.fileno()))
        door.setblocking(False)
        clients = [connected(listener.getsockname()[1]) for _ in range(40)]
        turns = [accepted_in_turn(door) for _ in range(3)]
        assert [len(turn) for turn in turns] == [16, 16, 8]
        for sock in (door, *clients, *turns[0], *turns[1], *turns[2]):
            sock.close()


def test_clients_that_are_gone_are_not_accepted():
    """With TLS each took buffers of half a megabyte: in 14 s one client filled 900 MB."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        door = ClientListener(os.dup(listener.fileno()))
        door.setblocking(False)
        port = listener.getsockname()[1]
        gone, reset, hello, waiting, sender = (connected(port) for _ in range(5))
        gone.close()
        hello.sendall(b"hello")
        for sock in (reset, hello):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        sender.sendall(b"GET ")
        accepted = accepted_in_turn(door)
        ends = {sock.getpeername() for sock in accepted}
        assert ends == {waiting.getsockname(), sender.getsockname()}
        for sock in (door, waiting, sender, *accepted):
            sock.close()


def test_what_switches_say_is_read_without_tls():
    """The modules of a conversation with a switch know nothing of TLS."""
    code = "import sys, controller.switches.conversation; print('ssl' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
