"""The status page in a browser, on a fabric without switches: names, times, keyboard, colours."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread
from time import localtime, strftime, time
from types import SimpleNamespace

import numpy as np
import pytest
import uvicorn
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from controller.management.http_api import Api
from controller.management.metrics import Metrics
from controller.management.tokens import Tokens
from controller.state import Overview, State
from controller.switches.events import LinkDown, SwitchLeft
from controller.switches.session import LiveFabric
from tests.compilers.fabrics import polarfly_build
from tests.controller.makers import loaded
from tests.controller.management.site_client import Client
from tests.controller.management.test_alerts import Ports
from tests.page_checks import faults
from tests.waiting import until

pytestmark = pytest.mark.browser
Q, SWITCHES = 11, 133
DAYS_AGO = time() - 3.5 * 86400
HANGING = """
AbortSignal.timeout = () => AbortSignal.abort();
window.fetch = (_, { signal }) =>
  new Promise((_, fail) => { if (signal?.aborted) fail(signal.reason); });
heard = 1;
turn();
"""


@pytest.fixture(scope="module")
def overview():
    """A fabric of q = 11: the last switch has left, one link is dead."""
    build = replace(polarfly_build(Q), identity="0123456789abcdef")
    wiring = build.wiring
    fabric = LiveFabric(loaded(build), lambda *_: ("type", "code"))
    for vertex in range(SWITCHES - 1):
        fabric.connected(vertex, vertex + 1, f"192.0.2.9:{40000 + vertex}")
        fabric.present[vertex].last_read_at = fabric.clock()
        fabric.synced(fabric.present[vertex])
    dead = np.zeros(wiring.far.shape, bool)
    far = int(wiring.far[0, 10])
    back = wiring.far[far].tolist().index(0)
    dead[0, 10] = dead[far, back] = True
    ports = Ports(dead, np.zeros(SWITCHES, bool))
    site = Overview(lambda: State.of(fabric, ports))
    ends = [wiring.port_name(v, int(wiring.port[v, k])) for v, k in ((0, 10), (far, back))]
    site.happened(LinkDown("0", ends[0], str(far), ends[1], "port down", at=DAYS_AGO))
    site.happened(SwitchLeft(str(SWITCHES - 1)))
    return site


@pytest.fixture(scope="module")
def page(browser, overview):
    """The page, open and filled."""
    still = SimpleNamespace(
        progress=dict, history=SimpleNamespace(entries_as_data=list), most_switches=SWITCHES
    )
    api = Api(overview, Metrics(overview), Tokens(()), None, still, None)
    site = Client(api).site
    site.clock = lambda: 0.0
    config = uvicorn.Config(site, port=0, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    (listener,) = server.servers[0].sockets
    browser.get(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    until(lambda: len(texts(browser, "#log li")) == 2, limit=20)
    yield browser
    browser.get("about:blank")
    server.should_exit = True
    thread.join()


def texts(browser, where):
    script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)"
    return browser.execute_script(script, where)


def press(browser, *keys):
    ActionChains(browser).send_keys(*keys).perform()


def focused(browser):
    return browser.execute_script("return document.activeElement.textContent")


def test_names_of_switches_and_ports_and_each_dead_link_once(page, overview):
    assert sorted(texts(page, ".rack button"), key=int) == [str(v) for v in range(SWITCHES)]
    (link,) = overview.state_for_page()["links"]
    assert (link["port"], link["far_port"][:3]) == ("eth11", "eth")
    ends = [link[word] for word in ("node", "port", "far_node", "far_port")]
    assert [row.split() for row in texts(page, "#dead tbody tr")] == [
        [*ends, "3", "d", "port", "down"]
    ]
    assert texts(page, "#amiss tbody tr")[0].split()[:2] == ["132", "absent"]


def test_events_have_a_time_and_an_age(page):
    newest, oldest = texts(page, "#log li")
    assert newest.endswith("switch 132 left")
    assert "3 d ago" in oldest
    assert "link 0 eth11 to" in oldest
    whole = page.execute_script("return document.querySelector('#log li:last-child time').title")
    assert whole == strftime("%Y-%m-%d %H:%M:%S", localtime(DAYS_AGO))
    assert oldest.startswith(whole)


def test_by_keyboard(page):
    """Tab goes past the switches in one step; arrow keys go among them; Enter, Escape."""
    page.execute_script("document.getElementById('find').focus()")
    press(page, Keys.TAB)
    first = focused(page)
    press(page, Keys.TAB)
    assert page.execute_script("return document.activeElement.closest('.rack')") is None
    ActionChains(page).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    assert focused(page) == first
    press(page, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ARROW_LEFT)
    assert focused(page) == first
    press(page, Keys.END, Keys.ENTER)
    last = focused(page)
    assert last != first
    until(lambda: texts(page, "#chosen h2") == [f"Switch {last}"])
    ports = [row.split()[0] for row in texts(page, "#ports tbody tr")]
    assert ports == [f"eth{k}" for k in range(1, len(ports) + 1)]
    assert len(ports) >= Q
    press(page, Keys.ESCAPE)
    until(lambda: texts(page, "#chosen:not([hidden])") == [])
    assert focused(page) == last

    page.execute_script("document.getElementById('find').focus()")
    press(page, "13")
    assert texts(page, "#found") == ["5 of 133"]
    press(page, Keys.ENTER)
    until(lambda: texts(page, "#chosen h2") == ["Switch 13"])
    page.execute_script("document.getElementById('find').value = ''; match()")


def test_narrow_and_dark_with_names_for_screen_readers(page):
    page.execute_script("document.querySelector('.rack button').click()")
    assert faults(page) == []


def test_a_controller_that_hangs_is_told(page):
    """Its answers never come: the page gives up on them, and asks again."""
    assert texts(page, "#answer") == ["live"]
    page.execute_script(HANGING)
    until(lambda: texts(page, "#answer")[0].startswith("no answer from the controller"), limit=20)
