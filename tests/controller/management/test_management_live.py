"""The management API of a real controller over switches: status, TLS, hostile and slow clients."""

import json
import random
import re
import resource
import socket
import subprocess
from contextlib import ExitStack, suppress
from time import monotonic
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from inventory.problems import InputError
from polarfab.controller_client import Client
from tests.controller.makers import (
    BRIDGES,
    OTHERS_TRY_RYU,
    SWITCHES,
    called,
    connect,
    leave,
    polarfab,
    rows,
)
from tests.waiting import until

pytestmark = pytest.mark.live
TOKEN = "0123456789abcdef"  # noqa: S105
HTTP = 17680


@pytest.fixture
def tokens(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(TOKEN)
    file.chmod(0o600)
    return file


@pytest.fixture
def managed(builds, framework, tokens, run, switches):
    """A controller with its API, all switches in sync."""
    options = ("--http", f"127.0.0.1:{HTTP}", "--token-file", tokens)
    controller = run(polarfab(builds[0], framework, *options))
    connect(switches, controller.port, *BRIDGES)
    controller.wait_for(SWITCHES, "complete")
    until(lambda: status().returncode == 0, "all switches in what the API tells")
    return controller


def status(*options):
    return called("status", "--to", f"http://127.0.0.1:{HTTP}", *options)


def hostile(seed):
    """Bytes that are no request, or nearly one."""
    chance = random.Random(seed)  # noqa: S311
    request = bytearray(b"POST /api/reconcile HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{}")
    for _ in range(chance.randint(0, 8)):
        request[chance.randrange(len(request))] = chance.randrange(256)
    kinds = [bytes(request), chance.randbytes(300), b"GET /" + b"a" * 9000, b"\x16\x03\x01" * 40]
    chunked = b"POST /api/reconcile HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    return chance.choice([*kinds, chunked])


@OTHERS_TRY_RYU
def test_status_follows_the_fabric_and_hostile_clients_change_nothing(managed, switches, tokens):
    """The command, a change by hand put right by the API, 60 bad requests."""
    good = status("--json")
    assert (good.returncode, json.loads(good.stdout)["in_sync"]) == (0, SWITCHES)
    assert "13 of 13 switches in sync" in status().stderr

    leave(switches, "s7")
    bad = until(lambda: (answer := status()).returncode and answer, "a switch that is absent")
    assert (bad.returncode, "absent" in bad.stdout) == (1, True)
    connect(switches, managed.port, "s7")
    until(lambda: status().returncode == 0, "all switches again")

    api = Client.to(f"http://127.0.0.1:{HTTP}", "URL", tokens)
    before, program = api.get("state")["differences"]["added"], rows(switches, "s5")
    switches.ofctl("del-flows", "s5", "table=0")
    assert api.post("reconcile", {"node": "5"}) == {"switches": 1}
    until(lambda: api.get("state")["differences"]["added"] > before)
    until(lambda: rows(switches, "s5") == program, "the program again")

    for seed in range(60):
        with (
            socket.create_connection(("127.0.0.1", HTTP), timeout=5) as client,
            suppress(OSError),
        ):
            client.sendall(hostile(seed))
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass
    assert status().returncode == 0
    managed.stop()


ODD = {"v0": ["type", "veth", "peer", "name", "v1"]}
ODD["x0"] = ["type", "vxlan", "id", "5", "dstport", "4789"]
ODD["x0"] += ["remote", "192.0.2.9", "local", "192.0.2.1"]
"""A port whose far end takes no large packets, so that they are dropped, and a tunnel to where no
route leads, so that each is an error."""
LARGE = "02" * 12 + "0800" + "00" * 1000


def fetched(path, token=""):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = Request(f"http://127.0.0.1:{HTTP}{path}", headers=headers)
    try:
        with urlopen(request, timeout=10) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_errors_and_drops_of_ports_are_read_with_a_token(builds, tokens, run, switches):
    """Those of a port of Open vSwitch, by switch and port; without a token only health is told."""
    for name, words in ODD.items():
        subprocess.run(["ip", "link", "add", name, *words], check=True)
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    subprocess.run(["ip", "link", "set", "v1", "up", "mtu", "500"], check=True)
    ports = [("v0", 41), ("x0", 42)]
    for name, number in ports:
        request = f"ofport_request={number}"
        switches.vsctl("add-port", "s3", name, "--", "set", "interface", name, request)
        output = f"in_port=controller packet={LARGE} actions=output:{number}"
        for _ in range(3):
            switches.ofctl("packet-out", "s3", output)
    options = ("--http", f"127.0.0.1:{HTTP}", "--token-file", tokens, "--token-to-read")
    controller = run(polarfab(builds[0], "ryu", *options))
    controller.wait_for(SWITCHES, "complete")

    def counted(what, port):
        code, text = fetched("/metrics", TOKEN)
        assert code in (200, 503), text  # the process that answers may still begin
        series = rf'^polarfab_port_{what}_total{{port="[^"]*{port}",switch="3"}} (\S+)$'
        return [float(value) for value in re.findall(series, text, re.MULTILINE)]

    def all_counted():
        odd = counted("drops", 41) >= [3.0] and counted("errors", 42) >= [3.0]
        return odd and counted("errors", 41) == [0.0] == counted("errors", 1)

    try:
        until(all_counted, "the ports of switch 3")
        for path in ("/metrics", "/api/state", "/api/events"):
            assert fetched(path)[0] == 401 == fetched(path, "fedcba9876543210")[0]
        until(lambda: fetched("/api/health")[0] == 200, "health of all switches in sync")
        assert "a token that the controller accepts" in status().stderr
        until(lambda: status("--token-file", tokens).returncode == 0, "all switches in sync")
    finally:
        switches.vsctl("del-port", "s3", "v0", "--", "del-port", "s3", "x0")
        subprocess.run(["ip", "link", "del", "v0"], check=True)
        subprocess.run(["ip", "link", "del", "x0"], check=True)
    controller.stop()


def test_over_https(builds, certificates, run, switches):
    """The same files serve switches and the API; a client needs the authority, no certificate."""
    files = ("--tls-key", certificates["ours-key"], "--tls-cert", certificates["ours"])
    authority = certificates["authority"]
    options = (*files, "--tls-ca", authority, "--http", f"127.0.0.1:{HTTP}")
    controller = run(polarfab(builds[0], "ryu", *options))
    url = f"https://127.0.0.1:{HTTP}"
    secure = Client.to(url, "URL", authority=authority)

    def answers():
        with suppress(InputError):  # the process of the API may still begin
            return secure.get("health")

    assert until(answers, "an answer")["switches"] == SWITCHES
    with pytest.raises(InputError, match="CERTIFICATE_VERIFY_FAILED"):
        Client.to(url, "URL").get("health")
    leave(switches, *BRIDGES)
    controller.stop()


def health():
    """What the API says, and the seconds that this took."""
    began = monotonic()
    with urlopen(f"http://127.0.0.1:{HTTP}/api/health", timeout=20) as answer:
        return json.load(answer), monotonic() - began


def healthy():
    """The same, once the process that answers knows that the fabric is complete."""
    with suppress(HTTPError):
        return health()


def idle(stack, port, count, first=b""):
    """Connections that say this, and then nothing."""
    for _ in range(count):
        peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        peer.sendall(first)


@pytest.mark.long
@pytest.mark.parametrize("used", ["ryu", "os-ken"])
def test_idle_connections_stop_nothing(switches, builds, run, used):
    """More than it may open files: switches come and go, health answers, the log is short."""
    command, count = polarfab(builds[0], used, "--http", f"127.0.0.1:{HTTP}"), 10_000
    crowded = run(lambda *where: ["prlimit", "--nofile=1024:1024", *command(*where)])
    crowded.wait_for(SWITCHES, "complete")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        idle(stack, crowded.port, count)
        leave(switches, "s7")
        crowded.wait_for(SWITCHES - 1)
        connect(switches, crowded.port, "s7")
        crowded.wait_for(SWITCHES, "complete")
        found, seconds = until(healthy, "news of a fabric that is complete")
        assert (found["in_sync"], found["alive"], found["bugs"]) == (SWITCHES, True, 0)
        assert seconds < 5
        assert found["rejected_peers"] >= count - 1024
    crowded.says("did not identify itself as an OpenFlow 1.3 switch: too many connections")
    assert len(crowded.log.read_text().splitlines()) < 30
    crowded.stop()


def test_slow_http_clients_do_not_stall_health(builds, run):
    slow = run(polarfab(builds[0], "ryu", "--http", f"127.0.0.1:{HTTP}"))
    slow.wait_for(SWITCHES, "complete")
    until(healthy, "news of a fabric that is complete")
    with ExitStack() as stack:
        idle(stack, HTTP, 300, b"GET /api/health HTTP/1.1\r\nHost: ")
        assert health()[1] < 5
        idle(stack, HTTP, 100, b"POST /api/apply HTTP/1.1\r\nContent-Length: 90\r\n\r\n{")
        assert health()[1] < 5
    slow.stop()


def test_status_without_a_controller_is_one_message():
    done = status()
    assert (done.returncode, done.stdout) == (2, "")
    assert "required a controller that answers" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.browser
def test_the_page_follows_the_fabric(switches, browser, builds, run):
    """Cells of all switches in their racks; one that leaves turns grey; events; no complaints."""
    controller = run(polarfab(builds[0], "ryu", "--http", f"127.0.0.1:{HTTP}"))
    connect(switches, controller.port, *BRIDGES)
    controller.wait_for(SWITCHES, "complete")
    browser.get(f"http://127.0.0.1:{HTTP}/")

    def said(where, member="innerText"):  # in one step: the page is drawn anew each second
        script = f"return [...document.querySelectorAll(arguments[0])].map(one => one.{member})"
        return browser.execute_script(script, where)

    def cells(state):
        return said(state, "title")

    until(lambda: len(cells(".rack button.in-sync")) == SWITCHES)
    until(lambda: said("#in_sync") == ["13 of 13"])
    assert said("#proved") == ["proved: delivery, identities"]
    assert len(said(".rack")) == 4

    leave(switches, "s7")
    until(lambda: cells(".rack button.absent") == ["7, absent"])
    browser.execute_script("document.querySelector('.rack button.absent').click()")
    until(lambda: said("#chosen h2") == ["Switch 7"])
    until(lambda: "switch 7 left" in said("#log")[0])
    assert "dead link" not in " ".join(cells(".rack button"))

    controller.stop()
    until(lambda: "no answer from the controller" in said("#answer")[0])
    before = [line for line in browser.get_log("browser") if "ERR_CONNECTION" not in str(line)]
    assert [line for line in before if line["level"] == "SEVERE"] == []
