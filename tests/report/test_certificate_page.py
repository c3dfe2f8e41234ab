"""The certificate as a page: everything it says, in words, and nothing in favour of the promise."""

import html
import json
import math
import re
import shutil
from dataclasses import replace

import pytest
from scipy.stats import norm

from graphveil import DpMlp, EdgeLevel, Gap, Local, Lpgnn, NodeLevel, NonPrivate, PublicFacts
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.cli.app import main
from graphveil.methods.local import LocalRecipe
from graphveil.privacy.certificate import Certificate
from graphveil.report.browser import VARIABLE, find_browser
from graphveil.report.certificate_page import certainty, certificate_page
from graphveil.runs.verify import SCOPE, Verdict

FACTS = PublicFacts(nodes=1000, features=20, classes=3)


def certificate(method, promise, **told):
    plan = method.plan(FACTS, promise)
    return Certificate.of(plan, plan.steps, method=method.name, mode=method.mode, parameters={}, **told)


def words(page):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page[page.index("<body>") : page.index("<script>")])).split())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "saved"
    DpMlp(steps=2).fit(worst_case_graph(seed=2)[0], NodeLevel(4, 1e-4), on_bad_rows="zero").save(folder)
    return folder


def call(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0)


def test_the_chance_of_a_right_guess_is_the_smaller_of_both_bounds():
    found = certificate(DpMlp(), NodeLevel(4, 1e-4))
    assert certainty(found) == pytest.approx(norm.cdf(found.implied["mu"] / 2), rel=1e-9)
    pure = replace(found, implied={}, epsilon=math.log(3), delta=0.0)
    assert certainty(pure) == pytest.approx(0.75)  # randomised response that lies once in four times
    assert certainty(replace(pure, delta=0.1)) == pytest.approx((3 + 0.1) / 4)
    assert certainty(replace(found, epsilon=None)) is None and certainty(replace(pure, epsilon=800.0)) == 1.0


def test_a_page_says_who_from_what_by_how_much_and_what_is_not_hidden():
    found = certificate(DpMlp(), NodeLevel(4, 1e-4))
    said = words(certificate_page(found, Verdict((), found.epsilon), "runs/a"))
    assert "✓ The promise HOLDS" in said and "One person's features, label and own contact list." in said
    assert "the same data with one person's record left blank" in said and "Epsilon 4 , delta 0.0001 is proved" in said
    assert f"at most {math.ceil(1000 * certainty(found)) / 10:g} times in 100" in said
    assert "What is not hidden that others list this person" in said and "1000 slots, 20 feature columns" in said
    assert "mean 3.0 %" in said and "own 97.0 %" in said and SCOPE in said and "DOES NOT HOLD" not in said
    for line in (*found.assumptions, *found.public):
        assert " ".join(line.split()) in said


def test_gaps_seeds_and_disagreements_are_said_in_words_not_by_colour_alone():
    found = certificate(Gap(mode="published"), EdgeLevel(4, 1e-5), seed=3)
    said = words(certificate_page(found, Verdict(("the <ledger> differs",), None)))
    assert "✗ The promise DOES NOT HOLD" in said and "GAP A1 the noise covers one directed entry" in said
    assert "WARNING seeded: not for release" in said and "the paper’s own accounting claims 4" in said
    assert (
        "✗ THE FILES DISAGREE: the <ledger> differs" in said and "the same data with one link added or removed" in said
    )
    assert "whether one particular link exists" in said and "features and labels are public" in said


def test_local_promises_name_every_part_and_what_is_sent_in_the_clear():
    found = certificate(Lpgnn(), Local(1.0, 3.0, "raw"))
    said = words(certificate_page(found, None))
    assert "WARNING NOT PROTECTED, SENT IN THE CLEAR" in said and "NOT CHECKED" in said
    assert "the features of every vertex: randomised before it leaves its owner, epsilon 1" in said
    assert "the contact list of every vertex: SENT IN THE CLEAR, not protected" in said
    assert "list entry NO FINITE VALUE" in said


def test_lists_alone_are_compared_by_one_entry_and_nobody_guesses_a_record():
    said = words(certificate_page(certificate(LocalRecipe(), Local("raw", "raw", 1.0))))
    assert "the same data with one entry of the contact list of one vertex, added or removed" in said
    assert "whether one particular entry is in the contact list of one person" in said and "73.2 times in 100" in said
    assert "left blank" not in said and "which of two records" not in said
    said = words(certificate_page(certificate(LocalRecipe(), Local("withheld", 1.0, 1.0))))
    assert "the same data with features, label and one entry of the contact list of one vertex, exchanged" in said
    assert "unlike in features, label and one entry of the contact list of one vertex, one person has" in said
    assert "for anybody else's" not in said, "of two contact lists all entries but one are alike"


def test_a_run_that_is_not_private_says_so():
    said = words(certificate_page(certificate(DpMlp(), NonPrivate())))
    assert "✗ Nothing is protected" in said and "HOLDS" not in said
    unbounded = words(certificate_page(replace(certificate(DpMlp(), NodeLevel(4, 1e-4)), epsilon=None, holds=False)))
    assert "No number bounds what can be learned about one person." in unbounded and "times in 100" not in unbounded


def test_a_notebook_shows_the_same_lines_as_the_text():
    for found in (
        certificate(Gap(mode="published"), EdgeLevel(4, 1e-5), seed=3),
        certificate(Lpgnn(), Local(1.0, 3.0, "raw")),
        certificate(DpMlp(), NonPrivate()),
    ):
        shown = html.unescape(re.sub(r"<[^>]+>", " ", found._repr_html_()))
        assert shown.split() == str(found).split()
    marked = certificate(Gap(mode="published"), EdgeLevel(4, 1e-5), seed=3)._repr_html_()
    assert re.search(r"Gap A1</th><td[^>]*><span style=\"color:#b3261e", marked)
    assert "<script" not in replace(found, method="<script>")._repr_html_()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "dark")])
def test_the_page_fits_phone_and_desk(run, shown, tmp_path, width, scheme):
    page_file = tmp_path / "certificate.html"
    assert call("certificate", run, "--html", page_file) == 0
    with shown(page_file, width, scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".verdict").inner_text().startswith("✓ The promise HOLDS")
        bar = page.locator(".bar").first.bounding_box()
        parts = [part.bounding_box()["width"] for part in page.locator(".bar").first.locator("span").all()]
        assert bar["width"] > 300 and sum(parts) == pytest.approx(bar["width"], abs=4)
        page.screenshot(path=tmp_path / f"certificate-{width}.png", full_page=True)


def test_the_same_page_as_pdf(run, tmp_path):
    if find_browser() is None:
        pytest.skip("no chromium is installed: no page is printed")
    assert call("certificate", run, "--pdf", tmp_path / "certificate.pdf") == 0
    assert (tmp_path / "certificate.pdf").read_bytes().startswith(b"%PDF")


def test_without_a_browser_the_error_says_what_to_do(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, "no-such-browser")
    out = tmp_path / "certificate.pdf"
    assert call("certificate", run, "--pdf", out) == 2
    err = capsys.readouterr().err
    assert "apt-get install chromium" in err and "--html" in err and len(err.splitlines()) == 1 and not out.exists()


def test_a_forged_certificate_makes_a_page_that_says_so(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    body = json.loads((copy / "certificate.json").read_text())
    body["epsilon"] = 0.1
    (copy / "certificate.json").write_text(json.dumps(body))
    assert call("certificate", copy, "--html", tmp_path / "page.html") == 0
    assert "✗ THE FILES DISAGREE" in (tmp_path / "page.html").read_text()
