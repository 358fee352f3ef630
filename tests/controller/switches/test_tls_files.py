"""Names in certificates, revocation lists, and files that change while the controller runs."""

import base64
import datetime
import errno
import os
import re
import ssl
import subprocess
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from time import monotonic, time

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from controller.settings import Tls
from controller.switches.connections import tls_faults, tls_files
from controller.switches.connections.tls_files import (
    TlsFiles,
    handshake_fault,
    names,
    revocation_lists,
)
from controller.upkeep.background import at_once, in_thread
from inventory.problems import InputError
from tests.waiting import until


def revocation_list(authority, serials, days=1, age=0):
    """A list of an authority of trustme, in PEM, that is good for so many days from now.

    age: how many days ago it was made, beside the one before its end.
    """
    key = serialization.load_pem_private_key(authority.private_key_pem.bytes(), None)
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes()).subject
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateRevocationListBuilder().issuer_name(issuer)
    end = now + datetime.timedelta(days=days)
    made = made.last_update(min(now, end) - datetime.timedelta(days=1 + age)).next_update(end)
    for serial in serials:
        one = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
        made = made.add_revoked_certificate(one.build())
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def tls(tmp_path, authority):
    issued = authority.issue_cert("controller.example")
    (tmp_path / "key.pem").write_bytes(issued.private_key_pem.bytes())
    (tmp_path / "cert.pem").write_bytes(issued.cert_chain_pems[0].bytes())
    (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes())
    (tmp_path / "crl.pem").write_bytes(revocation_list(authority, []))
    files = (tmp_path / name for name in ("key.pem", "cert.pem", "ca.pem", "crl.pem"))
    return Tls(*files, names="{node}.lab.example")


CN = ((("countryName", "CH"),), (("commonName", "leaf-1 id:4f2a"),))


@pytest.mark.parametrize(
    ("certificate", "named"),
    [
        ({"subject": CN}, {"leaf-1"}),
        ({"subject": CN, "subjectAltName": (("IP Address", "192.0.2.1"),)}, {"leaf-1"}),
        ({"subject": CN, "subjectAltName": (("DNS", "a"), ("DNS", "b id:7"))}, {"a", "b"}),
        ({}, set()),
    ],
)
def test_a_certificate_names_by_dns_names_or_else_by_its_common_name(certificate, named):
    assert names(certificate) == named


def test_nodes_follow_the_pattern(tls):
    dns = ("leaf-1.lab.example", ".lab.example", "leaf-2.other.example", "leaf-3")
    dns += ("leaf-4\n2026-11-30 link 0-1 is dead.lab.example", "l" * 255 + ".lab.example")
    certificate = {"subjectAltName": tuple(("DNS", name) for name in dns)}
    assert TlsFiles(tls).nodes(certificate) == {"leaf-1"}


@pytest.mark.parametrize("pattern", ["", "node", "{node}{node}"])
def test_a_pattern_has_the_node_once(pattern):
    with pytest.raises(InputError, match=r"a name with \{node\} in it once"):
        Tls.of(None, None, None, None, pattern)


