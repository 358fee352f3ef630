"""What all tests share: the gate for live tests, golden files, no silent skips in CI."""

import difflib
import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from compilers.forwarding.machine_code import LOOPS_VARIABLE
from mininet_scenarios.machine.preflight import TUN

IN_CI = os.environ.get("CI") == "true"
os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")  # only other apps ask it: `test_other_apps`
# Numba translates a third faster so; what it makes is kept apart, as it runs slower. For
# `make test-all` and `make test-versions` it is 3, as for users.
os.environ.setdefault("NUMBA_OPT", "1")
CACHE = Path(__file__).parents[1] / ".pytest_cache" / f"numba-{os.environ['NUMBA_OPT']}"
os.environ.setdefault("NUMBA_CACHE_DIR", str(CACHE))
LIVE_COMMANDS = {
    "ovs-vswitchd": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
    "mnexec": "mininet",
    "ip": "iproute2",
    "ping": "iputils-ping",
    "unshare": "util-linux",
    "etcd": "etcd-server",
    "vtysh": "frr",
    "bird": "bird2",
    "opensm": "opensm",
    "ibsim": "ibsim-utils",
    "saquery": "infiniband-diags",
    "ibdmchk": "ibutils",
    "g++": "g++",
    "smpirun": "libsimgrid-dev",
    "strace": "strace",
}
BROWSER_COMMANDS = {"chromium": "chromium", "chromedriver": "chromium-driver"}
SHELL_COMMANDS = {"zsh": "zsh", "fish": "fish"}
LONG_CASES = Path(__file__).with_name("long_cases.txt")
"""Cases that were measured to take long (`tests/processor_time.py`), a line each, marked `long`."""
CONTAINER_COMMANDS = {"podman": "podman", "runc": "runc"}

# How long an example takes is the machine's matter; CI sees the same examples each time.
settings.register_profile(
    "machine of any speed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=IN_CI,
)
settings.load_profile("machine of any speed")


@pytest.fixture(scope="module")
def machine_code() -> Iterator[None]:
    """Run loops as machine code, unless the environment says how.

    It is for modules that walk much, by loops that other modules translate, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        if LOOPS_VARIABLE not in os.environ:
            patch.setenv(LOOPS_VARIABLE, "machine")
        yield


def missing_commands(packages: dict[str, str]) -> list[str]:
    """Say which commands this machine lacks, and where Debian has them."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    return [
        f"{command} (Debian package {package})"
        for command, package in packages.items()
        if shutil.which(command, path=path) is None
    ]


@cache
def missing_for_live() -> tuple[str, ...]:
    """Say what this machine lacks for live tests, a phrase a part."""
    lacking = missing_commands(LIVE_COMMANDS)
    if os.geteuid() != 0:
        lacking.append("root, or root in a user namespace (unshare --user --map-root-user)")
    elif shutil.which("unshare"):
        made = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
        if made.returncode:
            lacking.append(f"network namespaces ({made.stderr.strip()})")
    if not os.access(TUN, os.R_OK | os.W_OK):
        lacking.append(f"{TUN}, for the switches of Open vSwitch")
    return tuple(lacking)


GATES = {
    "live": missing_for_live,
    "browser": lambda: missing_commands(BROWSER_COMMANDS),
    "shells": lambda: missing_commands(SHELL_COMMANDS),
    "container": lambda: missing_commands(CONTAINER_COMMANDS),
}

SLOWEST = "test_packaging", "test_moving_live", "test_bird_live"
"""The modules that take longest."""
LIVE_SHARE = 0.7
"""The share of the other modules after which the last live one begins."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files from what the code prints now, instead of comparing",
    )
    parser.addoption(
        "--other-pythons",
        action="store_true",
        help="install the wheel with the newest of every dependency, on the other Pythons here",
    )


def is_of_test_versions(item: pytest.Item) -> bool:
    """Whether `make test-versions` runs a test of the installed wheel, on other Pythons."""
    installed = "interpreter" in getattr(item, "fixturenames", ())
    return installed and not item.get_closest_marker("long")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups, and -m the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep each module on one worker, which makes its fixtures once; spread the live ones.

    Live modules mostly wait. They may run at a time: each has network namespaces of its own.
    """
    other = config.getoption("--other-pythons")
    items[:] = [item for item in items if is_of_test_versions(item) == other]
    long = set(LONG_CASES.read_text().splitlines())
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.stem))
        if item.nodeid in long:
            item.add_marker(pytest.mark.long)
    live = {item.path.stem for item in items if item.get_closest_marker("live")}
    place = spread([*dict.fromkeys(item.path.stem for item in items)], live)
    items.sort(key=lambda item: place[item.path.stem])


