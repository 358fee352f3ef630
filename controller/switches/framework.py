"""Ryu and os-ken: one controller framework under two names, and all that differs between them.

`load` imports the one that is installed; the rest of the controller uses it by a `Framework`.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from importlib import import_module, metadata
from io import StringIO
from types import ModuleType
from typing import Any

from inventory.problems import InputError, install_extra

FRAMEWORKS = ("ryu", "os-ken")
"""The names of the frameworks, in order of preference."""
_PACKAGES = {"ryu": "ryu", "os-ken": "os_ken"}
"""The Python package of each framework."""
_BASES = {"ryu": "RyuApp", "os-ken": "OSKenApp"}
"""The name of each framework's base class of apps."""
_OLDEST = {"ryu": (4, 34), "os-ken": (4, 2, 1)}
"""The oldest version of each framework that the controller works with."""
_INSTALL = {
    "ryu": f"install it with: {install_extra('ryu')}, with PIP_BUILD_CONSTRAINT=FILE (pip before "
    "25.3: PIP_CONSTRAINT=FILE) in the environment and the one line setuptools<67 in FILE (Ryu "
    "builds with no newer one)",
    "os-ken": f"install it with: {install_extra('os-ken')}",
}
"""What the user has to do where a framework is not installed."""
SOCKET_TIMEOUT = 30.0
"""Most seconds of sending one chunk; a loaded switch reads late."""


@dataclass(frozen=True, slots=True)
class Framework:
    """The framework's modules that the app uses, and the classes it derives from."""

    name: str
    """The framework's name, of `FRAMEWORKS`."""
    app: Any
    """The class of apps."""
    datapath: Any
    """The class of connections."""
    app_manager: ModuleType
    """Loads and starts apps."""
    controller: ModuleType
    """Accepts connections."""
    handler: ModuleType
    """Registers handlers of events, and names the states of connections."""
    ofp_event: ModuleType
    """The events of OpenFlow messages."""
    ofproto: ModuleType
    """The constants of OpenFlow 1.3."""
    parser: ModuleType
    """Reads OpenFlow messages."""
    hub: ModuleType
    """Green threads."""
    conf: Any
    """The options of the framework and of apps."""

    def error_names(self, type_: int, code: int) -> tuple[str, str]:
        """The constants of an OpenFlow error's type and code."""
        type_name = self.ofproto.ofp_error_type_to_str(type_)
        code_name = self.ofproto.ofp_error_code_to_str(type_, code)
        return str(type_name), str(code_name)

    def configure(self, host: str, port: int, apps: Sequence[str]) -> None:
        """Load other apps, and set the framework's options.

        Args:
            host: the host part of the address to listen at.
            port: its port.
            apps: the other apps, each a module and its options.

        Raises:
            InputError: an app cannot be loaded, or has no such option.
        """
        manager, output = self.app_manager.AppManager.get_instance(), StringIO()
        handler = self.ofp_event.__name__.replace("ofp_event", "ofp_handler")
        with self._app_errors(apps, output):
            # An app is the names of its modules, with commas, then its options. An empty text has
            # the module "", which the framework refuses with a message.
            modules: list[str] = []
            options: list[str] = []
            for app in apps:
                modules_of_app, *options_of_app = shlex.split(app) or [""]
                modules += modules_of_app.split(",")
                options += options_of_app
            manager.load_apps([handler, *modules])
            loaded = {context.__module__ for context in manager.contexts_cls.values()}
            loaded |= {*manager.applications_cls}
            without_app = [module for module in modules if module not in loaded]
            if without_app:
                raise ImportError(f"no class of an app in {without_app[0]}")
            with redirect_stderr(output):  # else it prints all options that there are
                self.conf(args=options, project=_PACKAGES[self.name], default_config_files=[])
        if apps:  # their log goes to standard error, as under ryu-manager
            logging.basicConfig(level=logging.INFO)
        self.conf.set_override("ofp_listen_host", host)
        self.conf.set_override("ofp_tcp_listen_port", port)
        self.conf.set_override("socket_timeout", SOCKET_TIMEOUT)

    def quieten(self) -> None:
        """Limit the framework's own log to critical errors.

        It would log a traceback for each malformed peer and format every OpenFlow error, slowly,
        even when it is not read. The session reports both.
        """
        package = _PACKAGES[self.name]
        logging.getLogger(package).setLevel(logging.CRITICAL)
        logging.getLogger(f"{package}.base.app_manager").setLevel(logging.ERROR)
        logging.getLogger("ofp_event").setLevel(logging.CRITICAL)

    def start(self, apps: Sequence[str]) -> Any:
        """Start all apps, and the web server if another app uses one.

        Returns:
            The thread that listens for switches.

        Raises:
            InputError: another app does not start.
        """
        manager = self.app_manager.AppManager.get_instance()
        wsgi = sys.modules.get(f"{_PACKAGES[self.name]}.app.wsgi")
        with self._app_errors(apps):
            manager.instantiate_apps(**manager.create_contexts())
            server = wsgi.start_service(manager) if wsgi else None
            if server:
                self.hub.spawn(server)
        return self.app_manager.lookup_service_brick("ofp_event").main_thread

    @contextmanager
    def _app_errors(self, apps: Sequence[str], output: StringIO | None = None) -> Iterator[None]:
        """Turn an exception within the context into an InputError about the other apps.

        Without other apps it stays as it is.

        Args:
            apps: the other apps.
            output: gets what is printed meanwhile; its last line says more than the exception.
        """
        try:
            yield
        except (Exception, SystemExit) as error:
            if not apps or isinstance(error, InputError):
                raise
            raise InputError.of(
                key="app",
                required=f"modules of apps for {self.name} that start, with options that they have",
                given=(output.getvalue() if output else "").strip().rpartition("\n")[2]
                or repr(error),
            ) from error

    def drop_error_log(self) -> None:
        """Remove the framework's own handler of OpenFlow errors (once the apps are loaded)."""
        brick = self.app_manager.lookup_service_brick("ofp_event")
        brick.unregister_handler(self.ofp_event.EventOFPErrorMsg, brick.error_msg_handler)


