"""What clients of the API do to a controller and its fabric: the 13 switches of ER_3 on real Open
vSwitch, and packets between all of them that the test counts itself.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from benchmarks.echo_probe import EchoProbe
from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.controller import makers
from tests.controller.makers import SWITCHES, Running, compile_into, own_network, polarfab
from tests.controller.upkeep.probe import Probe
from tests.outages import outage
from tests.waiting import until

pytestmark = pytest.mark.live
OPERATE = "0123456789abcdef"
READ = b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n"
PIPELINED = 60_000
PATIENCE, MOST_SLOWER = 60.0, 4


class Site:
    """A fabric whose controller has an API, and who asks it."""

    def __init__(self, running, probe, folder, port):
        self.running, self.probe, self.folder, self.port = running, probe, folder, port
        self.fabric = probe.fabric
        self.links = ((v, far) for v, _, far, _ in self.fabric.build.wiring.each_cable())
        """One is cut once: one that flaps is put aside, so that no repair follows."""

    def post(self, path, data, token=OPERATE, host="localhost"):
        """The status and the text of an answer."""
        headers = {"Authorization": f"Bearer {token}", "Host": host}
        request = Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        try:
            with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def connected(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def repaired_in(self):
        """Seconds until a cut link is said to be repaired; afterwards it is mended."""
        build, log = self.fabric.build, self.running.log
        before = log.read_text().count(" in place after ")
        self.fabric.apply_outage(outage(build, [next(self.links)]))
        began = monotonic()
        until(lambda: log.read_text().count(" in place after ") > before, "a repair")
        seconds = monotonic() - began
        self.fabric.apply_outage(outage(build))
        until(lambda: log.read_text().count(" in place after ") > before + 1, "the link is used")
        return seconds

    def echoes(self):
        """A peer that asks the controller for echo replies."""
        return EchoProbe(("127.0.0.1", self.running.port), PATIENCE)

    def limits(self):
        """The most seconds of an echo reply and of a repair while clients do what they may: on a
        machine with other work, so many times what they take just before without clients.
        """
        with self.echoes() as probe:
            repair = self.repaired_in()
            until(lambda: probe.answers > 10, "echo replies without clients")
        print(f"without clients: echo {probe.slowest:.3f} s, repair {repair:.3f} s")
        return max(1.0, MOST_SLOWER * probe.slowest), max(3.0, MOST_SLOWER * repair)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    work = tmp_path_factory.mktemp("attacked")
    (work / "fabric.yaml").write_text("name: attacked\ntopology: {family: polarfly, q: 3}\n")
    folder = compile_into(work / "build", work / "fabric.yaml", quick=True)
    (tokens := work / "tokens").write_text(f"olga operate {OPERATE}\n")
    tokens.chmod(0o600)
    port = next(makers.PORTS)
    api = ("--http", f"127.0.0.1:{port}", "--token-file", tokens)
    with own_network(), PrivateOvs(tmp_path_factory.mktemp("ovs")) as ovs:
        probe = Probe(ovs, load(folder))
        running = Running(ovs, work, polarfab(folder, "os-ken", *api), bridges=())
        try:
            makers.connect(ovs, running.port, *(f"s{v}" for v in range(SWITCHES)))
            running.wait_for(SWITCHES, "complete")
            yield Site(running, probe, folder, port)
            assert probe.lost() == set()
            assert " left" not in running.log.read_text(), "no switch was disconnected"
            assert len(running.status()["programmed"]) == SWITCHES
            running.stop()
        finally:
            running.process.kill()
            running.process.wait()


@pytest.fixture
def limits(site):
    """Those without clients."""
    return site.limits()


@pytest.fixture
def flooded(site):
    """A client without a token that asks for the state 60,000 times at once, over and over, and
    reads slowly.
    """
    with site.connected() as client:
        client.settimeout(None)

        def send():
            with suppress(OSError):
                while True:
                    client.sendall(READ * PIPELINED)

        def receive():
            with suppress(OSError):
                while client.recv(1 << 16):
                    pass

        threads = [Thread(target=work, daemon=True) for work in (send, receive)]
        for thread in threads:
            thread.start()
        yield threads
        client.shutdown(socket.SHUT_RDWR)


def test_a_repair_takes_no_longer_while_a_client_asks_60000_times(site, limits, flooded):
    """It was held 13 s, and all switches were disconnected. Without a token."""
    echo, repair = limits
    with site.echoes() as probe:
        seconds = site.repaired_in()
        until(lambda: probe.answers > 15, "fifteen echo replies")
    assert any(thread.is_alive() for thread in flooded), "it still asks"
    assert probe.slowest < echo
    assert seconds < repair


@pytest.mark.parametrize("token", ["", f"Authorization: Bearer {OPERATE}\r\n"], ids=["none", "one"])
def test_a_body_without_end_is_not_read(site, token):
    """18.9 GB of one were read in 8 s."""
    head = "POST /api/apply HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n"
    taken, block = 0, bytes(1 << 20)
    with site.connected() as client, suppress(ConnectionError):
        client.sendall(f"{head}{token}\r\n".encode())
        while taken < 64 << 20:
            taken += client.send(block)
    assert taken < 64 << 20


def test_a_repair_waits_for_no_readers_of_the_build(site, limits):
    """Sixteen clients with a token to read held an echo .4 s: each had it packed in the loop."""
    fetched = []

    def fetch(done):
        headers = {"Authorization": f"Bearer {OPERATE}"}
        request = Request(f"http://127.0.0.1:{site.port}/api/build", headers=headers)
        while not done.is_set():
            with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
                fetched.append(len(answer.read()))

    done = Event()
    clients = [Thread(target=fetch, args=(done,), daemon=True) for _ in range(16)]
    for client in clients:
        client.start()
    try:
        with site.echoes() as probe:
            seconds = site.repaired_in()
            until(lambda: probe.answers > 20 and len(fetched) > 16, "replies to both")
    finally:
        done.set()
        for client in clients:
            client.join()
    echo, repair = limits
    assert len({*fetched}) == 1
    assert sorted(probe.waits)[len(probe.waits) // 2] < echo / 10
    assert seconds < repair


LONG, FORGED = "x" * 60_000, "3\n2026-11-28T00:00:00Z mallory apply \x1b[2J\0"
NAMES = [LONG, FORGED, "\0", "\ud800", "0-0-" * 15_000, ["3"], 7, None]


def test_names_that_nothing_can_hold_are_refused_in_words(site, limits):
    """Some were no answer at all, one held the loop .8 s, and lines of the log were forged."""
    lines = len(site.running.log.read_text().splitlines())
    with site.echoes() as probe:
        for name in NAMES:
            for path, key in (("drain", "what"), ("undrain", "what"), ("reconcile", "node")):
                if (name, key) == (None, "node"):
                    continue
                status, text = site.post(f"/api/{path}", json.dumps({key: name}).encode())
                assert 400 <= status < 500, (path, str(name)[:20], text)
                assert json.loads(text)["error"]
        until(lambda: probe.answers > 10, "ten echo replies")
    echo, _ = limits
    assert probe.slowest < echo / 2
    told = site.running.log.read_text()
    assert "mallory" not in told
    assert len(told.splitlines()) < lines + 10


def test_100_long_names_wash_no_action_away(site):
    """600 did in 7 s, with the role `operate`."""
    assert site.post("/api/reconcile", b'{"node": "7"}')[0] == 202
    actions = site.folder.with_name(".build.actions")
    before = actions.read_text()
    assert '"reconcile"' in before
    data = json.dumps({"what": "x" * 65_000}).encode()
    for _ in range(100):
        assert site.post("/api/drain", data)[0] in (400, 413, 429)
    assert actions.read_text().startswith(before)
    assert len([*site.folder.parent.glob(".build.actions*")]) == 1
    assert actions.stat().st_size < 1 << 20


UPGRADE = b"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
NO_REQUESTS = b"\x16\x03\x01\r\n\r\n", UPGRADE, bytes(99)


def test_a_page_of_another_name_and_what_is_no_request_get_nothing(site):
    """DNS rebinding read all; each malformed request was a line of the log."""
    status, text = site.post("/api/state", None, host="evil.example")
    assert (status, "switches" in text) == (421, False)
    lines = len(site.running.log.read_text().splitlines())
    for data in NO_REQUESTS:
        for _ in range(20):
            with site.connected() as client, suppress(OSError):
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                while client.recv(4096):
                    pass
    now = site.running.log.read_text().splitlines()
    assert len(now) < lines + len(NO_REQUESTS), "others may say something meanwhile"
