import socket
from importlib import metadata
from types import SimpleNamespace

import pytest

from controller.settings import Address
from controller.switches import framework
from controller.switches.connections.listening import listen_at, use_listener
from inventory.problems import InputError


def installed(monkeypatch, **versions):
    def version(name):
        try:
            return versions[name.replace("-", "_")]
        except KeyError:
            raise metadata.PackageNotFoundError(name) from None

    monkeypatch.setattr(metadata, "version", version)


def test_what_is_missing_is_named_with_how_to_install_it(monkeypatch):
    installed(monkeypatch, os_ken="4.2.2")
    with pytest.raises(InputError, match="setuptools<67") as caught:
        framework.load("ryu")
    assert "pip install 'polarfab[ryu]'" in str(caught.value)


def test_neither_names_both(monkeypatch):
    installed(monkeypatch)
    with pytest.raises(InputError, match=r"polarfab\[ryu\].*polarfab\[os-ken\]"):
        framework.load()


@pytest.mark.parametrize("version", ["3.1.0", "4.2.0"])
def test_an_os_ken_that_deadlocks_is_refused(monkeypatch, version):
    installed(monkeypatch, os_ken=version)
    with pytest.raises(InputError, match=rf"4\.2\.1 or later, given {version}"):
        framework.load("os-ken")


def test_a_port_in_use_is_found_even_when_its_owner_would_share_it():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="in use"):
            listen_at(Address(*taken.getsockname(), "--listen"), 1)


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(InputError, match="an address of this machine"):
        listen_at(Address("192.0.2.1", 6653, "--listen"), 1)


def test_the_second_controller_at_an_address_is_refused_before_either_serves():
    """Bound but not listening, both had it; the second ended with a bare error of the system."""
    ryu = SimpleNamespace(controller=SimpleNamespace())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = Address(*free.getsockname(), "--listen")
    use_listener(ryu, None, address)
    with pytest.raises(InputError, match="in use"):
        use_listener(ryu, None, address)
