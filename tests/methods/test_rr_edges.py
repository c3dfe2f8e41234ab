"""Randomised response on lists: infinite as published, exactly the promise over whole lists, refused where it would not fit."""

import math
from itertools import chain, combinations

import numpy as np
import pytest

import graphveil as gv
from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.randomizers import Contacts, TwoHopResponse
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.noise import Noise
from graphveil.runs.verify import verify_run

QUICK = {"epochs": 10, "feature_steps": 2, "hidden": 8}
PATH = [(0, 1), (1, 2), (2, 3), (3, 4)]


def lists_of(edges, nodes=5):
    return Contacts.of([sorted({b for a, b in [*edges, *((b, a) for a, b in edges)] if a == v}) for v in range(nodes)])


@pytest.fixture(scope="module")
def graph():
    data = powerlaw_sbm(nodes=200, classes=3, features=6, seed=1)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return random_split(data, seed=1, fractions=(0.5, 0.25, 0.25))


def test_an_edge_of_others_decides_who_can_be_reported():
    """On a path 0 can report 1 and 2; the edge {1, 3}, which 0 does not have, adds 3: an infinite ratio."""
    without, with_edge = (TwoHopResponse(1.0, lists_of(edges)) for edges in (PATH, [*PATH, (1, 3)]))
    report = np.array([1, 3])
    assert without.log_density(0, report) == -math.inf
    assert with_edge.log_density(0, report) > -math.inf
    assert without.epsilon == math.inf and without.claim == 1.0


def test_two_hop_reports_follow_their_probabilities():
    """20 000 disjoint paths of five, six sigma: false alarms below 2e-8."""
    one, draws = lists_of(PATH), 20_000
    copies = np.repeat(5 * np.arange(draws), len(one.targets)) + np.tile(one.targets, draws)
    starts = np.concatenate([[0], np.cumsum(np.tile(one.degrees, draws))])
    randomizer = TwoHopResponse(1.0, Contacts(starts, copies))
    subsets = [list(s) for s in chain.from_iterable(combinations((1, 2), k) for k in range(3))]
    mass = np.exp([TwoHopResponse(1.0, one).log_density(0, np.array(s, dtype=int)) for s in subsets])
    assert mass.sum() == pytest.approx(1.0)
    reports = randomizer.randomize(randomizer.lists, None, Noise(3))
    heads = reports.owners % 5 == 0
    has = np.zeros((draws, 5), dtype=bool)
    has[reports.owners[heads] // 5, reports.targets[heads] % 5] = True
    assert not has[:, [0, 3, 4]].any()
    share = np.array([np.mean((has[:, 1] == (1 in s)) & (has[:, 2] == (2 in s))) for s in subsets])
    assert np.all(np.abs(share - mass) <= 6 * np.sqrt(mass / draws))


def test_two_hops_of_a_hub_do_not_overflow():
    """300 common contacts: a count in eight bits would wrap around to 44, and 256 of them to nothing."""
    edges = [(hub, leaf) for hub in (0, 1) for leaf in range(2, 258)]
    reach = TwoHopResponse(1.0, lists_of(edges, 258)).reach()
    assert reach[0, 1] == 1 and reach[0, 2] == 2 and reach[0, 0] == 0


def test_published_names_its_gaps_and_no_client_runs_it(graph, tmp_path):
    model = gv.RrEdges(mode="published", **QUICK).fit(graph, gv.Local(3, 3, 2.0), seed=1)
    certificate = model.certificate
    assert certificate.epsilon is None and certificate.epsilon_claimed == 8.0 and not certificate.holds
    assert [gap.code for gap in certificate.gaps] == ["G4", "G5", "G6"]
    with pytest.raises(PrivacyError, match="no client"):
        TwoHopResponse(1.0).randomize(0, None, Noise(0))
    model.save(tmp_path / "run")
    assert verify_run(tmp_path / "run") == ([], None)


def test_sound_lists_cost_the_promise_for_an_exchange_of_one_contact(graph, tmp_path):
    model = gv.RrEdges(**QUICK).fit(graph, gv.Local(3, 3, 8.0), seed=1)
    certificate = model.certificate
    assert certificate.holds and certificate.per_list == pytest.approx(8.0, abs=1e-6)
    assert certificate.epsilon == pytest.approx(14.0, abs=1e-6)
    model.save(tmp_path / "run")
    assert verify_run(tmp_path / "run")[0] == []


def test_lists_that_would_be_too_long_are_refused_from_public_facts():
    promise = gv.Local(3, 3, 1.0)
    with pytest.raises(InputError, match="max_edges"):
        gv.RrEdges().plan(PublicFacts(20_000, 6, 3), promise)
    gv.RrEdges().plan(PublicFacts(2_000, 6, 3), promise)
    with pytest.raises(InputError, match="max_edges"):
        TwoHopResponse(1.0, lists_of(PATH), most=5).reach()


@pytest.mark.parametrize("promise", [gv.Local(3, 3, "withheld"), gv.Local("withheld", 3, 1)])
def test_impossible_requests_are_refused(graph, promise):
    with pytest.raises(InputError):
        gv.RrEdges().fit(graph, promise)
