"""Forecasts as runs of an experiment, so that they can be kept and set against what was measured.

methods: [ballot, roster]
data: [cora, chameleon]                  # of which only the sizes on the public card are used
promises: [{level: node}]
epsilons: [1, 4, 16]
forecast: [{homophily: card}, {}]        # the true homophily of the card is stated; nothing is stated
seeds: 1
"""

from __future__ import annotations

from typing import Any

from graphveil.experiments.engines.serial import Serial
from graphveil.experiments.run import Run
from graphveil.methods.registry import build
from graphveil.privacy.promise import Promise

HOMOPHILY, NOTHING = "homophily", "nothing"


def forecasted(run: Run) -> dict[str, Any]:
    """The band of one promise as metrics; nothing of the graph is read but its card."""
    from graphveil.experiments.forecast import forecast
    from graphveil.experiments.guesses import Guesses
    from graphveil.graph import cards
    from graphveil.privacy.facts import PublicFacts

    card = cards()[run.data["name"]]
    facts = PublicFacts(card.nodes, card.features, card.classes)
    stated = str(card.homophily) if run.settings["stated"] == HOMOPHILY else None
    method, promise = build(run.method, {**run.options, "mode": run.mode}), Promise.from_json(dict(run.promise))
    guesses = Guesses.about(facts, homophily=stated)
    how = {"scenarios": run.settings["scenarios"], "seed": run.split_seed}
    (band,) = forecast(method, [promise], facts, guesses, Serial(), **how).bands
    found = {f"forecast_{name}": round(getattr(band, name), 4) for name in ("low", "median", "high")}
    return {"holds": True, "metrics": found, "details": dict(run.settings)}