@pytest.mark.parametrize("serials", [[], [1], [127, 128, 1 << 150], range(1, 400)])
def test_revoked_serials_are_those_of_the_list(tls, authority, serials):
    tls.revoked.write_bytes(revocation_list(authority, serials) * 2)
    found = [one.serial_number for crl in revocation_lists(tls.revoked) for one in crl]
    assert found == 2 * list(serials)


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_list_that_is_cut_off_is_one_message(tls, authority, cut):
    text = revocation_list(authority, [5, 6]).decode().splitlines()
    body = "".join(text[1:-1])[:-cut]
    tls.revoked.write_text("\n".join([text[0], body[: len(body) // 4 * 4], text[-1]]))
    with pytest.raises(InputError, match="tls_crl"):
        TlsFiles(tls)


def test_a_list_of_an_unknown_version_is_one_message(tls, authority):
    """It was said to be a bug of ours."""
    text = b"".join(revocation_list(authority, [5]).splitlines()[1:-1])
    der = base64.b64decode(text).replace(b"\x02\x01\x01", b"\x02\x01\x05", 1)
    lines = (b"-----BEGIN X509 CRL-----", base64.b64encode(der), b"-----END X509 CRL-----")
    tls.revoked.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match="tls_crl"):
        revocation_lists(tls.revoked)


def test_a_list_brings_no_authority_and_an_authority_is_no_list(tls, authority):
    """OpenSSL takes what is in either file: whoever wrote the list could let anybody in."""
    stranger, crl = trustme.CA().cert_pem.bytes(), revocation_list(authority, [5])
    tls.revoked.write_bytes(crl + stranger)
    with pytest.raises(InputError, match="revocation lists in PEM, and nothing else"):
        TlsFiles(tls)
    tls.revoked.write_bytes(crl)
    tls.authority.write_bytes(crl)
    with pytest.raises(InputError, match="no certificate of an authority"):
        TlsFiles(tls)


def test_ends_are_those_of_the_certificate_the_authorities_and_the_list(tls, authority):
    """An authority that ends takes all switches with it, and nothing said that it would.

    So does an intermediate authority in the file of our certificate."""
    other, intermediate = trustme.CA(), trustme.CA(parent_cert=authority)
    now = datetime.datetime.now(datetime.UTC)
    issued = intermediate.issue_cert("controller.example", not_after=now.replace(year=9000))
    tls.key.write_bytes(issued.private_key_pem.bytes())
    tls.certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    tls.authority.write_bytes(authority.cert_pem.bytes() + other.cert_pem.bytes())
    pems = (issued.cert_chain_pems[1].bytes(), authority.cert_pem.bytes(), other.cert_pem.bytes())
    ends = [x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp() for pem in pems]
    expires = TlsFiles(tls).expires
    assert (expires["certificate"], expires["authority"]) == (ends[0], min(ends[1:]))
    assert {*expires} == {"certificate", "authority", "revocation list"}


def test_an_authority_in_a_form_that_only_openssl_reads_is_taken(tls):
    """It is no reason to refuse a start, and when it ends is known all the same."""
    expires = TlsFiles(tls).expires
    as_trusted(tls, None)
    assert TlsFiles(tls).expires == expires


def test_a_comment_may_have_the_first_line_of_a_certificate(tls):
    """OpenSSL passes over it."""
    for file in (tls.authority, tls.certificate):
        file.write_bytes(b"# -----BEGIN CERTIFICATE----- comes next\n" + file.read_bytes())
    assert TlsFiles(tls).new_faults(time()) == []


def touch(file, data):
    """Write a file so that its time differs, however coarse the file system's clock is."""
    before = file.stat().st_mtime_ns
    file.write_bytes(data)
    os.utime(file, ns=(before + 10**9, before + 10**9))


OTHER = trustme.CA(organization_name="another authority")
"""Its certificates may have the serial numbers of other authorities: ovs-pki counts from 1."""


def issuer_of(authority):
    """The issuer in a certificate of an authority, as `SSLSocket.getpeercert` has it."""
    name = x509.load_pem_x509_certificate(authority.cert_pem.bytes()).subject
    return tuple(((part.oid.dotted_string, part.value),) for part in name)


def looked(files, now=False):
    """Whether a look finds new files."""
    files.look(at_once, now)
    return files.has_new()


def test_a_disk_that_hangs_holds_up_nobody_but_the_reader(tls, authority, monkeypatch):
    """The loop of the controller stood until the guard ended it."""
    files = TlsFiles(tls)
    tls.revoked.unlink()
    os.mkfifo(tls.revoked)
    looked(files)
    files.look(in_thread)
    assert not files.has_new()
    with monkeypatch.context() as patch:
        patch.setattr(tls_files, "LONGEST_LOOK", -1.0)
        with pytest.raises(OSError, match="does not answer"):
            files.has_new()
        assert not files.has_new(), "it is told once"
    with tls.revoked.open("wb"):  # waits until it is being read
        pass
    tls.revoked.unlink()
    tls.revoked.write_bytes(revocation_list(authority, []))
    files.look(in_thread, now=True)
    until(files.has_new)


def test_files_are_read_again_once_they_rest(tls, authority):
    files = TlsFiles(tls)
    before = files.switches
    assert not looked(files)
    touch(tls.revoked, revocation_list(authority, [77]))
    assert not looked(files), "it may still be written"
    assert looked(files)
    assert files.switches is not before
    peers = {of: {"issuer": issuer_of(of), "serialNumber": "4D"} for of in (authority, OTHER)}
    assert [files.has_revoked(peer, time()) for peer in peers.values()] == [True, False]
    assert not files.has_revoked({**peers[authority], "serialNumber": "4E"}, time())
    assert not looked(files)
    assert looked(files, now=True)


@pytest.mark.parametrize("trusted", [False, True])
def test_bad_files_leave_those_before(tls, trusted):
    """OpenSSL takes the form of `openssl x509 -trustout`: every look ended in an internal error."""
    files = TlsFiles(tls)
    before, good = files.switches, tls.certificate.read_bytes()
    contents = files.contents
    assert contents["certificate"] == good
    bad = good.replace(b"BEGIN CERT", b"BEGIN TRUSTED CERT").replace(
        b"END CERT", b"END TRUSTED CERT"
    )
    touch(tls.certificate, bad if trusted else b"no certificate")
    looked(files)
    with pytest.raises(InputError, match="tls_cert"):
        looked(files)
    assert not looked(files), "it is told once"
    assert (files.switches, files.contents) == (before, contents)
    touch(tls.certificate, good + b"\n")
    looked(files)
    assert looked(files)
    assert files.contents == {**contents, "certificate": good + b"\n"}


@pytest.mark.parametrize("field", ["key", "certificate", "authority"])
def test_a_missing_file_is_refused_at_the_start(tls, field):
    """It was read before it was checked: an error of the system, without the option's name."""
    getattr(tls, field).unlink()
    with pytest.raises(InputError, match="tls_"):
        TlsFiles(tls)


def test_files_that_change_while_they_are_read_leave_those_before(tls, monkeypatch):
    """The HTTP process got another certificate than was checked with the key."""
    files, good, context = TlsFiles(tls), tls.certificate.read_bytes(), Tls.context

    def slow(self, **options):
        made = context(self, **options)
        touch(tls.certificate, good + b"\n")
        return made

    with monkeypatch.context() as patch:
        patch.setattr(Tls, "context", slow)
        with pytest.raises(InputError, match="files that change"):
            looked(files, now=True)
    assert files.contents["certificate"] == good
    looked(files)
    assert looked(files)
    assert files.contents["certificate"] == good + b"\n"


def test_good_files_that_could_not_be_read_once_are_read_later(tls, monkeypatch):
    """Renewed certificates were never used where they could not be read at that moment."""
    files, before = TlsFiles(tls), tls.certificate.read_bytes()

    def busy(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Tls, "context", busy)
        touch(tls.certificate, before + b"\n")
        looked(files)
        with pytest.raises(OSError, match="Too many"):
            looked(files)
        assert not looked(files), "it is told once"
    assert looked(files)
    assert not looked(files)


YESTERDAY = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
TOMORROW = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)


def issue(tls, authority, start=None, end=None):
    """Put a certificate that is valid from and until these times into our files."""
    issued = authority.issue_cert("controller.example", not_before=start, not_after=end)
    tls.key.write_bytes(issued.private_key_pem.bytes())
    tls.certificate.write_bytes(issued.cert_chain_pems[0].bytes())


def turned(pem):
    """A file in PEM with a bit of the last byte turned, which belongs to the signature."""
    first, *lines, last = pem.splitlines()
    der = base64.b64decode(b"".join(lines))
    return b"\n".join((first, base64.b64encode(der[:-1] + bytes([der[-1] ^ 1])), last))


def replaced(file, old, new):
    """Replace bytes in the DER of a file in PEM."""
    first, *lines, last = file.read_bytes().splitlines()
    der = base64.b64decode(b"".join(lines))
    assert der.count(old) == 1
    file.write_bytes(b"\n".join((first, base64.b64encode(der.replace(old, new)), last)))


def spoil_key(tls, _):
    """Turn a bit in the key of the authority, which is a point that leaves its curve."""
    key = x509.load_pem_x509_certificate(tls.authority.read_bytes()).public_key()
    encoding, form = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    point = key.public_bytes(encoding, form)
    replaced(tls.authority, point, point[:-1] + bytes([point[-1] ^ 1]))


def as_trusted(tls, _):
    """Write the authority as `openssl x509 -trustout` does."""
    text = tls.authority.read_text()
    tls.authority.write_text(text.replace(" CERTIFICATE", " TRUSTED CERTIFICATE"))


WORSE = {
    "expired": (
        lambda tls, of: issue(tls, of, end=YESTERDAY),
        "tls_cert: required a certificate that is valid now, given one that expired on",
    ),
    "not valid yet": (
        lambda tls, of: issue(tls, of, start=TOMORROW),
        "tls_cert: required a certificate that is valid now, given one that is not valid before",
    ),
    "damaged": (
        lambda tls, _: tls.certificate.write_bytes(turned(tls.certificate.read_bytes())),
        "tls_cert: required a certificate as its authority has signed it",
    ),
    "damaged authority": (
        lambda tls, _: tls.authority.write_bytes(turned(tls.authority.read_bytes())),
        "tls_ca: required a certificate as its authority has signed it",
    ),
    "damaged key of an authority": (
        spoil_key,
        "with a signature of its own that cannot be checked",
    ),
    "authority of an unknown version": (
        lambda tls, _: replaced(tls.authority, b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x05"),
        "tls_ca: required a certificate that begins with BEGIN CERTIFICATE",
    ),
    "authority in a form that only OpenSSL reads": (
        as_trusted,
        "tls_ca: required a certificate that begins with BEGIN CERTIFICATE",
    ),
    "expired list": (
        lambda tls, of: tls.revoked.write_bytes(revocation_list(of, [], days=-1)),
        "which signs for switches, given one that expired on",
    ),
    "list of another authority": (
        lambda tls, _: tls.revoked.write_bytes(revocation_list(OTHER, [])),
        "which signs for switches, given lists of another authority",
    ),
    "damaged list": (
        lambda tls, _: tls.revoked.write_bytes(turned(tls.revoked.read_bytes())),
        "which signs for switches, given other signatures",
    ),
}
"""How files become worse, and what is said of them."""


@pytest.mark.parametrize("fault", WORSE)
def test_files_that_are_worse_than_those_in_use_are_refused(tls, authority, fault):
    """They were taken, and one heard of it only when the next switch was refused."""
    files, (spoil, said) = TlsFiles(tls), WORSE[fault]
    assert files.new_faults(time()) == []
    before, contents = files.switches, files.contents
    good = {file: file.read_bytes() for file in (tls.key, tls.certificate, tls.authority)}
    good[tls.revoked] = tls.revoked.read_bytes()
    spoil(tls, authority)
    with pytest.raises(InputError, match=said):
        looked(files, now=True)
    assert (files.switches, files.contents, files.new_faults(time())) == (before, contents, [])
    for file, content in good.items():
        file.write_bytes(content)
    assert looked(files, now=True)


@pytest.mark.parametrize("fault", WORSE)
def test_what_is_wrong_with_files_at_the_start_is_said(tls, authority, fault):
    """A controller ran without a word, and no switch could connect."""
    spoil, said = WORSE[fault]
    spoil(tls, authority)
    files = TlsFiles(tls)
    (problem,) = files.new_faults(time())
    assert said in str(problem)
    assert files.new_faults(time()) == [], "it is said once"
    assert looked(files, now=True), "no worse than those in use"


def test_authorities_without_their_root_are_worse(tls, authority):
    """OpenSSL refuses each certificate then; a bit that turns in a root's name has this effect."""
    files, good = TlsFiles(replace(tls, revoked=None)), tls.authority.read_bytes()
    middle = trustme.CA(parent_cert=authority)
    shown = middle.issue_cert("3.lab.example")
    tls.authority.write_bytes(middle.cert_pem.bytes() + good)
    assert looked(files, now=True)
    assert "subject" in handshake(files, authority, shown)
    tls.authority.write_bytes(middle.cert_pem.bytes())
    with pytest.raises(InputError, match="tls_ca: required an authority that has signed itself"):
        looked(files, now=True)
    refused = TlsFiles(files.tls)
    assert [problem.key for problem in refused.new_faults(time())] == ["tls_ca"]
    assert "unable to get issuer certificate" in handshake(refused, authority, shown)


def use(*kinds):
    """What a certificate is for, by names of `ExtendedKeyUsageOID`."""
    return x509.ExtendedKeyUsage([getattr(ExtendedKeyUsageOID, kind) for kind in kinds])


def key_use(*kinds):
    """What its key is for."""
    names = "digital_signature content_commitment key_encipherment data_encipherment key_agreement"
    names += " key_cert_sign crl_sign encipher_only decipher_only"
    return x509.KeyUsage(**{name: name in kinds for name in names.split()})


AUTHORITY = x509.BasicConstraints(True, None)
NO_AUTHORITY = x509.BasicConstraints(False, None)
ELSEWHERE = x509.NameConstraints([x509.DNSName("example.org")], None)


def signed(subject, key, issuer, signer, days=9, extensions=(AUTHORITY,)):
    """A certificate in PEM, without key identifiers.

    days: how many days from now it ends; it began ten before that.
    """
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    named = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in (subject, issuer)]
    made = x509.CertificateBuilder().subject_name(named[0]).issuer_name(named[1])
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    made = made.not_valid_before(end - datetime.timedelta(days=10)).not_valid_after(end)
    for extension in extensions:
        made = made.add_extension(extension, critical=True)
    return made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def put_key(tls, key):
    """Put a key into our files."""
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    tls.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))