def load(name: str | None = None) -> Framework:
    """The framework with this name; without a name Ryu, else os-ken.

    Raises:
        InputError: it is not installed or too old; the message says what to install.
    """
    candidates = [name] if name else FRAMEWORKS
    for candidate in candidates:
        if _is_installed(candidate):
            return _load(candidate)
    raise InputError.of(
        key="framework",
        required=f"{' or '.join(candidates)}, installed",
        given="no such package here",
        todo="; or ".join(_INSTALL[candidate] for candidate in candidates),
    )


def _is_installed(name: str) -> bool:
    """Whether a framework is installed.

    Raises:
        InputError: it is installed, but too old.
    """
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < _OLDEST[name]:
        raise InputError.of(
            key="framework",
            required=f"{name} {'.'.join(map(str, _OLDEST[name]))} or later",
            given=version,
            todo=_INSTALL[name],
        )
    return True


def _load(name: str) -> Framework:
    """Import a framework."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shim_eventlet()
        package = _PACKAGES[name]
        # app_manager must come first: it and controller.controller import each other.
        app_manager = import_module(f"{package}.base.app_manager")
        modules = {
            field: import_module(f"{package}.{module}")
            for field, module in {
                "controller": "controller.controller",
                "handler": "controller.handler",
                "ofp_event": "controller.ofp_event",
                "ofproto": "ofproto.ofproto_v1_3",
                "parser": "ofproto.ofproto_parser",
                "hub": "lib.hub",
            }.items()
        }
        return Framework(
            name=name,
            app=getattr(app_manager, _BASES[name]),
            datapath=modules["controller"].Datapath,
            app_manager=app_manager,
            conf=import_module(f"{package}.cfg").CONF,
            **modules,
        )


def shim_eventlet() -> None:
    """Make Ryu 4.34 work with a current eventlet, and make os-ken use eventlet as Ryu does.

    Ryu imports a name that eventlet has dropped. os-ken's other hub, native threads, cannot stop a
    connection's sender: it never reports that a switch has left, and the process does not end
    (tried with 4.2.2).
    """
    os.environ["OSKEN_HUB_TYPE"] = "eventlet"
    wsgi = import_module("eventlet.wsgi")
    if not hasattr(wsgi, "ALREADY_HANDLED"):
        wsgi.ALREADY_HANDLED = object()  # type: ignore[attr-defined]
