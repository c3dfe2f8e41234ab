"""The dashboard in a real browser: it shows what is there, follows what arrives, and says nothing on the console."""

import json
import os
from pathlib import Path

import pytest

from graphveil.service.app import create_app
from graphveil.service.dashboard import page
from graphveil.service.summary import attacks_of
from tests.service.conftest import lines_of, listening, unlimited
from tests.service.test_service import train

WIDTHS = (390, 1440)
PICTURES = os.environ.get("GRAPHVEIL_PICTURES")  # a folder: the pictures of the docs are made there


@pytest.fixture
def collected(service, people):
    """A collection with reports, refusals, a model and an attack."""
    service.create(options={"epochs": 5})
    service.send(lines_of(people, 0, 250))
    service.send([{"id": "bad", "label": 9, "contacts": []}, {"id": "p3", "label": 2, "contacts": []}, 7], "west")
    assert train(service).state == "done"
    found = {
        "attack": "link stealing",
        "findings": [{"name": "all", "auc": {"value": 0.52, "low": 0.49, "high": 0.55}}],
    }
    folder = next((service.store.folder / "runs").iterdir()) / "attacks"
    folder.mkdir()
    (folder / "lsa.json").write_text(json.dumps(found))
    (folder / "broken.json").write_text("{")
    return service


def test_the_summary_has_counts_rounds_quality_words_and_budgets(collected):
    told = collected("GET", "/v1/collections/demo/summary", "analyst").json()
    assert (told["reports"], told["people"], told["holders"]) == (250, 250, 1)
    assert sum(one["reports"] for one in told["arrivals"]) == 250
    assert {one["reason"]: one["reports"] for one in told["refused"]} == {
        "label: outside 0..2": 1,
        "a record of another holder": 1,
        "not a record: an object with the field 'id'": 1,
    }
    assert [one["name"] for one in told["rounds"]] == ["first"] and told["rounds"][0]["state"] == "open"
    labels = next(one for one in told["budgets"] if one["part"] == "labels")
    assert labels["allowed"] == 3 and labels["left"] == pytest.approx(0)
    assert told["paid"] == [{"stage": "first", "epsilon": pytest.approx(3), "records": 250}]
    assert told["model"]["holds"] and "PRIVACY CERTIFICATE" in told["model"]["words"][0]
    assert told["model"]["figures"]["accuracy"] > 0.8
    assert {one["attack"] for one in told["model"]["attacks"]} == {"link stealing", "broken"}
    assert collected("GET", "/v1/collections/demo/summary", "east").status_code == 403
    assert attacks_of(Path("nowhere")) == []


def test_the_page_needs_nothing_from_elsewhere():
    body, policy = page()
    assert "default-src 'none'" in policy and "/*" not in body.split("<body>")[1].split("<script>")[0]
    assert "https://" not in body and body.count("http://") == body.count("http://www.w3.org/2000/svg")
    assert create_app(unlimited(Path("nowhere"))).docs_url is None


def test_it_renders_and_follows_what_arrives_on_a_phone_and_on_a_desk(collected, browser):
    from playwright.sync_api import expect

    app = collected.client.app
    with listening(app) as url:
        for number, width in enumerate(WIDTHS):
            view = browser.new_page(viewport={"width": width, "height": 900})
            said, asked = [], []
            view.on("console", lambda message, said=said: said.append(message.text))
            view.on("pageerror", lambda error, said=said: said.append(str(error)))
            view.on("request", lambda request, asked=asked: asked.append(request.url))
            view.goto(f"{url}/#token={collected.tokens['analyst']}")
            tile = view.locator(".tile b").first
            expect(tile).to_have_text(str(250 + number), timeout=15_000)
            assert "token" not in view.url and view.locator("#status").text_content().startswith("live")
            assert "The promise holds" in view.locator("#certificate").text_content()
            assert "a record of another holder" in view.locator("#refused").text_content()
            assert "AUC 0.520" in view.locator("#attacks").text_content()
            assert f"{250 + number} records" in view.locator("#paid").text_content()
            assert view.evaluate("document.documentElement.scrollWidth") <= width
            collected.send([{"id": f"new-{number}", "contacts": []}])
            expect(tile).to_have_text(str(251 + number), timeout=15_000)
            if PICTURES:
                view.screenshot(path=f"{PICTURES}/service-{width}.png", full_page=True)
            assert said == [] and all(one.startswith((url, "data:")) for one in asked)
            view.close()