def by(issuer, node="3"):
    """The certificate of a node, as `SSLSocket.getpeercert` has it, by an authority."""
    names = (("DNS", f"{node}.lab.example"),)
    return {"issuer": ((("commonName", issuer),),), "subjectAltName": names}


KEY, MIDDLE, ROOT, SECOND = (ec.generate_private_key(ec.SECP256R1()) for _ in range(4))
"""The keys of the controller, of an intermediate authority, and of two roots."""


def own(*extensions, by="root", signer=ROOT):
    return signed("controller", KEY, by, signer, extensions=extensions)


def middle(*extensions, by="root", signer=ROOT):
    return signed("middle", MIDDLE, by, signer, extensions=extensions)


def root(*extensions):
    return signed("root", ROOT, "root", ROOT, extensions=extensions)


SECOND_ROOT = signed("second", SECOND, "second", SECOND)
BY_MIDDLE = own(by="middle", signer=MIDDLE)
PURPOSE, NO_AUTHORITY_SAID = "unsuitable certificate purpose", "invalid CA certificate"
USELESS = {
    "for clients": ({"certificate": own(use("CLIENT_AUTH"))}, PURPOSE),
    "for code": ({"certificate": own(use("CODE_SIGNING"))}, PURPOSE),
    "for lists": ({"certificate": own(key_use("crl_sign"))}, PURPOSE),
    "by no authority": ({"certificate": BY_MIDDLE + middle(NO_AUTHORITY)}, NO_AUTHORITY_SAID),
    "by one that may not sign": (
        {"certificate": BY_MIDDLE + middle(AUTHORITY, key_use("crl_sign"))},
        NO_AUTHORITY_SAID,
    ),
    "by too long a chain": (
        {
            "certificate": own(by="lower", signer=SECOND)
            + signed("lower", SECOND, "middle", MIDDLE)
            + middle(x509.BasicConstraints(True, 0))
        },
        "path length constraint exceeded",
    ),
    "by one for other names": (
        {
            "certificate": own(
                x509.SubjectAlternativeName([x509.DNSName("a.lab")]), by="middle", signer=MIDDLE
            )
            + middle(AUTHORITY, ELSEWHERE)
        },
        "permitted subtree violation",
    ),
    "root is no authority": ({"authority": root(NO_AUTHORITY)}, "root, which may not"),
    "root says nothing": ({"authority": root()}, "root, which may not"),
    "root may not sign": (
        {"authority": root(AUTHORITY, key_use("crl_sign"))},
        "root, which may not",
    ),
    "root for mail": ({"authority": root(AUTHORITY, use("EMAIL_PROTECTION"))}, PURPOSE),
    "root for servers": (
        {"authority": root(AUTHORITY, use("SERVER_AUTH"))},
        "root, which may not",
    ),
    "root for any use": (
        {"authority": root(AUTHORITY, use("ANY_EXTENDED_KEY_USAGE"))},
        "root, which may not",
    ),
    "root for clients": ({"authority": root(AUTHORITY, use("CLIENT_AUTH"))}, PURPOSE),
    "a cross-signed root before its own": (
        {"authority": signed("root", ROOT, "second", SECOND) + root(AUTHORITY)},
        "unable to get issuer certificate",
    ),
}
"""Files that are valid, but that no switch accepts, or whose switches we do not accept."""


