"""A pytest plug-in that runs tests in several processes: `pytest --workers 4`.

The tests are imported and collected once. Then the process forks, and its copies take one module
after the other. They send what came out to the first process, which reports it. Each worker
has temporary folders and fixtures of its own, so fixtures of a module are made once.
"""

from __future__ import annotations

import atexit
import os
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

FORK = get_context("fork")
NUMBER = 4
"""Bytes of the number of a group in the queue."""
Place = tuple[str, tuple[str, int | None, str]]
"""The name of a test, and where it is."""
shared_folders: list[Path] = []
"""In a worker: the temporary folder of all workers."""


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of all workers, in a worker or without any."""
    return shared_folders[0] if shared_folders else factory.getbasetemp()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, help="run the tests in so many processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    """Run the tests; None leaves that to pytest itself."""
    count = session.config.getoption("--workers")
    if not count or session.testsfailed or session.config.option.collectonly:
        return None
    run(session, count)
    return True


def groups_of(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """The tests by what one worker runs: a module, or the part of it with one `group` mark."""
    groups: dict[object, list[pytest.Item]] = {}
    for item in items:
        names = [marker.args for marker in item.iter_markers("group")]
        groups.setdefault((item.path, *names), []).append(item)
    return [*groups.values()]


def run(session: pytest.Session, count: int) -> None:
    """Run the tests of a session in so many workers.

    Raises:
        pytest.Session.Failed: as many failed as --maxfail allows.
        RuntimeError: a worker could not go on; the text says why.
    """
    groups = groups_of(session.items)
    queue, end = os.pipe()
    os.set_blocking(end, False)  # raises where a pipe holds less than the queue
    for number in range(len(groups)):
        os.write(end, number.to_bytes(NUMBER, "big"))
    os.close(end)
    capture = session.config.pluginmanager.getplugin("capturemanager")
    folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    links: list[Connection] = []
    workers = []
    capture.stop_global_capturing()  # else all write into one file
    for number in range(count):
        link, other = FORK.Pipe(duplex=False)
        links.append(link)
        place = folder / f"worker{number}"
        workers.append(
            FORK.Process(target=work, args=(session, groups, queue, links, other, place))
        )
        workers[-1].start()
        other.close()
    os.close(queue)
    capture.start_global_capturing()
    try:
        report(session, links)
    except BaseException:
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker.pid or 0, signal.SIGINT)
        raise
    finally:
        for link in links:
            link.close()
        for worker in workers:
            worker.join()


def report(session: pytest.Session, links: list[Connection]) -> None:
    """Report what the workers send until all have ended."""
    hook = session.config.hook
    if terminal := session.config.pluginmanager.getplugin("terminalreporter"):
        terminal.showfspath = False
    running: dict[Connection, Place | None] = dict.fromkeys(links)
    while running:
        for link in wait([*running]):
            assert isinstance(link, Connection)
            try:
                reports, warned, running[link], problem = link.recv()
            except EOFError:
                if place := running.pop(link):
                    text = f"A worker died in {place[0]}. What it was to run next is missing."
                    dead = pytest.TestReport(*place, {}, "failed", text, "call")
                    hook.pytest_runtest_logreport(report=dead)
                continue
            for data in reports:
                made = hook.pytest_report_from_serializable(config=session.config, data=data)
                hook.pytest_runtest_logreport(report=made)
            for name, words, *rest in warned:
                message = warnings.WarningMessage(words[0], type(name, (Warning,), {}), *words[1:])
                hook.pytest_warning_recorded.call_historic(
                    kwargs=dict(zip(("when", "nodeid", "location"), rest, strict=True))
                    | {"warning_message": message}
                )
            if problem:
                raise RuntimeError(problem)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)


class Sender:
    """A plug-in that sends what came out of tests, in a worker."""

    def __init__(self, config: pytest.Config, link: Connection) -> None:
        self._config = config
        self._link = link
        self._reports: list[dict[str, Any]] = []
        self._warned: list[tuple[object, ...]] = []

    def send(self, item: pytest.Item | None, problem: str = "") -> None:
        """Send what came out, and the test that begins now."""
        place = item and (item.nodeid, item.location)
        self._link.send((self._reports, self._warned, place, problem))
        self._reports, self._warned = [], []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what came out of a test or its fixtures."""
        made = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._reports.append(made)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        """Keep a warning; its class may be one that no other process knows."""
        told = warning_message
        words = str(told.message), told.filename, told.lineno
        self._warned.append((told.category.__name__, words, when, nodeid, location))


def work(
    session: pytest.Session,
    groups: list[list[pytest.Item]],
    queue: int,
    others: list[Connection],
    link: Connection,
    folder: Path,
) -> None:
    """Run tests, in a worker."""
    atexit._clear()
    for other in others:
        other.close()
    config = session.config
    shared_folders.append(folder.parent)
    folder.mkdir()
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.getplugin("capturemanager").start_global_capturing()
    sender = Sender(config, link)
    config.pluginmanager.register(sender)
    try:
        first, items = os.getppid(), taken(groups, queue)
        item = next(items, None)
        while item and os.getppid() == first:
            sender.send(item)
            following = next(items, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        sender.send(None)
    except BaseException as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(Exception):
            session._setupstate.teardown_exact(None)
        if not isinstance(error, KeyboardInterrupt | BrokenPipeError):
            sender.send(None, traceback.format_exc())
    finally:
        atexit._run_exitfuncs()


def taken(groups: list[list[pytest.Item]], queue: int) -> Iterator[pytest.Item]:
    """The tests that this worker is to run."""
    while number := os.read(queue, NUMBER):
        yield from groups[int.from_bytes(number, "big")]
