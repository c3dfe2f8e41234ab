"""A real browser, where there is one."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from graphveil.report.browser import find_browser, flags
from tests.cli.conftest import graphveil  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def browser():
    """Chromium, or a reason to skip."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is looked at")
    found = find_browser()
    if found is None:
        pytest.skip("no chromium is installed: no page is looked at")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=flags())
        yield running
        running.close()


@pytest.fixture
def shown(browser):
    """``with shown(path, width) as page``: the page, loaded without a word on the console and without the network."""

    @contextmanager
    def show(path, width, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        page, said, asked = context.new_page(), [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        yield page
        context.close()
        assert said == [] and [url for url in asked if not url.startswith(("file:", "data:"))] == []

    return show