@pytest.mark.parametrize("fault", USELESS)
def test_files_that_cannot_be_used_for_this_are_worse(tls, fault):
    """They were taken without a word, and all switches stayed away."""
    tls, (renewed, said) = replace(tls, revoked=None), USELESS[fault]
    put_key(tls, KEY)
    tls.certificate.write_bytes(own())
    tls.authority.write_bytes(root(AUTHORITY) + SECOND_ROOT)
    files = TlsFiles(tls)
    assert files.new_faults(time()) == []
    for field, content in renewed.items():
        getattr(tls, field).write_bytes(content)
    with pytest.raises(InputError, match=said):
        looked(files, now=True)
    files = TlsFiles(tls)
    assert said in "\n".join(map(str, files.new_faults(time())))
    assert looked(files, now=True), "no worse than those in use"
    tls.certificate.write_bytes(own())
    tls.authority.write_bytes(root(AUTHORITY))
    assert looked(files, now=True)
    assert files.new_faults(time()) == []


def test_an_authority_that_peers_do_not_need_may_expire(tls):
    """Its certificate in tls_ca was found first: renewed files were refused until a restart."""
    tls, expired = replace(tls, revoked=None), signed("middle", MIDDLE, "root", ROOT, days=-1)
    put_key(tls, KEY)
    tls.authority.write_bytes(root(AUTHORITY) + expired)
    tls.certificate.write_bytes(BY_MIDDLE)
    files = TlsFiles(tls)
    (fault,) = files.new_faults(time())
    assert "valid now, given one that expired" in str(fault)
    tls.certificate.write_bytes(BY_MIDDLE + middle(AUTHORITY))
    assert looked(files, now=True)
    (fault,) = files.new_faults(time())
    assert (fault.key, fault.given[-23:]) == ("tls_ca", "certificate has expired")
    tls.authority.write_bytes(root(AUTHORITY))
    assert looked(files, now=True)
    assert files.new_faults(time()) == []
    tls.authority.write_bytes(root(AUTHORITY) + expired)
    with pytest.raises(InputError, match="tls_ca: required no authority that keeps peers from"):
        looked(files, now=True)


def test_a_fault_that_was_there_before_is_no_reason_when_another_one_joins_it(tls):
    """A certificate for clients was renewed by another one, but not once it had expired."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.authority.write_bytes(root(AUTHORITY))
    for_clients = (AUTHORITY, use("CLIENT_AUTH"))
    tls.certificate.write_bytes(signed("controller", KEY, "root", ROOT, -1, for_clients))
    files = TlsFiles(tls)
    (fault,) = files.new_faults(time())
    assert "given one that expired" in str(fault)
    tls.certificate.write_bytes(own(*for_clients))
    assert looked(files, now=True)
    (fault,) = files.new_faults(time())
    assert PURPOSE in str(fault)


@pytest.mark.parametrize(
    ("of_switches", "is_taken"),
    [((), False), (("root",), True), (("root", "second"), False), (("only they know",), False)],
)
def test_an_authority_of_switches_has_to_stay_one(tls, of_switches, is_taken):
    """One that signs controllers alone was not to be renewed for servers alone."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.certificate.write_bytes(own())
    tls.authority.write_bytes(root(AUTHORITY) + SECOND_ROOT)
    files = TlsFiles(tls)
    shown = [by(name, node) for node, name in enumerate(of_switches)]
    for certificate in shown:
        files.add_connection(certificate)
    for_servers = (AUTHORITY, use("SERVER_AUTH"))
    renewed = signed("second", SECOND, "second", SECOND, extensions=for_servers)
    tls.authority.write_bytes(root(AUTHORITY) + renewed)
    for certificate in shown:
        files.remove_connection(certificate)
    if not is_taken:
        for _ in range(2):
            with pytest.raises(InputError, match="second, which may not any more"):
                looked(files, now=True)
        return
    assert looked(files, now=True)
    assert files.new_faults(time()) == []


@pytest.mark.parametrize("kind", ["EC", "RSA"])
def test_an_authority_of_switches_keeps_its_chain(tls, kind):
    """With a cross-signed twin in place of their root, or before it, all switches stayed away."""
    tls = replace(tls, revoked=None)
    key = SECOND if kind == "EC" else rsa.generate_private_key(65537, 2048)
    of_switches = signed("second", key, "second", key)
    cross, third = signed("second", key, "third", MIDDLE), signed("third", MIDDLE, "third", MIDDLE)
    put_key(tls, KEY)
    tls.certificate.write_bytes(own())
    good = root(AUTHORITY) + of_switches
    tls.authority.write_bytes(good)
    files = TlsFiles(tls)
    for certificates in ((cross,), (cross, of_switches)):
        tls.authority.write_bytes(b"".join((root(AUTHORITY), *certificates)))
        for _ in range(2):  # without a switch, and with one
            with pytest.raises(InputError, match="second, which may not any more: unable to get"):
                looked(files, now=True)
            files.add_connection(by("second"))
    for added in (cross, cross + third):
        tls.authority.write_bytes(good + added)
        assert looked(files, now=True)
    tls.authority.write_bytes(root(AUTHORITY) + cross + third)
    assert looked(files, now=True)
    assert files.new_faults(time()) == []


def test_a_refused_renewal_is_judged_again_only_when_that_may_help(tls, monkeypatch):
    """It was every two seconds, which took up to a third of a core."""
    tls, judged, context = replace(tls, revoked=None), [], Tls.context
    put_key(tls, KEY)
    tls.certificate.write_bytes(own())
    tls.authority.write_bytes(root(AUTHORITY) + SECOND_ROOT)
    files = TlsFiles(tls)
    for_servers = (AUTHORITY, use("SERVER_AUTH"))
    renewed = signed("second", SECOND, "second", SECOND, extensions=for_servers)
    touch(tls.authority, root(AUTHORITY) + renewed)
    looked(files)
    with pytest.raises(InputError, match="second, which may not any more"):
        looked(files)

    def counted(self, **options):
        judged.append(options)
        return context(self, **options)

    def is_judged():
        judged.clear()
        assert not looked(files)
        return bool(judged)

    monkeypatch.setattr(Tls, "context", counted)
    assert not is_judged()
    later = monotonic() + tls_files.LONGEST_REFUSAL
    monkeypatch.setattr(tls_files, "monotonic", lambda: later)
    assert [is_judged(), is_judged()] == [True, False]
    with monkeypatch.context() as patch:
        passed = time() + 9.5 * 86400
        patch.setattr(tls_files, "time", lambda: passed)
        assert [is_judged(), is_judged()] == [True, False]
    touch(tls.authority, root(AUTHORITY) + renewed + b"\n")
    looked(files)
    with pytest.raises(InputError, match="second, which may not any more"):
        looked(files)
    assert not is_judged()
    files.add_connection(by("root"))
    assert looked(files), "they do not need the other one"


