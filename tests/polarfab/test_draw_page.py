"""The page in a real browser, opened from disk: clicks, paths and ports."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

import polarfab
from compilers.proof.explanation import explain
from compilers.tables.build import Build
from polarfab import cli
from tests.page_checks import faults


@pytest.fixture
def polarfab_verb(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Run `polarfab draw …` in this process; gives exit code and stderr."""

    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["polarfab", "draw", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0), capfd.readouterr().err

    return run


@pytest.fixture
def build(tmp_path: Path) -> Build:
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text("name: lab\ntopology: {family: polarfly, q: 7}\nhosts_per_node: 2\n")
    return polarfab.Fabric.from_spec(fabric).save(tmp_path / "build").build


def open_page(browser: Chrome, page: Path) -> None:
    browser.get(page.as_uri())
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert errors == []


def node(browser: Chrome, vertex: int) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, f'use[data-vertex="{vertex}"]')


def click(browser: Chrome, vertex: int) -> None:
    ActionChains(browser).move_to_element(node(browser, vertex)).click().perform()


def drawn(browser: Chrome, kind: str) -> list[list[int]]:
    found = browser.find_elements(By.CSS_SELECTOR, f"#overlay path.{kind}")
    return [[int(v) for v in (path.get_attribute("data-path") or "").split()] for path in found]


@pytest.mark.browser
def test_two_clicks_show_the_compiled_path(
    browser: Chrome, build: Build, polarfab_verb, tmp_path: Path
) -> None:
    source, destination = 3, 40
    page = tmp_path / "lab.html"
    assert polarfab_verb(tmp_path / "build", "-o", page)[0] == 0
    open_page(browser, page)
    click(browser, source)
    click(browser, destination)

    found = explain(build, source, destination)
    assert drawn(browser, "minimal") == [list(found.minimal)]
    text = browser.find_element(By.ID, "paths").text
    for hop in found.hops:
        names = build.wiring.names
        here = f"{names[hop.switch]}:{build.wiring.port_name(hop.switch, hop.port)}"
        there = f"{names[hop.next_switch]}:{build.wiring.port_name(hop.next_switch, hop.next_port)}"
        assert f"{here} → {there}" in text

    alternates = drawn(browser, "alternate")
    graph = build.topology.graph
    assert alternates or len(found.minimal) == 2
    for path in alternates:
        assert (path[0], path[-1]) == (source, destination)
        assert path[1] != found.minimal[1]
        assert len(set(path)) == len(path)
        assert tuple(path[1:]) == explain(build, path[1], destination).minimal
        assert all(v in graph.neighbours(u) for u, v in pairwise(path))
    assert browser.save_screenshot(str(tmp_path / "lab.png"))
    assert (tmp_path / "lab.png").stat().st_size > 20_000


@pytest.mark.browser
def test_a_path_goes_around_nodes_that_are_not_on_it(
    browser: Chrome, polarfab_verb, tmp_path: Path
) -> None:
    page = tmp_path / "row.html"
    assert polarfab_verb("polarfly", "--q", 3, "-o", page)[0] == 0
    open_page(browser, page)
    click(browser, 0)  # 0, 7, 1, 5, 2, 4 stand in one row
    click(browser, 2)
    (path,) = browser.find_elements(By.CSS_SELECTOR, "#overlay path.minimal")
    assert path.get_attribute("data-path") == "0 4 2"
    assert re.sub(r"[^A-Z]", "", path.get_attribute("d") or "") == "MQL"


@pytest.mark.browser
def test_alternates_are_those_of_the_tables(browser: Chrome, polarfab_verb, tmp_path: Path) -> None:
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text(
        "name: lab\ntopology: {family: polarfly, q: 5}\n"
        "routing: {balance: compact-valiant, disjoint: edge}\n"
    )
    build = polarfab.Fabric.from_spec(fabric).save(tmp_path / "build").build
    page = tmp_path / "lab.html"
    polarfab_verb(tmp_path / "build", "-o", page)
    source, destination = 0, 30
    open_page(browser, page)
    click(browser, source)
    click(browser, destination)

    tables, wiring = build.tables, build.wiring
    chosen = int(tables.routes.egress[source, destination])
    ports = tables.classes.alternate[source, chosen][tables.classes.weight[source, chosen, 1:] > 0]
    over = [int(wiring.far_by_port()[source, port]) for port in ports]
    assert 0 < len(over) < len(build.topology.graph.neighbours(source)) - 1
    shown = drawn(browser, "alternate")
    assert sorted(path[1] for path in shown) == sorted(over)
    assert drawn(browser, "minimal") == [list(explain(build, source, destination).minimal)]
    assert "Alternates in the tables" in browser.find_element(By.ID, "paths").text


@pytest.mark.browser
def test_hover_tells_what_a_node_is(
    browser: Chrome, build: Build, polarfab_verb, tmp_path: Path
) -> None:
    page = tmp_path / "lab.html"
    polarfab_verb(tmp_path / "build", "-o", page)
    open_page(browser, page)
    ActionChains(browser).move_to_element(node(browser, 25)).perform()
    tip = browser.find_element(By.ID, "tip").text
    coordinates = ", ".join(map(str, build.topology.coordinates[25]))
    for words in ["25", "W", f"({coordinates})", "quadrics", "eth1 →", "h25-0", "h25-1"]:
        assert words in tip
    near = drawn(browser, "near")
    assert sorted(v for _, v in near) == build.topology.graph.neighbours(25).tolist()