def spread(modules: list[str], live: set[str]) -> dict[str, float]:
    """The place in the order of each module: the live ones evenly among most of the others.

    So about two workers wait for switches and routers while the others compute, all the time.
    What takes longest comes first: a worker that begins it last would keep `make test` waiting.

    Args:
        modules: names of modules, in the order in which they were collected.
        live: the names of those that are live.
    """
    order = sorted(modules, key=lambda module: module not in SLOWEST)
    waiting = [module for module in order if module in live]
    computing = [module for module in order if module not in live]
    step = LIVE_SHARE * len(computing) / max(1, len(waiting))
    place: dict[str, float] = {module: number for number, module in enumerate(computing)}
    return place | {module: number * step - 0.5 for number, module in enumerate(waiting)}


def pytest_configure(config: pytest.Config) -> None:
    """Have Ctrl-C end what tests start: a shell that puts tests into the background ignores it.

    Of several workers one process with the command line is copied, unless it is to be measured
    what each test takes.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    begins_workers = config.getoption("numprocesses", 0) and not hasattr(config, "workerinput")
    measures = config.pluginmanager.hasplugin("tests.processor_time")
    if begins_workers and not measures and not config.getoption("collectonly"):
        from tests.polarfab.forked import CommandLine

        shared = CommandLine()
        shared.share()
        config.add_cleanup(shared.close)


def pytest_sessionstart() -> None:
    """Collecting tests makes next to no garbage: looking for it took a fifth of that time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays to the end: garbage need not be looked for there again.

    What is kept for many tests stays as well, so the whole heap is seldom looked at.
    """
    gc.freeze()
    gc.set_threshold(20_000, 10, 50)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Fail where pytest-xdist loses the groups without a word: 3.8 does so with pytest 9.2."""
    if node.config.option.dist == "loadgroup" and not all("@" in one for one in ids):
        pytest.exit("this pytest-xdist loses the groups of tests: see constraints.txt", 3)


@pytest.hookimpl(tryfirst=True)  # before fixtures, which start programs that are not there
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose programs this machine lacks; in CI it fails."""
    for marker, lacks in GATES.items():
        if item.get_closest_marker(marker) and (lacking := lacks()):
            reason = f"{marker} tests need {', '.join(lacking)}"
            pytest.fail(reason) if IN_CI else pytest.skip(reason)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where CI=true nothing may be skipped, by whatever means."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if IN_CI and reporter and reporter.stats.get("skipped") and session.exitstatus == 0:
        reporter.write_line("\nCI=true and tests were skipped: that is a failure.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


BROWSER_FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-dev-shm-usage --disable-background-networking --disable-component-update --disable-sync
--window-size=1400,900 --proxy-server=127.0.0.1:9"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium (selenium's Chrome) that reaches no network but this machine's loopback."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in BROWSER_FLAGS.split():
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pyavd() -> Iterator[Any]:
    """Arista's AVD, cleared away after it: Hypothesis reads all modules, dying ones too."""
    import pyavd

    yield pyavd
    gc.collect()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with `golden/NAME` beside the test module; --update-golden writes it."""
    folder = request.path.parent / "golden"
    update = bool(request.config.getoption("--update-golden"))

    def compare(text: str, name: str) -> None:
        path = folder / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        where = path.relative_to(request.config.rootpath)
        if not path.exists():
            pytest.fail(f"{where} does not exist; pytest --update-golden writes it", pytrace=False)
        expected = path.read_bytes().decode()
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), str(where), "now", lineterm="", n=1
            )
            pytest.fail(
                "\n".join([*list(lines)[:60], "Wanted? pytest --update-golden"]), pytrace=False
            )

    return compare


def pytest_report_header() -> str:
    """Name what live tests lack, so that a skip is no surprise."""
    lacking = missing_for_live()
    return "live tests: " + (f"lack {', '.join(lacking)}" if lacking else "all parts are here")