@pytest.mark.parametrize("ended", ["certificate", "lists"])
def test_files_in_use_that_serve_nobody_any_more_give_way(tls, authority, monkeypatch, ended):
    """Renewed files that would serve most switches were refused for the few others, without end."""
    for_servers = (AUTHORITY, use("SERVER_AUTH"))
    renewed = signed("second", SECOND, "second", SECOND, extensions=for_servers)
    if ended == "certificate":
        tls = replace(tls, revoked=None)
        put_key(tls, KEY)
        tls.certificate.write_bytes(signed("controller", KEY, "root", ROOT, days=1))
        ours = root(AUTHORITY)
    else:
        ours = tls.authority.read_bytes()
    tls.authority.write_bytes(ours + SECOND_ROOT)
    files = TlsFiles(tls)
    tls.authority.write_bytes(ours + renewed)
    if ended == "certificate":
        tls.certificate.write_bytes(own())
    else:
        tls.revoked.write_bytes(revocation_list(authority, [], days=5))
    with pytest.raises(InputError, match="second, which may not any more"):
        looked(files, now=True)
    passed = time() + 2 * 86400
    monkeypatch.setattr(tls_files, "time", lambda: passed)
    assert looked(files, now=True)


@pytest.mark.parametrize("kind", ["worse", "unreadable"])
def test_refused_files_that_come_back_are_told_again(tls, authority, tmp_path, kind):
    """Certificates of certbot or Kubernetes are behind a link, and it may be put back."""
    good, bad, live = (tmp_path / name for name in ("good", "bad", "live"))
    for folder in (good, bad):
        folder.mkdir()
        for file in (tls.key, tls.certificate, tls.authority, tls.revoked):
            (folder / file.name).write_bytes(file.read_bytes())
    spoilt = for_clients(tls, authority) if kind == "worse" else b"no certificate"
    (bad / tls.certificate.name).write_bytes(spoilt)
    live.symlink_to(good)
    names = (file.name for file in (tls.key, tls.certificate, tls.authority, tls.revoked))
    files = TlsFiles(Tls(*(live / name for name in names), names=tls.names))
    for _ in range(2):
        live.unlink()
        live.symlink_to(bad)
        assert not looked(files)
        with pytest.raises(InputError, match="tls_cert"):
            looked(files)
        assert not looked(files), "it is told once"
        live.unlink()
        live.symlink_to(good)
        assert [looked(files), looked(files)] == [False, False]


def test_an_authority_that_was_left_out_is_needed_no_more(tls):
    """It would be one that only switches know: then each of ours is needed."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.certificate.write_bytes(own())
    middle_root = signed("middle", MIDDLE, "middle", MIDDLE)
    tls.authority.write_bytes(root(AUTHORITY) + SECOND_ROOT + middle_root)
    files = TlsFiles(tls)
    for name in ("root", "middle"):
        files.add_connection(by(name, name))
    tls.authority.write_bytes(root(AUTHORITY) + SECOND_ROOT)
    assert looked(files, now=True)
    for_servers = (AUTHORITY, use("SERVER_AUTH"))
    renewed = signed("second", SECOND, "second", SECOND, extensions=for_servers)
    tls.authority.write_bytes(root(AUTHORITY) + renewed)
    assert looked(files, now=True)


def test_an_authority_that_switches_have_left_is_needed_no_more(tls):
    """They had certificates of another one: renewed files were refused until a restart."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.certificate.write_bytes(own())
    tls.authority.write_bytes(root(AUTHORITY) + SECOND_ROOT)
    files = TlsFiles(tls)
    for_servers = (AUTHORITY, use("SERVER_AUTH"))
    renewed = signed("second", SECOND, "second", SECOND, extensions=for_servers)
    tls.authority.write_bytes(root(AUTHORITY) + renewed)
    for shown in (by("second", "3"), by("second", "4"), by("root", "3")):
        files.add_connection(shown)
        with pytest.raises(InputError, match="second, which may not any more"):
            looked(files, now=True)
    files.add_connection(by("root", "4"))
    assert looked(files, now=True)


def test_a_certificate_that_the_store_would_refuse_is_worse(tls):
    """It is shown to the store as a client's: no controller led after etcd had restarted."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.authority.write_bytes(root(AUTHORITY))
    tls.certificate.write_bytes(own())
    files = TlsFiles(tls, ("switch", "store"))
    for_servers, for_both = own(use("SERVER_AUTH")), own(use("SERVER_AUTH", "CLIENT_AUTH"))
    tls.certificate.write_bytes(for_servers)
    with pytest.raises(InputError, match=r"store accepts from its clients.*unsuitable certificate"):
        looked(files, now=True)
    assert TlsFiles(tls).new_faults(time()) == [], "there is no store"
    refused = TlsFiles(tls, ("switch", "store"))
    (fault,) = refused.new_faults(time())
    assert "the store" in str(fault)
    assert looked(refused, now=True), "no worse than those in use"
    tls.certificate.write_bytes(for_both)
    assert looked(files, now=True)
    assert looked(refused, now=True)
    assert files.new_faults(time()) == refused.new_faults(time()) == []


def test_a_certificate_of_an_authority_that_is_not_ours_is_taken(tls):
    """Switches may trust another authority than we do."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.authority.write_bytes(root(AUTHORITY))
    tls.certificate.write_bytes(own())
    files = TlsFiles(tls)
    for content in (own(by="second", signer=SECOND), BY_MIDDLE):
        tls.certificate.write_bytes(content)
        assert looked(files, now=True)
        assert files.new_faults(time()) == []


@pytest.mark.parametrize("kind", ["CLIENT_AUTH", "CODE_SIGNING"])
def test_the_use_of_a_certificate_of_another_authority_is_judged(tls, kind):
    """Only its times were."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.authority.write_bytes(root(AUTHORITY))
    tls.certificate.write_bytes(own(by="second", signer=SECOND))
    files = TlsFiles(tls)
    wrong = middle(AUTHORITY, use("CODE_SIGNING"), by="second", signer=SECOND)
    for content in (own(use(kind), by="second", signer=SECOND), BY_MIDDLE + wrong):
        tls.certificate.write_bytes(content)
        with pytest.raises(InputError, match=PURPOSE):
            looked(files, now=True)
        refused = TlsFiles(tls)
        tls.authority.write_bytes(root(AUTHORITY) + SECOND_ROOT)
        assert looked(refused, now=True), "no worse than those in use"
        tls.authority.write_bytes(root(AUTHORITY))
    good = middle(AUTHORITY, use("SERVER_AUTH"), by="second", signer=SECOND)
    tls.certificate.write_bytes(BY_MIDDLE + good)
    assert looked(files, now=True)


def test_a_chain_that_was_forgotten_is_missed(tls):
    """Without it the certificate was taken as one of an authority that only switches know."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    lower = signed("lower", SECOND, "middle", MIDDLE)
    by_lower = own(by="lower", signer=SECOND)
    for trusted in (root(AUTHORITY), signed("else", MIDDLE, "else", MIDDLE)):
        tls.authority.write_bytes(trusted)
        tls.certificate.write_bytes(by_lower + lower + middle(AUTHORITY))
        files = TlsFiles(tls)
        renewed = own(by="lower", signer=SECOND)
        for chain, missing in ((b"", "lower"), (lower, "middle")):
            tls.certificate.write_bytes(renewed + chain)
            with pytest.raises(InputError, match=f"came with, given a file without {missing}"):
                looked(files, now=True)
        tls.certificate.write_bytes(renewed + signed("lower", SECOND, "root", ROOT))
        assert looked(files, now=True), "it came with another one"
        tls.certificate.write_bytes(own(by="unknown", signer=ROOT))
        assert looked(files, now=True), "it is of another authority"


