"""Forecasts read public facts alone, and their bands are quantiles of what the method reached on stand-ins."""

import math

import numpy as np
import pytest

from graphveil import DpMlp, NodeLevel, PublicFacts
from graphveil.audit.central.neighbours import everybody_changed, neighbours, worst_case_graph
from graphveil.errors import InputError
from graphveil.experiments.engines.serial import Serial
from graphveil.experiments.execute import failed
from graphveil.experiments.forecast import QUANTILES, forecast, public_facts
from graphveil.experiments.guesses import Guess, Guesses
from graphveil.graph import load_dataset, write_npz
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation

FACTS = PublicFacts(60, 6, 3)
SMALL = ("--engine", "serial", "--scenarios", 2, "--epsilons", "1,4", "--set", "steps=2")


class Told:
    """An engine whose runs reach what their options say."""

    name = "told"

    def __init__(self, broken=0):
        self.broken = broken

    def run(self, runs):
        for number, run in enumerate(runs):
            if number < self.broken:
                yield failed(run, "no such luck")
                continue
            accuracy = run.data["options"]["feature_strength"] * run.promise["epsilon"] / 4
            yield failed(run, "") | {"status": "done", "error": None, "metrics": {"test_accuracy": accuracy}}


def bands_of(engine, count=9, **stated):
    guesses = Guesses.about(FACTS, **stated)
    return forecast(DpMlp(), [NodeLevel(2), NodeLevel(4)], FACTS, guesses, engine, scenarios=count, seed=3)


def test_a_band_is_the_quantiles_over_the_scenarios():
    found = bands_of(Told())
    strengths = np.array([scenario["feature_strength"] for scenario in Guesses.about(FACTS).scenarios(9, 3)])
    for band, factor in zip(found.bands, (0.5, 1), strict=True):
        low, high = np.quantile(factor * strengths, QUANTILES)
        assert (band.low, band.high) == pytest.approx((low, high))
        assert band.median == pytest.approx(factor * np.median(strengths))
        thirds = np.median(np.sort(strengths).reshape(3, 3), axis=1)
        assert list(band.by_strength.values()) == pytest.approx(factor * thirds)
    assert found.bands[0].epsilon == 2 and next(iter(found.matters)) == "feature_strength"
    assert found.matters["feature_strength"] == pytest.approx(1)


def test_failed_runs_are_left_out_and_counted_and_all_failed_is_an_error():
    assert bands_of(Told(broken=3)).failed == 3
    with pytest.raises(InputError, match="no such luck"):
        bands_of(Told(broken=100))


def test_a_known_guess_is_used_as_it_is_and_is_not_said_to_matter():
    found = bands_of(Told(), feature_strength="0.5", homophily="0.7", mean_degree="4-8")
    assert {row["scenario"]["feature_strength"] for row in found.rows} == {0.5}
    assert found.bands[0].low == found.bands[0].high and found.bands[0].by_strength == {}
    assert set(found.matters) <= {"mean_degree"}
    assert all(4 <= row["scenario"]["mean_degree"] <= 8 for row in found.rows)


def test_every_part_of_every_range_is_tried_once():
    guesses = Guesses.about(PublicFacts(1000, 200, 4))
    drawn = guesses.scenarios(10, 0)
    for name, guess in vars(guesses).items():
        values = np.array([scenario[name] for scenario in drawn])
        low, high, values = (np.log(v) if guess.scale else v for v in (guess.low, guess.high, values))
        assert sorted(np.floor((values - low) / (high - low) * 10 * (1 - 1e-9))) == list(range(10)), name


@pytest.mark.parametrize("text", ["x", "0.9-0.2", "1.5", "-0.1", ""])
def test_a_guess_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="--homophily"):
        Guess.parse("--homophily", text, 0, 1)


def test_nobody_to_test_on_is_refused():
    nobody = PublicFacts(60, 6, 3, kinds={"train": 60, "calibration": 0, "query": 0, "other": 0})
    with pytest.raises(InputError, match="test nodes"):
        forecast(DpMlp(), [NodeLevel(2)], nobody, Guesses.about(nobody), Told())


def test_a_forecast_is_the_same_for_every_neighbour_and_for_everybody_else(graphveil, tmp_path):
    """One person blank, replaced, or not a number and without a label; and everybody's features, labels and edges exchanged."""
    data, names = worst_case_graph(seed=2)
    others = [data]
    for relation in Relation:
        promise = Promise(Level.NODE, Adjacency.NODE, relation, 1.0)
        others += [one.data for one in list(neighbours(data, names, promise))[:2]]
    others += everybody_changed(data, promise)
    odd = data.clone()
    odd.x[0], odd.y[0] = math.nan, -1
    odd.edge_index = odd.edge_index[:, :0]
    said = set()
    for number, other in enumerate([*others, odd]):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = write_npz(other, folder / "mine.npz")
        code, out, err = graphveil("forecast", "dp-mlp", "--data", path, *SMALL, "--seed", 5)
        assert code == 0, err
        said.add((out, err.rpartition(" in ")[0]))
    assert len(others) >= 6 and len(said) == 1
    assert graphveil("forecast", "dp-mlp", "--data", path, *SMALL, "--seed", 6)[1] not in {out for out, _ in said}


def test_facts_of_data_are_sizes_and_say_if_classes_were_counted():
    data = worst_case_graph(seed=2)[0]
    facts, notes = public_facts(data)
    assert facts == PublicFacts.of(data) and facts.mean_degree is None and notes == ()
    del data.num_classes
    assert "number of classes" in public_facts(data)[1][0]


def test_stand_ins_have_the_public_sizes_and_kinds():
    facts = PublicFacts(80, 5, 3, kinds={"train": 40, "calibration": 10, "query": 20, "other": 10})
    guesses = Guesses.about(facts)
    found = forecast(DpMlp(steps=2), [NodeLevel(4)], facts, guesses, Serial(), scenarios=2)
    for row in found.rows:
        stand_in = load_dataset("stand-in", seed=row["seed"], split="official", **row["scenario"])
        assert PublicFacts.of(stand_in) == facts
    assert row["delta"] == 0.01 and row["holds"]
