"""The management API where nobody said anything of it: where its clients look, and read only."""

import json
import os
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller import API
from polarfab.fabric import Fabric
from tests.controller.makers import called, free_port, own_network
from tests.polarfab.forked import command_line
from tests.waiting import until

LIMIT = 90.0


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("default-api") / "build"
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}
    Fabric.from_spec(spec).save(folder).verify()
    return folder


@contextmanager
def running(build, *options):
    """A controller, and a function that waits for an event of a kind."""
    words = ("controller", build, "--framework", "os-ken", "--json", *options)
    where = ("--listen", f"127.0.0.1:{free_port()}")
    end, out = os.pipe()
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = command_line().start(*words, *where, out=out, err=2, environment=environment)
    os.close(out)
    said = open(end)  # noqa: PTH123, SIM115

    def event(kind):
        for line in said:
            if (found := json.loads(line))["event"] == kind:
                return found
        raise AssertionError(f"the controller ended without {kind}: {process.wait()}")

    try:
        yield process, event
    finally:
        process.kill()
        process.wait()
        said.close()


def test_a_usual_address_in_use_is_said_and_the_controller_runs(build):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        host, port = API.split(":")
        try:
            taken.bind((host, int(port)))
            taken.listen()
        except OSError:
            pass  # somebody else's: in use all the same
        with running(build) as (process, event):
            closed = event("api-closed")
            assert (closed["address"], "in use" in closed["reason"]) == (API, True)
            assert process.poll() is None


def test_a_second_controller_of_the_folder_does_not_start(build):
    """Both started, and each wrote the journal of the other."""
    lock = build.with_name(f".{build.name}.lock")
    with running(build, "--http", "none") as (process, _):
        until(lambda: lock.exists() and lock.read_text() == f"{process.pid}\n", "a lock", LIMIT)
        where = ("--listen", f"127.0.0.1:{free_port()}")
        code, out, err = command_line()("controller", build, *where)
        assert (code, out) == (2, "")
        assert f"one that process {process.pid} uses" in err
        assert len(err.splitlines()) == 1
        assert process.poll() is None


def test_an_address_that_was_named_has_to_be_free(build):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "{}:{}".format(*taken.getsockname())
        words = ("controller", build, "--framework", "os-ken", "--http", address)
        code, _, err = command_line()(*words)
    assert (code, "--http" in err) == (2, True)
    assert len(err.splitlines()) == 1


def inside(build):
    """In a network namespace of its own: what the clients of the usual address are answered."""
    with running(build) as (_, event):
        opened = event("api")
        seen = {"url": opened["url"], "access": opened["access"]}
        # The process of the API has to be told the state first.
        until(lambda: called("status").returncode != 2, "the state", LIMIT)
        for verb, *more in (("status",), ("apply", build)):
            done = called(verb, *more)
            seen[verb] = [done.returncode, done.stdout + done.stderr]
    until(lambda: not _answers(), "the end of the process that served the API", LIMIT)
    with running(build, "--http", "none") as (process, _):
        until(lambda: _listens(process.pid), "a controller that listens", LIMIT)
        seen["off"] = _answers()
    return seen


def _listens(pid):
    """Whether the process has a listening socket."""
    table = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[3] == "0A" for line in table)


def _answers():
    host, port = API.split(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


@pytest.mark.live
def test_clients_find_it_and_may_read(build):
    with own_network():
        seen = inside(build)
    assert seen["url"] == f"http://{API}"
    assert seen["access"] == "to read only, without --token-file"
    code, text = seen["status"]
    assert (code, "0 of 7" in text or "7 switches" in text) == (1, True), text
    code, text = seen["apply"]
    assert (code, "--token-file" in text) == (2, True), text
    assert seen["off"] is False


def test_tokens_that_others_can_read_are_refused_before_anything_is_said(build, tmp_path):
    """It said that it listens, and then refused."""
    tokens = tmp_path / "tokens"
    tokens.write_text("0123456789abcdef\n")
    tokens.chmod(0o644)
    where = ("--listen", "127.0.0.1:7999")
    code, out, err = command_line()("controller", build, *where, "--token-file", tokens)
    assert (code, out) == (2, "")
    assert "chmod 600" in err