def test_a_chain_that_has_expired_is_not_missed(tls):
    """Renewed files were refused without the other certificate of an authority that peers know."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.authority.write_bytes(root(AUTHORITY))
    chain = BY_MIDDLE + middle(AUTHORITY, by="second", signer=SECOND)
    expired = signed("second", SECOND, "old", ROOT, days=-1)
    tls.certificate.write_bytes(chain + expired)
    files = TlsFiles(tls)
    for renewed in (own(by="second", signer=SECOND), chain):
        tls.certificate.write_bytes(renewed)
        assert looked(files, now=True)
        assert files.new_faults(time()) == []
        tls.certificate.write_bytes(chain + expired)
        files = TlsFiles(tls)


def test_an_authority_between_that_peers_got_from_our_authorities_is_missed(tls):
    """OpenSSL sends it from there, but only if our certificate is alone in its file."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.authority.write_bytes(root(AUTHORITY) + middle(AUTHORITY))
    tls.certificate.write_bytes(BY_MIDDLE)
    files = TlsFiles(tls)
    tls.authority.write_bytes(root(AUTHORITY))
    with pytest.raises(InputError, match="came with, given a file without middle"):
        looked(files, now=True)
    tls.authority.write_bytes(root(AUTHORITY) + middle(AUTHORITY))
    renewed = own(by="middle", signer=MIDDLE)
    for chain in (root(AUTHORITY), SECOND_ROOT):
        tls.certificate.write_bytes(renewed + chain)
        with pytest.raises(InputError, match="that they refuse: unable to get local issuer"):
            looked(files, now=True)
        assert TlsFiles(tls).new_faults(time()) == [], "peers may trust all of the file"
    tls.certificate.write_bytes(renewed)
    assert looked(files, now=True)
    tls.certificate.write_bytes(renewed + middle(AUTHORITY))
    tls.authority.write_bytes(root(AUTHORITY))
    assert looked(files, now=True)
    assert files.new_faults(time()) == []


def test_the_roots_in_use_are_enough_for_a_certificate(tls):
    """Peers may still have them, when ours are signed by others."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    tls.authority.write_bytes(root(AUTHORITY))
    tls.certificate.write_bytes(own())
    files = TlsFiles(tls)
    tls.authority.write_bytes(SECOND_ROOT + signed("root", ROOT, "second", SECOND))
    tls.certificate.write_bytes(own() + SECOND_ROOT)
    assert looked(files, now=True)


def with_ids(subject, key, issuer, signer, *extensions):
    """A certificate in DER with the key identifiers of both."""
    ids = (
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
    )
    pem = signed(subject, key, issuer, signer, extensions=(*extensions, *ids))
    return ssl.PEM_cert_to_DER_cert(pem.decode())


def in_pem(*certificates):
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates)).encode()


def damaged(certificate, issuer, signer):
    """Copies in which a bit is turned: each of these names, and of the numbers of these keys."""
    number = x509.SubjectKeyIdentifier.from_public_key(signer.public_key()).digest
    for part in (issuer.encode(), number):
        for place in (found.start() for found in re.finditer(re.escape(part), certificate)):
            turned_bit = bytes([certificate[place] ^ 1])
            yield certificate[:place] + turned_bit + certificate[place + 1 :]


def test_a_damaged_certificate_is_not_one_of_another_authority(tls):
    """With another name of its authority, or number of its key, it was taken."""
    tls = replace(tls, revoked=None)
    put_key(tls, KEY)
    leaf, renewed = (with_ids("controller", KEY, "middle", MIDDLE) for _ in range(2))
    between = with_ids("middle", MIDDLE, "root", ROOT, AUTHORITY)
    top = with_ids("root", ROOT, "root", ROOT, AUTHORITY)
    chain, trusted = in_pem(leaf, between), in_pem(top) + SECOND_ROOT
    tls.certificate.write_bytes(chain)
    tls.authority.write_bytes(trusted)
    files = TlsFiles(tls)
    spoilt = [
        *((tls.certificate, in_pem(one, between)) for one in damaged(leaf, "middle", MIDDLE)),
        *((tls.certificate, in_pem(one, between)) for one in damaged(renewed, "middle", MIDDLE)),
        *((tls.certificate, in_pem(leaf, one)) for one in damaged(between, "root", ROOT)),
        *((tls.authority, in_pem(one) + SECOND_ROOT) for one in damaged(top, "root", ROOT)),
    ]
    assert len(spoilt) == 2 + 2 + 2 + 4
    for file, content in spoilt:
        good = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(InputError):
            looked(files, now=True)
        file.write_bytes(good)
    tls.certificate.write_bytes(in_pem(renewed, between))
    assert looked(files, now=True)


def test_a_root_that_is_too_weak_for_us_is_no_fault_of_our_certificate(tls):
    """Switches may accept it, as their OpenSSL says which keys are too weak."""
    tls, bits = replace(tls, revoked=None), 1024
    weak = rsa.generate_private_key(65537, bits)
    put_key(tls, KEY)
    tls.certificate.write_bytes(BY_MIDDLE + middle(AUTHORITY, by="weak", signer=weak))
    tls.authority.write_bytes(signed("weak", weak, "weak", weak) + SECOND_ROOT)
    assert TlsFiles(tls).new_faults(time()) == []


def spoil_name(tls, _):
    """Turn a bit in the name of the authority, which is then that of nobody's certificate."""
    first, *lines, last = tls.authority.read_bytes().splitlines()
    before, name, after = base64.b64decode(b"".join(lines)).rpartition(b"trustme")
    der = before + name.title() + after
    tls.authority.write_bytes(b"\n".join((first, base64.b64encode(der), last)))


def spoil_signature(tls, _):
    """Turn a bit in the authority's signature of itself."""
    tls.authority.write_bytes(turned(tls.authority.read_bytes()))


def spoil_extension(tls, _):
    """Turn a bit in the key identifier of the authority, which only OpenSSL reads then."""
    replaced(tls.authority, b"U\x1d\x0e\x04", b"U\x1d\x0e\x05")


@pytest.mark.parametrize("spoil", [spoil_key, spoil_name, spoil_signature, spoil_extension])
def test_a_fault_of_files_in_use_hides_no_other(tls, authority, spoil):
    """With an authority in a form that only OpenSSL reads, each damaged one was taken."""
    good = tls.authority.read_bytes()
    as_trusted(tls, None)
    files = TlsFiles(tls)
    assert [problem.key for problem in files.new_faults(time())] == ["tls_ca"]
    tls.authority.write_bytes(good)
    spoil(tls, authority)
    as_trusted(tls, None)
    with pytest.raises(InputError):
        looked(files, now=True)
    tls.authority.write_bytes(good)
    assert looked(files, now=True)


