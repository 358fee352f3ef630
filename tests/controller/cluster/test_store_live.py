"""The client of etcd against etcd."""

from __future__ import annotations

import signal
import socket
from collections import deque
from time import time

import pytest
import trustme

from controller.cluster import store
from controller.cluster.store import Etcd, Unavailable
from controller.settings import Tls
from tests.controller.cluster import makers
from tests.controller.makers import own_network
from tests.controller.rollout.makers import MINIMAL, compiled
from tests.waiting import until

pytestmark = pytest.mark.live
NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def etcd(tmp_path, monkeypatch):
    """Start etcd, once or anew without its data; ends with the test. It may be slow to answer."""
    monkeypatch.setattr(store, "STORE_PATIENCE", 30.0)
    started = []

    def start(name="one", *options, **how):
        for one in started:
            one.kill()
        (tmp_path / name).mkdir()
        started.append(makers.Etcd(tmp_path / name, None, *options, **how))
        return started[-1].url

    with own_network():
        yield start
        for one in started:
            one.kill()


def test_leases_claims_and_what_only_a_leader_may_put(etcd):
    url = etcd()
    one, other = Etcd([NOBODY, url], "polarfab/lab"), Etcd([url], "polarfab/lab")
    elsewhere = Etcd([url], "polarfab/yard")
    (first, ttl), (second, _) = one.grant(5), other.grant(5)
    assert ttl == 5
    mine = one.claim(first, "a")
    assert (mine.leader, mine.is_ours) == ("a", True)
    assert one.claim(first, "a") == mine, "once more is the same term"
    theirs = other.claim(second, "b")
    assert (theirs.leader, theirs.term, theirs.is_ours) == ("a", mine.term, False)
    assert one.renew(first) == 5
    assert elsewhere.claim(elsewhere.grant(5)[0], "c").is_ours, "another fabric"

    assert one.put("builds/x/1", b"\0\xff", mine.term)
    assert one.put("builds/y/1", b"y", mine.term)
    assert other.get("builds/x/1") == b"\0\xff"
    assert other.keys("builds/x") == ["builds/x/1"]
    one.revoke(first)
    assert one.renew(first) == 0
    assert not one.put("builds/z/1", b"late", mine.term)
    assert not one.delete("builds/", mine.term)
    late = other.claim(second, "b")
    assert late.is_ours
    assert late.term > mine.term
    assert other.delete("builds/x/", late.term)
    assert other.keys("builds/") == ["builds/y/1"]
    assert other.get("builds/x/1") is None


def test_terms_grow_when_a_store_is_made_anew(etcd):
    url = etcd()
    first = Etcd([url], "p")
    before = first.claim(first.grant(5)[0], "a").term
    until(lambda: time() >= int(first.get("epoch")) + 1, "a second has passed")
    anew = Etcd([etcd("two")], "p")
    claimed = anew.claim(anew.grant(5)[0], "a")
    assert claimed.term > before
    assert claimed.term & 0xFFFFFFFF <= before & 0xFFFFFFFF


def test_a_leader_of_a_full_store_leads_on(etcd):
    """It could not renew its claim, and restarted after 4 s; then nobody could lead."""
    one = Etcd([etcd("full", "--quota-backend-bytes", "1048576")], "p")
    lease, _ = one.grant(5)
    mine = one.claim(lease, "a")
    with pytest.raises(Unavailable, match="space exceeded"):
        deque(one.put(f"builds/{number}", bytes(300_000), mine.term) for number in range(9))
    assert one.renew(lease) == 5
    assert one.claim(lease, "a") == mine


def test_a_store_that_is_not_there_or_is_something_else():
    with own_network(), socket.create_server(("127.0.0.1", 0)) as silent:
        for url in (NOBODY, f"http://127.0.0.1:{silent.getsockname()[1]}"):
            with pytest.raises(Unavailable, match=url):
                Etcd([url], "p").get("record")


def test_tls_with_certificates_of_both(etcd, certificates):
    c = certificates
    options = ("--cert-file", c["ours"], "--key-file", c["ours-key"], "--client-cert-auth")
    url = etcd("tls", *options, "--trusted-ca-file", c["authority"], scheme="https")
    good = Tls(c["switch-key"], c["switch"], c["authority"])
    assert Etcd([url], "p", good.client_context).get("record") is None
    bad = Tls(c["stranger-key"], c["stranger"], c["authority"])
    with pytest.raises(Unavailable):
        Etcd([url], "p", bad.client_context).get("record")


def issued(authority, folder):
    """What etcd and controllers show and trust, by this authority from now on; etcd's options."""
    one = authority.issue_cert("127.0.0.1", "controller.example")
    pems = (one.private_key_pem, one.cert_chain_pems[0], authority.cert_pem)
    files = tuple(folder / name for name in ("key.pem", "cert.pem", "ca.pem"))
    for pem, file in zip(pems, files, strict=True):
        pem.write_to_path(folder / "new")
        (folder / "new").rename(file)
    key, certificate, trusted = files
    ours = ("--tls-key", key, "--tls-cert", certificate, "--tls-ca", trusted)
    theirs = ("--key-file", key, "--cert-file", certificate, "--trusted-ca-file", trusted)
    return ours, (*theirs, "--client-cert-auth")


def test_controllers_reach_the_store_with_their_new_certificates(tmp_path):
    """With those of their start, none led any more once these had expired, and both said so twice
    a second. Here etcd refuses them, as it trusts the new authority alone.
    """
    ours, theirs = issued(trustme.CA(), tmp_path)
    works, running = "the store: answers\n", []
    with own_network():
        try:
            etcd = makers.Etcd(tmp_path, None, *theirs, scheme="https")
            running.append(etcd)
            build = compiled(tmp_path, MINIMAL)
            for name in ("a", "b"):
                running.append(makers.Instance(name, tmp_path, build, etcd, *ours))
                running[-1].says("a leads")
            _, a, b = running
            issued(trustme.CA(), tmp_path)
            a.process.send_signal(signal.SIGHUP)
            for one in (a, b):  # b finds the new files by itself
                one.says("new certificates are in use")
            etcd.kill()
            for one in (a, b):
                one.says(f"the store: {etcd.url}")
            etcd.start(*etcd.command)
            for one in (a, b):
                one.says(works)
            until(lambda: a.leads() or b.leads(), "one leads")
            assert "Traceback" not in a.text() + b.text()
        finally:
            for one in running:
                one.kill()
