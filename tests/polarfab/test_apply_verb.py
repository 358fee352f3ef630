"""The verb apply, as users call it, with a controller that only answers."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from polarfab.controller_client import Client
from polarfab.fabric import Fabric
from tests.polarfab.conftest import Run

MOVED = {"state": "done", "from": "old", "to": "new", "rounds": 1, "until": None}


@pytest.mark.parametrize("words", [["build"], ["--undo"]])
def test_it_says_which_switches_a_move_waits_for(
    polarfab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """It was silent for 30 s, and failed then."""
    monkeypatch.chdir(tmp_path)
    Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 2}}).save("build")
    states = dict.fromkeys(map(str, range(9)), "absent") | {"3": "in sync", "9": "refused"}
    answer: dict[str, Any] = {
        "role": "leader",
        "switches": [{"name": name, "state": state} for name, state in states.items()],
    }
    monkeypatch.setattr(Client, "get", lambda *_: answer)
    monkeypatch.setattr(Client, "post", lambda *_: MOVED)
    code, _, err = polarfab("apply", *words)
    waits, moved = err.splitlines()
    assert code == 0
    assert waits == (
        "the controller waits 30 s at most for switches that are not connected: "
        "0, 1, 2, 4, 5, 6 and 2 more"
    )
    assert moved == "moved from build old to new in 1 round"
    for unlike in ({"switches": []}, {"role": "follower"}):
        answer |= unlike
        assert "waits" not in polarfab("apply", *words)[2]


def test_status_says_what_becomes_of_a_build_on_trial(
    polarfab: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said `it goes`."""
    answer: dict[str, Any] = {
        "name": "lab",
        "build": "new",
        "caveat": "",
        "proved": "delivery",
        "role": "leader",
        "complete": True,
        "in_sync": 7,
        "build_age": 1.0,
        "age": 9.0,
        "oldest_audit": None,
        "trial_until": 3600.0,
        "switches": [],
        "links": [],
        "dead_links": 0,
        "shadowed": 0,
    }
    monkeypatch.setattr(Client, "get", lambda *_: answer)
    code, _, printed = polarfab("status")
    assert code == 0
    assert "unless polarfab apply --confirm comes before " in printed
    assert "the fabric goes back" in printed
    assert "chang" not in printed
    answer["repairing"] = True
    assert "the tables are being changed" in polarfab("status")[2]
    answer["change_waits_for"] = "n3, n4"
    waits = "a change of tables waits for switches that are away or not read yet: n3, n4"
    assert waits in polarfab("status")[2]


class Controller(BaseHTTPRequestHandler):
    """Answers any request with an empty object."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


class Refusing(BaseHTTPRequestHandler):
    """Accepts no token."""

    def do_GET(self) -> None:
        self.send_error(401)


@pytest.mark.parametrize(("has_token", "given"), [(False, "none"), (True, "one that it does not")])
def test_the_message_names_the_option_of_a_token(
    polarfab: Run, tmp_path: Path, has_token: bool, given: str
) -> None:
    """It named the option --to, whose value was right."""
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text("0123456789abcdef\n")
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        answering = Thread(target=server.handle_request, daemon=True)
        answering.start()
        words = ["--token-file", tokens] if has_token else []
        url = f"http://127.0.0.1:{server.server_port}"
        code, _, err = polarfab("status", "--to", url, *words)
        answering.join()
    assert code == 2
    assert (
        f"error: --token-file: required a file that begins with a token that the "
        f"controller accepts, given {given}"
    ) in err


def test_no_proxy_is_sent_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """With http_proxy in the environment a proxy got it, and the request for a loopback address."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with HTTPServer(("127.0.0.1", 0), Controller) as server:
        answering = Thread(target=server.handle_request, daemon=True)
        answering.start()
        client = Client(f"http://127.0.0.1:{server.server_port}", "--to", "0123456789abcdef")
        assert client.post("reconcile", b"") == {}
        answering.join()