def test_a_certificate_of_another_authority_of_the_same_name_is_taken(tls):
    """Its authority is one that switches know, and its name says nothing about its key."""
    tls = replace(tls, revoked=None)
    key, first, second = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    put_key(tls, key)
    tls.authority.write_bytes(signed("ca", first, "ca", first))
    for signer in (first, second):
        tls.certificate.write_bytes(signed("controller.example", key, "ca", signer))
        files = TlsFiles(tls)
        assert files.new_faults(time()) == []
    tls.certificate.write_bytes(signed("controller.example", key, "ca", first))
    assert looked(files, now=True)
    tls.certificate.write_bytes(signed("controller.example", key, "ca", second))
    assert looked(files, now=True)


def test_one_chain_that_is_valid_is_enough(tls):
    """A root that had expired, of a chain beside the valid one, made a renewed file refused."""
    tls = replace(tls, revoked=None)
    key, middle, root, old = (ec.generate_private_key(ec.SECP256R1()) for _ in range(4))
    put_key(tls, key)
    tls.authority.write_bytes(signed("root", root, "root", root))
    chain = signed("controller.example", key, "middle", middle)
    good = signed("middle", middle, "root", root, days=5)
    tls.certificate.write_bytes(chain + good)
    files = TlsFiles(tls)
    expired = signed("root", root, "old", old, days=-1) + signed("old", old, "old", old, days=-1)
    tls.certificate.write_bytes(chain + good + expired)
    assert looked(files, now=True)
    assert files.new_faults(time()) == []
    end = x509.load_pem_x509_certificate(good).not_valid_after_utc.timestamp()
    assert files.expires["certificate"] == end
    assert [problem.key for problem in files.new_faults(end + 1)] == ["tls_cert"]
    tls.certificate.write_bytes(chain + signed("middle", middle, "root", root, days=-1) + expired)
    with pytest.raises(InputError, match="valid now, given one that expired"):
        looked(files, now=True)


def test_a_root_that_was_renewed_with_its_key_often_takes_no_time(tls):
    """Each order of its generations was a chain: 8 of them took 55 s."""
    tls = replace(tls, revoked=None)
    key, root = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    put_key(tls, key)
    tls.authority.write_bytes(signed("root", root, "root", root))
    generations = [signed("root", root, "root", root, days=day) for day in range(20, 70)]
    own = signed("controller", key, "root", root)
    tls.certificate.write_bytes(b"".join((own, *generations)))
    files = TlsFiles(tls)
    assert files.new_faults(time()) == []
    end = x509.load_pem_x509_certificate(own).not_valid_after_utc.timestamp()
    assert files.expires["certificate"] == end


@pytest.mark.parametrize(
    ("key", "can_be_checked"),
    [
        ("rsa:2048 -sha1", True),
        ("rsa:2048 -md5", True),
        ("rsa:2048 -sha1 -sigopt rsa_padding_mode:pss", True),
        ("rsa:2048 -ripemd160", False),
        ("ec -pkeyopt ec_paramgen_curve:prime256v1 -sha1", True),
        ("sm2", False),
    ],
)
def test_an_authority_that_signed_itself_in_an_old_or_rare_way_is_no_fault(
    tls, tmp_path, key, can_be_checked
):
    """OpenSSL does not look at that signature, and old authorities have it."""
    shell = f"openssl req -x509 -newkey {key} -nodes -subj /CN=old -keyout k -out old.pem"
    subprocess.run(shell.split(), cwd=tmp_path, check=True, capture_output=True)
    old = (tmp_path / "old.pem").read_bytes()
    good = tls.authority.read_bytes()
    tls.authority.write_bytes(good + old)
    assert TlsFiles(tls).new_faults(time()) == []
    if not can_be_checked:
        return
    tls.authority.write_bytes(good + turned(old))
    assert [problem.key for problem in TlsFiles(tls).new_faults(time())] == ["tls_ca"]


def test_what_ends_while_it_is_in_use_is_said(tls):
    files = TlsFiles(tls)
    later = time() + 2 * 86400
    assert [problem.key for problem in files.new_faults(later)] == ["tls_crl"]
    assert files.new_faults(later) == files.new_faults(time()) == []
    end = files.expires["authority"]
    assert {*map(attrgetter("key"), files.new_faults(end + 1))} == {"tls_cert", "tls_ca", "tls_crl"}


def test_many_roots_of_one_name_take_little_time(tls):
    """Each signature was checked with the key of each: 400 roots took 26 s."""
    tls, checked = replace(tls, revoked=None), Counter()
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(30)]
    put_key(tls, KEY)
    tls.authority.write_bytes(b"".join(signed("root", key, "root", key) for key in keys))
    tls.certificate.write_bytes(signed("controller", KEY, "root", keys[0]))
    with pytest.MonkeyPatch.context() as patch:
        check = tls_faults._verify

        def counted(certificate, authority):
            checked[certificate] += 1
            check(certificate, authority)

        patch.setattr(tls_faults, "_verify", counted)
        assert TlsFiles(tls).new_faults(time()) == []
    assert max(checked.values()) <= 2 * len(keys), "our own"
    assert sum(checked.values()) <= 6 * len(keys)


def test_an_authority_loses_its_list_only_with_its_place(tls, authority):
    """Switches of an authority that has lost its list would be refused."""
    old, ca = trustme.CA(), tls.authority.read_bytes()
    tls.authority.write_bytes(old.cert_pem.bytes() + ca)
    tls.revoked.write_bytes(revocation_list(old, []) + revocation_list(authority, []))
    files, name = TlsFiles(tls), x509.load_pem_x509_certificate(ca).subject
    tls.revoked.write_bytes(revocation_list(old, []))
    unit = name.get_attributes_for_oid(x509.NameOID.ORGANIZATIONAL_UNIT_NAME)[0].value
    with pytest.raises(InputError, match=f"a valid list of .*{unit}"):
        looked(files, now=True)
    tls.authority.write_bytes(old.cert_pem.bytes())  # with that authority itself
    assert looked(files, now=True)


def test_an_authority_that_only_switches_know_keeps_its_list(tls, authority):
    """Its switches, which send its certificate with theirs, were refused without a word before."""
    between = trustme.CA(parent_cert=authority)
    lists = [revocation_list(of, []) for of in (authority, between)]
    tls.revoked.write_bytes(b"".join(lists))
    files = TlsFiles(tls)
    shown = between.issue_cert("3.lab.example")
    files.add_connection(handshake(files, authority, shown))
    expired = revocation_list(between, [], days=-1)
    for last, given in ((b"", "lists of "), (expired, "one that expired")):
        tls.revoked.write_bytes(lists[0] + last)
        assert "CRL" in handshake(TlsFiles(tls), authority, shown)
        with pytest.raises(InputError, match=f"which signs for switches, given {given}"):
            looked(files, now=True)
    tls.revoked.write_bytes(lists[0] + revocation_list(between, [], age=1))
    assert looked(files, now=True)
    files.add_connection(handshake(files, authority, authority.issue_cert("3.lab.example")))
    tls.revoked.write_bytes(lists[0])
    assert looked(files, now=True), "the switch has a certificate of another one"


