"""Seeded results of every method, mode and guarantee, on Cora and on a generated graph: what a change of structure must not move.

``python -m tests.golden.record`` prints what differs from the record; ``--write`` writes it anew.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).with_name("record.json")
SEED = 7
QUICK = {"epochs": 10, "code_steps": 10, "steps": 20, "width": 16, "compress": 64}
LOCAL = (("withheld", 1.0, "raw"), (1.0, 1.0, "raw"), ("withheld", 1.0, 1.0), (1.0, 1.0, 1.0))
LOCAL_DELTA = 1e-6
GRAPHS = ("cora", "generated")


def graph(name: str) -> Any:
    import graphveil as gv

    if name == "cora":
        return gv.load_dataset("cora", seed=SEED)
    data = gv.load_dataset("powerlaw-sbm", seed=SEED, nodes=300, features=24, classes=3)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return data


def methods() -> list[dict[str, Any]]:
    from graphveil.methods import registry

    return registry.methods()


def build(name: str, mode: str) -> Any:
    from graphveil.methods import registry

    method: Any = registry.build(name, {"mode": mode})
    quick = {key: value for key, value in QUICK.items() if key in method.get_params()}
    if mode == "published" and {"batch_size", "epochs"} <= method.get_params().keys():
        quick["epochs"] = 2
    if "open_epochs" in method.get_params():
        quick |= {"epochs": 1, "open_epochs": 2}
    if name == "ballot":
        quick = {}
    return method.set_params(**quick)


def promises(card: dict[str, Any], mode: str, data: Any) -> Iterator[tuple[str, Any]]:
    import graphveil as gv

    widest = int(np.bincount(data.edge_index[0].numpy()).max())
    for found in card["supports"][mode]:
        level, adjacency, relation = found["level"], found["adjacency"], found["relation"]
        title = f"{level}/{adjacency}/{relation}"
        if level == "local":
            yield from ((f"local/{f}/{lab}/{e}", gv.Local(f, lab, e, LOCAL_DELTA)) for f, lab, e in LOCAL)
            continue
        k = 2 if level == "k-neighbor" else None
        bound = widest if adjacency == "bounded-degree" else None
        yield title, gv.Promise(level, adjacency, relation, 4.0, 1e-4, k=k, max_degree=bound)
    if not card["supports"][mode] or card["name"] in ("gap", "mlp"):
        yield "none", gv.NonPrivate()


def jobs() -> list[tuple[str, str, str, str]]:
    found = []
    for place in GRAPHS:
        data = graph(place)
        for card in methods():
            for mode in card["modes"]:
                found += [(place, card["name"], mode, title) for title, _ in promises(card, mode, data)]
    return found


def run(job: tuple[str, str, str, str]) -> tuple[str, dict[str, Any] | str]:
    """One entry: what was reached, what it cost, and every release."""
    import torch

    from graphveil.errors import InputError

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    place, name, mode, title = job
    data = graph(place)
    card = next(card for card in methods() if card["name"] == name)
    promise = dict(promises(card, mode, data))[title]
    method = build(name, mode)
    with Heard() as heard:
        try:
            model = method.fit(data, promise, seed=SEED)
        except InputError as error:
            return "/".join(job), f"refused: {str(error)[:60]}"
    certificate = model.certificate
    scores = model.predict_proba(data).numpy()
    entry: dict[str, Any] = {
        "accuracy": model.score(data),
        "scores": [round(float(number), 6) for number in np.sort(scores, axis=1)[:, -1][:: max(1, len(scores) // 5)]],
        "epsilon": certificate.epsilon,
        "claimed": certificate.epsilon_claimed,
        "delta": certificate.delta,
        "holds": certificate.holds,
        "gaps": sorted({gap.code for gap in certificate.gaps}),
        "releases": [described(release) for release in certificate.releases],
    }
    return "/".join(job), entry | ({"reports": heard.digests} if heard.digests else {})


def described(release: Any) -> list[Any]:
    """Name, noise and dimension."""
    body = release.to_json()
    mechanism = body["mechanism"]
    if isinstance(mechanism, str):
        mechanism = {"kind": mechanism, **body["parameters"]}
    keys = ("sigma", "scale", "epsilon", "budget", "dimension", "steps", "rate", "clip", "pairs", "bins", "width")
    keys += ("classes", "buckets", "slots", "categories")
    return [body["name"], *(round(mechanism[key], 9) for key in keys if isinstance(mechanism.get(key), (int, float)))]


class Heard:
    """Digests of all reports that a collector accepts while this lasts."""

    def __enter__(self) -> Heard:
        from graphveil.exchange.collector import Collector

        self.digests: list[str] = []
        self.kind, self.accept = Collector, Collector.accept

        def accept(collector: Any, report: Any) -> None:
            self.digests.append(f"{report.round} {digest(report)}")
            self.accept(collector, report)

        Collector.accept = accept  # type: ignore[method-assign]
        return self

    def __exit__(self, *problem: object) -> None:
        self.kind.accept = self.accept  # type: ignore[method-assign]


def digest(report: Any) -> str:
    from graphveil.exchange.report import pack

    state = hashlib.sha256(np.asarray(report.ids).tobytes())
    for key, values in sorted(pack(report.values).items()):
        state.update(key.encode() + np.ascontiguousarray(values).tobytes())
    return state.hexdigest()[:16]


def same(one: Any, other: Any) -> bool:
    """Equal but for scores, whose last digits depend on the order in which threads add."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return bool(one == other)
    near = np.allclose(one["scores"], other["scores"], atol=5e-3)
    return near and {**one, "scores": 0} == {**other, "scores": 0}


def differences(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    lines = []
    for key in sorted({*wanted, *found}):
        if not same(wanted.get(key), found.get(key)):
            lines.append(f"{key}\n  recorded {json.dumps(wanted.get(key))}\n  now      {json.dumps(found.get(key))}")
    return lines


def main() -> None:
    chosen = [job for job in jobs() if all(word in "/".join(job) for word in sys.argv[1:] if not word.startswith("-"))]
    with ProcessPoolExecutor(2) as pool:
        found = json.loads(json.dumps(dict(pool.map(run, chosen))))
    if "--write" in sys.argv:
        RECORD.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    asked = {"/".join(job) for job in chosen} | ({*recorded} if len(sys.argv) == 1 else set())
    lines = differences({key: recorded.get(key) for key in asked}, found)
    print("\n".join(lines) or f"{len(found)} entries, all as recorded")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