@pytest.mark.browser
def test_a_page_of_real_hardware_says_where_a_node_stands(
    browser: Chrome, polarfab_verb, tmp_path: Path
) -> None:
    example = Path(__file__).parents[2] / "examples/q7/fabric.yaml"
    build = polarfab.Fabric.from_spec(example).save(tmp_path / "build").build
    page = tmp_path / "q7.html"
    polarfab_verb(tmp_path / "build", "-o", page)
    open_page(browser, page)
    ActionChains(browser).move_to_element(node(browser, 30)).perform()
    tip = browser.find_element(By.ID, "tip").text
    hardware = build.hardware
    assert hardware is not None
    rack = hardware.rack_names[hardware.rack[30]]
    assert tip.startswith(build.wiring.names[30])
    assert f"stands in {rack} unit {hardware.unit[30]}" in tip
    assert f"{build.wiring.port_name(30, int(build.wiring.port[30, 0]))} →" in tip


@pytest.mark.browser
def test_typing_racks_and_escape(browser: Chrome, polarfab_verb, tmp_path: Path) -> None:
    page = tmp_path / "star.html"
    words = ["polarstar", "--q", "3", "--supernode", "inductive-quad", "--degree", "3"]
    assert polarfab_verb(*words, "--mark", "0,1", "-o", page)[0] == 0
    open_page(browser, page)
    assert Select(browser.find_element(By.ID, "rack")).first_selected_option.text == "supernode0"
    Select(browser.find_element(By.ID, "other")).select_by_visible_text("supernode2")
    pairs = drawn(browser, "pair")
    assert {(u // 8, v // 8) for u, v in pairs} <= {(0, 2)}

    browser.find_element(By.ID, "from").send_keys("7", Keys.TAB)
    browser.find_element(By.ID, "to").send_keys("100", Keys.TAB)
    (path,) = drawn(browser, "minimal")
    assert (path[0], path[-1]) == (7, 100)
    assert len(path) <= 4
    assert browser.current_url.endswith("#7/100")
    browser.refresh()
    assert drawn(browser, "minimal") == [path]
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert browser.find_elements(By.CSS_SELECTOR, "#overlay *") == []


@pytest.mark.browser
def test_an_unknown_name_clears_the_path_before(
    browser: Chrome, polarfab_verb, tmp_path: Path
) -> None:
    """And all that the page shows can be read in the dark, on a narrow screen, by its name."""
    page = tmp_path / "er7.html"
    polarfab_verb("polarfly", "--q", "7", "-o", page)
    open_page(browser, page)

    def typed(word: str) -> str:
        field = browser.find_element(By.ID, "to")
        field.clear()
        field.send_keys(word, Keys.TAB)
        return browser.find_element(By.ID, "told").text

    browser.find_element(By.ID, "from").send_keys("3", Keys.TAB)
    assert typed("40") == ""
    assert len(drawn(browser, "minimal")) == 1
    assert faults(browser) == []
    assert typed("nobody") == "No node is called nobody."
    assert browser.find_element(By.ID, "to").get_attribute("aria-invalid") == "true"
    assert browser.find_elements(By.CSS_SELECTOR, "#overlay *") == []
    assert browser.find_element(By.ID, "paths").text == ""
    assert "#" not in browser.current_url
    assert typed("3") == "From and to are the same node."
    assert typed("40") == ""
    assert browser.current_url.endswith("#3/40")
    browser.get(f"{page.as_uri()}#3/someone")
    assert browser.find_element(By.ID, "told").text == "No node is called someone."
    assert browser.find_elements(By.CSS_SELECTOR, "#overlay *") == []


@pytest.mark.browser
def test_ports_in_their_order_and_zoom_by_keyboard(
    browser: Chrome, polarfab_verb, tmp_path: Path
) -> None:
    page = tmp_path / "er11.html"
    assert polarfab_verb("polarfly", "--q", "11", "-o", page)[0] == 0
    browser.get(f"{page.as_uri()}#0/1")
    heads = browser.find_elements(By.CSS_SELECTOR, "#node th")
    ports = [head.text for head in heads if head.text.startswith("eth")]
    assert ports == [f"eth{number}" for number in range(1, len(ports) + 1)]
    assert len(ports) > 10
    assert "cluster" in [head.text for head in heads]

    def view() -> list[float]:
        box = browser.find_element(By.ID, "picture").get_dom_attribute("viewBox")
        return [float(number) for number in (box or "").split()]

    whole = view()
    browser.execute_script("document.getElementById('picture').focus()")
    ActionChains(browser).send_keys("+", Keys.ARROW_RIGHT).perform()
    assert view()[2] < whole[2]
    assert view()[0] > whole[0]
    ActionChains(browser).send_keys("0").perform()
    assert view() == whole