def test_a_switch_that_is_out_of_service_needs_no_list(tls, authority):
    """The list of its authority was missed until a restart."""
    between = trustme.CA(parent_cert=authority)
    lists = [revocation_list(of, []) for of in (authority, between)]
    tls.revoked.write_bytes(b"".join(lists))
    build = ["3", "4"]
    files = TlsFiles(tls, of_build=lambda: build)
    shown = handshake(files, authority, between.issue_cert("4.lab.example"))
    files.add_connection(handshake(files, authority, authority.issue_cert("3.lab.example")))
    files.add_connection(shown)
    tls.revoked.write_bytes(lists[0])
    with pytest.raises(InputError, match="which signs for switches"):
        looked(files, now=True)
    build.remove("4")
    with pytest.raises(InputError, match="which signs for switches"):
        looked(files, now=True)  # it is still connected: the next build may have it
    files.remove_connection(shown)
    build.append("4")
    with pytest.raises(InputError, match="which signs for switches"):
        looked(files, now=True)  # it is in the build, and may come back
    build.remove("4")
    assert looked(files, now=True)


def handshake(tls, authority, certificate):
    """What fails at our side of a handshake with a peer, or the certificate that it shows.

    authority: the one that the peer takes our certificate from.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(client)
    certificate.configure_cert(client)
    there, here = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = tls.switches.wrap_bio(here, there, server_side=True)
    theirs = client.wrap_bio(there, here, server_hostname="controller.example")
    for _ in range(4):
        try:
            theirs.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            theirs = None
        try:
            ours.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            return handshake_fault(error)
        return ours.getpeercert()
    return "no end"


def for_clients(tls, authority):
    """A certificate of our key that is for clients alone."""
    signer = serialization.load_pem_private_key(authority.private_key_pem.bytes(), None)
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes()).subject
    old = x509.load_pem_x509_certificate(tls.certificate.read_bytes())
    made = x509.CertificateBuilder(issuer, old.subject, old.public_key(), old.serial_number)
    made = made.not_valid_before(old.not_valid_before_utc).not_valid_after(old.not_valid_after_utc)
    made = made.add_extension(use("CLIENT_AUTH"), critical=False)
    return made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("expired", "its certificate is refused: certificate has expired"),
        ("stranger", "its certificate is refused: unable to get local issuer certificate"),
        ("knows another authority", "it refuses our certificate: its authority is not known there"),
        ("ours has expired", "it refuses our certificate: it has expired"),
        (
            "ours is not valid yet",
            "it refuses our certificate: it is bad, not for this, not valid yet",
        ),
        ("not valid yet", "its certificate is refused: certificate is not yet valid"),
        ("ours is for clients", "it refuses our certificate: it is not for servers"),
    ],
)
def test_why_a_handshake_fails_is_said(tls, authority, fault, said):
    """The log had the name of OpenSSL's error, whatever was wrong with the certificate."""
    other, end = trustme.CA(), YESTERDAY if fault == "expired" else None
    start = TOMORROW if fault == "not valid yet" else None
    if fault == "ours is for clients":
        tls.certificate.write_bytes(for_clients(tls, authority))
    elif fault.startswith("ours"):
        issue(tls, authority, *((None, YESTERDAY) if fault == "ours has expired" else (TOMORROW,)))
    shown = (other if fault == "stranger" else authority).issue_cert(
        "3.lab.example", not_before=start, not_after=end
    )
    trusted = other if fault == "knows another authority" else authority
    assert handshake(TlsFiles(replace(tls, revoked=None)), trusted, shown).startswith(said)


@pytest.mark.parametrize(
    ("alert", "said"),
    [
        ("TLSV1_ALERT_UNKNOWN_CA", "or may not sign it"),
        ("TLSV1_ALERT_DECRYPT_ERROR", "the signature of its authority there"),
        ("TLSV1_ALERT_ACCESS_DENIED", "may not connect"),
    ],
)
def test_an_alert_is_said_in_words(alert, said):
    error = ssl.SSLError(1, alert)
    error.reason = alert
    assert said in handshake_fault(error)


def test_what_a_handshake_did_not_look_at_is_a_fault(tls, authority):
    """A resumed session was served with an expired certificate, and so was a revoked one."""
    files = TlsFiles(tls)
    now, end = 1_800_000_000.0, "Nov 30 00:00:00 2030 GMT"
    shown = {"issuer": issuer_of(authority), "serialNumber": "4D", "notAfter": end}
    assert files.fault(shown, time()) == ""
    assert "expired" in files.fault(shown, ssl.cert_time_to_seconds(end) + 1)
    assert "not yet valid" in files.fault({**shown, "notBefore": end}, time())
    assert "CRL has expired" in files.fault(shown, now)
    old = revocation_list(authority, [77], days=-1)
    for lists in (old, revocation_list(OTHER, [], days=-1)):  # beside one that is good
        tls.revoked.write_bytes(lists + revocation_list(authority, []))
        assert looked(files, now=True)
        assert files.fault(shown, time()) == ""
    for serials, older in (([77], []), ([], [77])):  # the older one is good for longer
        lists = [revocation_list(authority, serials), revocation_list(authority, older, 9, 3)]
        tls.revoked.write_bytes(b"".join(lists))
        assert looked(files, now=True)
        assert bool(files.fault(shown, time())) == bool(serials)
        later = time() + 2 * 86400  # the newer one has ended, and no file has changed
        assert bool(files.fault(shown, later)) == bool(older)
    tls.revoked.write_bytes(revocation_list(authority, [77]))
    assert looked(files, now=True)
    assert "revoked" in files.fault(shown, time())


def test_no_session_of_tls_1_3_is_resumed(tls, authority):
    """A certificate that had expired since was accepted, with the session of an earlier day."""
    client, servers = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), []
    authority.configure_trust(client)
    authority.issue_cert("3.lab.example").configure_cert(client)
    ours = TlsFiles(replace(tls, revoked=None)).switches
    session = None
    for _ in range(2):
        there, here = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = ours.wrap_bio(here, there, server_side=True)
        peer = client.wrap_bio(there, here, server_hostname="controller.example", session=session)
        for side in (peer, server) * 3:
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
        server.write(b"hello")
        assert peer.read(5) == b"hello"  # TLS 1.3 sends sessions after the handshake
        assert not server.session_reused
        session = peer.session
        servers.append(server)  # one that is dropped would take its session with it


def test_the_last_days_of_switches_certificates_are_known(tls, authority):
    files = TlsFiles(replace(tls, revoked=None))
    end = datetime.datetime(2050, 1, 2, tzinfo=datetime.UTC)
    certificate = authority.issue_cert("3.lab.example", not_after=end)
    shown = handshake(files, authority, certificate)
    files.add_connection(shown)
    files.add_connection(shown)
    files.remove_connection(shown)
    assert files.peers == {"3": end.timestamp()}, "it had connected anew before it was missed"
    files.remove_connection(shown)
    assert files.peers == {}
