"""Checks of a page in a browser: by day and by night, wide and narrow, with names for all controls.

Contrast is that of WCAG 2, 1.4.3: at least 4.5 between a text and what is behind it.
"""

from __future__ import annotations

from typing import Any

WIDTHS, SCHEMES = (1280, 360), ("light", "dark")
NAMED = {"button", "textbox", "searchbox", "combobox", "link", "table", "image", "group", "region"}
FAINT = """
const parts = (colour) => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
const linear = (byte, value = byte / 255) =>
  value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const colour = parts(getComputedStyle(one).backgroundColor);
    if (colour[3] === undefined || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const found = new Set();
for (const one of document.querySelectorAll("body *:not(script, style, #nodes text, option)")) {
  if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
  if (!one.checkVisibility() || one.closest("title")) continue;
  const style = getComputedStyle(one), drawn = one.namespaceURI.endsWith("svg");
  const [a, b] = [light(parts(drawn ? style.fill : style.color)), light(behind(one))];
  const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  const words = one.textContent.trim().slice(0, 30);
  if (contrast < 4.5) found.add(`${contrast.toFixed(1)}: ${one.tagName} ${words}`);
}
return [...found];
"""
WIDEST = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"


def shown_as(browser: Any, width: int, scheme: str) -> None:
    """Show pages this many pixels wide, in the colours of a day (`light`) or a night (`dark`)."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})


def faults(browser: Any) -> list[str]:
    """What is wrong with the open page: too wide, too faint, nameless, or told on its console."""
    found = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            shown_as(browser, width, scheme)
            widest, room = browser.execute_script(WIDEST)
            if widest > room:
                found.append(f"{widest} px wide where {room} are")
            found += [f"{scheme}: contrast {words}" for words in browser.execute_script(FAINT)]
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    log = browser.get_log("browser")
    return found + nameless(browser) + [e["message"] for e in log if e["level"] == "SEVERE"]


def nameless(browser: Any) -> list[str]:
    """Controls, tables and pictures that a screen reader has no name for."""
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    seen = [node for node in tree if not node["ignored"]]
    roles = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in seen]
    return [f"a {role} without a name" for role, name in roles if role in NAMED and not name]
