"""The controller as users run it, with real Open vSwitch: the 13 switches of ER_3, no hosts."""

import json
import os
import signal
import socket
import ssl
import struct
from pathlib import Path

import pytest
from cryptography import x509

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from tests.controller.makers import (
    BRIDGES,
    COPY,
    OTHERS_TRY_RYU,
    STRANGER,
    SWITCHES,
    connect,
    has_program,
    leave,
    polarfab,
    rows,
)
from tests.controller.switches.test_tls_files import revocation_list
from tests.polarfab.forked import command_line
from tests.waiting import until

pytestmark = pytest.mark.live


HELLO = struct.pack("!BBHI", 4, 0, 8, 1)
HOSTILE = {
    "garbage": os.urandom(4096),
    "text": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "version": struct.pack("!BBHI", 77, 0, 8, 1),
    "length": struct.pack("!BBHI", 4, 0, 3, 1),
    "old": struct.pack("!BBHI", 1, 0, 8, 1),
    "type": HELLO + struct.pack("!BBHI", 4, 200, 8, 1),
    "features": HELLO + struct.pack("!BBHI", 4, 6, 9, 1) + b"x",
    "impostor": HELLO + struct.pack("!BBHIQ", 4, 6, 32, 1, 5) + os.urandom(3000),
    "nothing": b"",
}
SPOILED = {
    "ryu": ("group", "group mod failed: bad type (group "),
    "os-ken": ("flow", "bad action: bad type ("),
}


def test_the_fabric_is_programmed(switches, builds, controller):
    status = controller.wait_for(SWITCHES, "complete", "unknown")
    assert status["build"] == load(builds[0]).identity
    assert status["errors"] == {}
    assert status["unknown"] == [f"{STRANGER:016x}"]
    assert all(has_program(switches, v, builds[0]) for v in range(SWITCHES))
    assert rows(switches, "x") == []
    controller.says(f"datapath id {STRANGER:016x} is not in this build")
    controller.says("13/13 programmed in")


def test_a_switch_that_returns_is_programmed_again(switches, builds, controller):
    controller.wait_for(SWITCHES, "complete")
    leave(switches, "s7")
    controller.wait_for(SWITCHES - 1)
    controller.says("switch 7 left")
    switches.ofctl("del-flows", "s7")
    switches.ofctl("del-groups", "s7")
    connect(switches, controller.port, "s7")
    assert controller.wait_for(SWITCHES, "complete")["errors"] == {}
    assert has_program(switches, 7, builds[0])


@pytest.mark.parametrize("framework", ["os-ken"], scope="module")
def test_two_switches_with_one_datapath_id_are_told(switches, controller):
    connect(switches, controller.port, *BRIDGES)
    controller.wait_for(SWITCHES, "complete")
    try:
        switches.vsctl("set", "bridge", "x", "other-config:datapath-id=0000000000000003")
        controller.says("switch 2 connected twice under one datapath id, from 127.0.0.1:")
        errors = controller.wait_for(SWITCHES, "complete", "errors")["errors"]
        assert list(errors) == ["2"]
        assert rows(switches, "x") == []
    finally:
        switches.vsctl("set", "bridge", "x", f"other-config:datapath-id={STRANGER:016x}")
    until(lambda: not controller.status()["errors"], "the duplicate has left")
    assert controller.wait_for(SWITCHES, "complete")["errors"] == {}
    leave(switches, "x")
    switches.ofctl("del-flows", "x")


def test_hostile_peers_cost_only_their_connection(switches, controller):
    controller.wait_for(SWITCHES, "complete")
    for data in HOSTILE.values():
        with socket.create_connection(("127.0.0.1", controller.port), timeout=5) as peer:
            peer.sendall(data)
    controller.says("a peer on 127.0.0.1 did not identify itself as an OpenFlow 1.3 switch")
    leave(switches, "s2")
    controller.wait_for(SWITCHES - 1)
    connect(switches, controller.port, "s2")
    controller.wait_for(SWITCHES, "complete")


