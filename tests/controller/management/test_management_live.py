"""The management API of a real controller over real switches: status, TLS, hostile clients."""

import json
import random
import socket
import subprocess
from contextlib import suppress

import pytest

from controller.management.client import Client
from inventory.problems import InputError
from tests.controller.makers import (
    BRIDGES,
    OTHERS_TRY_RYU,
    POLARFAB,
    SWITCHES,
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
    return controller


def status(*options):
    command = [POLARFAB, "status", f"http://127.0.0.1:{HTTP}", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


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
    """The command, a change by hand put right by the API, 200 bad requests."""
    good = status("--json")
    assert (good.returncode, json.loads(good.stdout)["in_sync"]) == (0, SWITCHES)
    assert "13 of 13 switches in sync" in status().stderr

    leave(switches, "s7")
    managed.wait_for(SWITCHES - 1)
    bad = status()
    assert (bad.returncode, "absent" in bad.stdout) == (1, True)
    connect(switches, managed.port, "s7")
    managed.wait_for(SWITCHES, "complete")

    api = Client.to(f"http://127.0.0.1:{HTTP}", "URL", tokens)
    before, program = api.get("drift")["differences"]["added"], rows(switches, "s5")
    switches.ofctl("del-flows", "s5", "table=0")
    assert api.post("reconcile", {"node": "5"}) == {"switches": 1}
    until(lambda: api.get("drift")["differences"]["added"] > before)
    until(lambda: rows(switches, "s5") == program, "the program again")

    for seed in range(200):
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


def test_over_https(builds, certificates, run, switches):
    """The same files serve switches and the API; a client needs the authority, no certificate."""
    files = ("--tls-key", certificates["ours-key"], "--tls-cert", certificates["ours"])
    authority = certificates["authority"]
    options = (*files, "--tls-ca", authority, "--http", f"127.0.0.1:{HTTP}")
    controller = run(polarfab(builds[0], "ryu", *options))
    url = f"https://127.0.0.1:{HTTP}"
    assert Client.to(url, "URL", authority=authority).get("health")["switches"] == SWITCHES
    with pytest.raises(InputError, match="CERTIFICATE_VERIFY_FAILED"):
        Client.to(url, "URL").get("health")
    leave(switches, *BRIDGES)
    controller.stop()


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
