"""A real browser, where there is one."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tests.cli.conftest import graphveil  # noqa: F401 - a fixture


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