def test_a_refused_program_leaves_the_old_one(switches, builds, controller, framework, run):
    connect(switches, controller.port, *BRIDGES)
    controller.wait_for(SWITCHES, "complete")
    before = rows(switches, "s4")

    script, what = Path(__file__).with_name("spoiled.py"), SPOILED[framework]
    bad = run(
        lambda port, status_file: [
            *(COPY, script, builds[1], framework, port, status_file, 4, what[0])
        ]
    )
    status = bad.wait_for(SWITCHES - 1, "errors")
    assert list(status["errors"]) == ["4"]
    assert status["errors"]["4"].startswith(what[1])
    assert not status["complete"]
    assert rows(switches, "s4") == before
    assert has_program(switches, 4, builds[0])
    assert all(has_program(switches, v, builds[1]) for v in range(SWITCHES) if v != 4)
    bad.says("switch 4 refused its program and keeps what it had")
    assert bad.log.read_text().count("refused") == 1
    bad.stop(signal.SIGINT)


def test_unverified_and_json(tmp_path, run):
    spec, build = {"name": "new", "topology": {"family": "polarfly", "q": 3}}, tmp_path / "build"
    save(compile_fabric(load_fabric(spec)), build)
    code, out, err = command_line()("controller", build)
    assert (code, out) == (2, "")
    assert "polarfab verify" in err

    allowed = run(polarfab(build, "ryu", "--unverified", "--json"))
    allowed.wait_for(SWITCHES, "complete")
    allowed.says('"complete"')
    allowed.stop()
    warning, *lines = allowed.log.read_text().splitlines()
    assert "unverified" in warning
    events = [json.loads(line) for line in lines]
    assert (events[-1]["event"], events[-1]["node"]) == ("ended", "SIGTERM")
    programmed = {event["node"] for event in events if event["event"] == "programmed"}
    assert programmed == {str(v) for v in range(SWITCHES)}


def handshake(port, files, who):
    """Try to be a switch with these files, or (None) without a certificate."""
    context = ssl.create_default_context(cafile=files["authority"])
    context.check_hostname = False
    if who:
        context.load_cert_chain(files[who], files[f"{who}-key"])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain) as secure,
    ):
        return secure.recv(8)


@OTHERS_TRY_RYU
def test_tls_with_certificates_of_switches(switches, builds, framework, certificates, run):
    """Only who has a certificate comes in, only as a node that it names, until it is revoked."""
    revoked = certificates["authority"].with_name("crl.pem")
    revoked.write_bytes(revocation_list(certificates["signer"], []))
    files = ("--tls-key", certificates["ours-key"], "--tls-cert", certificates["ours"])
    files += ("--tls-ca", certificates["authority"], "--tls-crl", revoked)
    secure = run(polarfab(builds[0], framework, *files, "--tls-names", "{node}.lab.example"))
    assert handshake(secure.port, certificates, "switch")[0] == 4  # a hello of OpenFlow 1.3
    for who in (None, "stranger"):
        with pytest.raises(ssl.SSLError):
            handshake(secure.port, certificates, who)
    failed = "a peer on 127.0.0.1 failed the TLS handshake: its certificate is refused: "
    secure.says(f"{failed}unable to get local issuer certificate")
    keys = (certificates["switch-key"], certificates["switch"], certificates["authority"])
    switches.vsctl("set-ssl", *map(str, keys))
    try:
        connect(switches, secure.port, *BRIDGES, how="ssl")
        secure.wait_for(SWITCHES - 1)
        secure.says("it has the datapath id of switch 12 and a certificate that names 0, 1, 10")
        leave(switches, "s3")
        secure.wait_for(SWITCHES - 2)
        serial = x509.load_pem_x509_certificate(certificates["switch"].read_bytes()).serial_number
        revoked.write_bytes(revocation_list(certificates["signer"], [serial]))
        secure.wait_for(0)
        secure.says("a peer on 127.0.0.1 is turned away: its certificate was revoked")
    finally:
        leave(switches, *BRIDGES)
        switches.vsctl("del-ssl")
    secure.stop()
