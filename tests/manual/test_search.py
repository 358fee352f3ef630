"""The manual is searched from disk, without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.waiting import until

ROOT = Path(__file__).parents[2]
MOVE = ROOT / "docs/how-to/move.md"


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags are Python names."""


_Loader.add_multi_constructor("", lambda *_: None)


def _site(folder: Path) -> Path:
    """Two pages and one of how-to, made by the theme, plug-ins and hooks of the manual."""
    ours = yaml.load((ROOT / "mkdocs.yml").read_text(), _Loader)  # noqa: S506
    config = {name: ours[name] for name in ("site_name", "theme", "plugins")}
    hooks = "from manual.hooks import on_post_page, on_post_template\n"
    (folder / "hooks.py").write_text(hooks)
    pages = {"index.md": "# Start\n", "how-to/fans.md": "# Fans\nA quadrillion of blades.\n"}
    pages["how-to/move.md"] = MOVE.read_text()
    for name, text in pages.items():
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / name).write_text(text)
    shutil.copy(ROOT / "docs/search-worker.js", folder / "docs")
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config | {"hooks": ["hooks.py"]}))
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", folder / "mkdocs.yml"],
        cwd=ROOT,
        check=True,
    )
    return folder / "site"


def _results(browser: Chrome) -> set[str]:
    links = browser.find_elements(By.CSS_SELECTOR, "a.md-search-result__link")
    return {str(link.get_attribute("href")).partition("?")[0] for link in links}


@pytest.mark.browser
def test_the_manual_is_searched_from_disk(browser: Chrome, tmp_path: Path) -> None:
    site = _site(tmp_path)
    for page in ("index.html", "how-to/fans.html"):
        assert "https://unpkg" not in (site / page).read_text()
        browser.get((site / page).as_uri())
        box = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
        browser.execute_script("document.getElementById('__search').click()")
        until(box.is_displayed, "the search box", 10)
        box.send_keys("quadrillion")
        until(lambda: _results(browser), "a result", 20)
        (found,) = _results(browser)
        assert found.partition("#")[0] == (site / "how-to/fans.html").as_uri()
    box.clear()
    box.send_keys("roll back")
    section = (site / "how-to" / "move.html").as_uri() + "#roll-back"
    until(lambda: section in _results(browser), "the section", 20)
