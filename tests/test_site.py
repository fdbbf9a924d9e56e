"""The built site in a headless browser: errors, links, pictures, accessibility.

    make docs
    npm pack axe-core && tar -xzf axe-core-*.tgz package/axe.min.js
    FSJAX_AXE=package/axe.min.js python -m pytest -m slow tests/test_site.py

``FSJAX_SITE`` names another folder than ``build/site``, ``FSJAX_AXE`` the file of axe-core, without
which accessibility is not tested.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

SITE = Path(os.environ.get("FSJAX_SITE", Path(__file__).parents[1] / "build" / "site"))
AXE = os.environ.get("FSJAX_AXE")
PAGES = sorted(str(page.relative_to(SITE)) for page in SITE.rglob("*.html"))

#: Pages of Sphinx without content of ours; their links are followed from other pages.
GENERATED = ("_static/", "_modules/", "genindex", "py-modindex", "search")
PAGES = [page for page in PAGES if not page.startswith(GENERATED)]

#: Width in pixels, height, and colour scheme.
SCREENS = {"wide": (1280, 900, "light"), "narrow": (390, 844, "dark")}

pytestmark = pytest.mark.long

_FACTS = """
const absolute = (element, name) => new URL(element.getAttribute(name), document.baseURI).href;
return {
  ids: [...document.querySelectorAll('[id], a[name]')].map(e => e.id || e.name),
  links: [...document.querySelectorAll('a[href]')].map(e => absolute(e, 'href')),
  files: [...document.querySelectorAll('img[src]')].map(e => absolute(e, 'src')),
}
"""

_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then(result => done(
  result.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(
    v => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200),
          v.nodes[0].failureSummary.slice(0, 300)]))
);
"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (SITE / "index.html").is_file():
        pytest.skip(f"no site in {SITE}: run make docs, or set FSJAX_SITE")
    handler = functools.partial(_Handler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    session = webdriver.Chrome(options, webdriver.ChromeService(driver))
    session.set_script_timeout(300)
    session.set_page_load_timeout(300)
    yield session
    session.quit()


def show(browser: Any, screen: str) -> None:
    """Gives the browser the size and colour scheme of a screen."""
    width, height, scheme = SCREENS[screen]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": screen == "narrow"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def visit(browser: Any, url: str) -> None:
    """Opens a page and waits until its formulas are drawn."""
    browser.get(url)
    browser.execute_async_script(
        "const done = arguments[0];"
        "const ready = () => window.MathJax?.startup?.promise ?? Promise.resolve();"
        "ready().then(() => requestAnimationFrame(() => done()));"
    )


def messages(browser: Any) -> list[str]:
    """The errors of the console since the last call."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture(scope="module")
def facts(address: str, browser: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """What each page holds, by screen and page."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for screen in SCREENS:
        show(browser, screen)
        found[screen] = {}
        for page in PAGES:
            messages(browser)
            visit(browser, address + page)
            found[screen][page] = browser.execute_script(_FACTS)
            found[screen][page]["errors"] = messages(browser)
    return found


def report(problems: dict[str, Any]) -> None:
    """Fails with a line for each page that has a problem."""
    assert not problems, "\n".join(f"{page}: {json.dumps(what)}" for page, what in problems.items())


@pytest.mark.parametrize("screen", SCREENS)
def test_no_page_has_errors(facts: dict[str, Any], screen: str) -> None:
    report({page: fact["errors"] for page, fact in facts[screen].items() if fact["errors"]})


def test_internal_links_and_pictures_exist(facts: dict[str, Any], address: str) -> None:
    problems = {}
    ids = {page: set(fact["ids"]) for page, fact in facts["wide"].items()}
    for page, fact in facts["wide"].items():
        broken = []
        for url in {*fact["links"], *fact["files"]}:
            if not url.startswith(address):
                continue
            target, anchor = urldefrag(url.removeprefix(address))
            target = unquote(target) or "index.html"
            if not (SITE / target).is_file():
                broken.append(url)
            elif anchor and target in ids and unquote(anchor) not in ids[target]:
                broken.append(url)
        if broken:
            problems[page] = sorted(broken)
    report(problems)


@pytest.mark.parametrize("screen", SCREENS)
def test_pages_are_accessible(address: str, browser: Any, screen: str) -> None:
    if AXE is None or not Path(AXE).is_file():
        pytest.skip("FSJAX_AXE names no file of axe-core")
    script = Path(AXE).read_text()
    show(browser, screen)
    problems = {}
    for page in PAGES:
        visit(browser, address + page)
        browser.execute_script(script)
        if findings := browser.execute_async_script(_AXE):
            problems[page] = findings
    report(problems)


def test_summary_for_machines_names_every_page() -> None:
    text = (SITE / "llms.txt").read_text()
    assert text.startswith("# fsjax\n")
    for page in PAGES:
        assert f"({page})" in text, page
