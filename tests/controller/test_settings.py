"""Settings of a controller: addresses, TLS files, and what is refused."""

from dataclasses import replace

import pytest
import trustme
from cryptography.hazmat.primitives import serialization as form

from controller.settings import Address, Settings, StoreGroup, Tls
from inventory.problems import InputError


def test_addresses():
    assert Address.parse("127.0.0.1:6653", "--listen") == Address("127.0.0.1", 6653, "--listen")
    assert str(Address.parse("[::1]:6653", "--listen")) == "[::1]:6653"


@pytest.mark.parametrize("text", ["", "6653", ":6653", "host:", "host:x", "h:0", "h:65536", "h:٣"])
def test_bad_addresses(text):
    with pytest.raises(InputError, match="--http: required HOST:PORT"):
        Address.parse(text, "--http")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_loopback_may_be_plain_text(host):
    Settings(Address(host, 6653, "--listen")).check()


@pytest.mark.parametrize("host", ["::", "10.0.0.1", "192.0.2.1", "controller.example"])
def test_plain_text_beyond_loopback_must_be_asked_for(host):
    listen = Address(host, 6653, "--listen")
    with pytest.raises(InputError, match="--listen: required an address of loopback, or TLS"):
        Settings(listen).check()
    Settings(listen, insecure=True).check()


@pytest.fixture
def tls(tmp_path):
    """Files of a server, by name."""
    authority = trustme.CA()
    ours = authority.issue_cert("controller.example")
    files = {name: tmp_path / f"{name}.pem" for name in ("key", "certificate", "authority")}
    ours.private_key_pem.write_to_path(files["key"])
    ours.cert_chain_pems[0].write_to_path(files["certificate"])
    authority.cert_pem.write_to_path(files["authority"])
    return files


def test_tls_files_that_fit(tls):
    assert Tls.of(*tls.values()).context()
    assert Tls.of(None, None, None) is None


def test_a_part_of_the_tls_files_is_refused(tls):
    with pytest.raises(InputError) as error:
        Tls.of(tls["key"], None, None)
    assert [problem.key for problem in error.value.problems] == ["tls_cert", "tls_ca"]


def test_revocation_lists_without_the_files_of_tls_are_refused(tmp_path):
    with pytest.raises(InputError, match="tls_key: required all three"):
        Tls.of(None, None, None, tmp_path / "crl.pem")


def test_tls_files_that_cannot_be_used_are_all_named(tls, tmp_path):
    other = trustme.CA().issue_cert("else.example")
    other.private_key_pem.write_to_path(tls["key"])
    (tmp_path / "authority.pem").write_text("no certificate")
    with pytest.raises(InputError) as error:
        Tls(**tls).context()
    assert [problem.key for problem in error.value.problems] == [
        "tls_cert, tls_key",
        "tls_ca",
    ]
    assert "KEY_VALUES_MISMATCH" in str(error.value)


def test_a_key_with_a_password_is_refused_without_asking_for_it(tls):
    key = form.load_pem_private_key(tls["key"].read_bytes(), None)
    locked = form.BestAvailableEncryption(b"secret")
    tls["key"].write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, locked))
    with pytest.raises(InputError, match="the key without a password"):
        Tls(**tls).context()


def test_a_missing_file_is_named(tls, tmp_path):
    with pytest.raises(InputError, match="No such file"):
        Tls(tls["key"], tls["certificate"], tmp_path / "nothing.pem").context()


@pytest.mark.parametrize(
    ("urls", "good"),
    [
        ("http://127.0.0.1:2379,http://[::1]:2379", True),
        ("http://localhost:2379", True),
        ("https://etcd1:2379", True),
        ("https://etcd1:2379,http://etcd2:2379", False),
        ("http://192.0.2.1:2379", False),
    ],
)
def test_a_store_beyond_loopback_needs_https_or_to_be_asked_for(urls, good):
    settings = Settings(Address("127.0.0.1", 6653, "--listen"), group=StoreGroup.parse(urls, "one"))
    replace(settings, insecure=True).check()
    if good:
        settings.check()
    else:
        with pytest.raises(InputError, match="store: required https") as refused:
            settings.check()
        assert str(refused.value).count("store: ") == 1
