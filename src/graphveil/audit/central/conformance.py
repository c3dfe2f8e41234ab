"""``check_private_method``: the one suite every method must pass in sound mode, and must fail in published mode with exactly
the codes on its card."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from graphveil.audit.central.batches import batch_failures
from graphveil.audit.central.neighbours import (
    Neighbour,
    changed_lists,
    everybody_changed,
    neighbours,
    worst_case_graph,
)
from graphveil.audit.central.noise_checks import noise_law
from graphveil.audit.central.replay import Diverged, Recorder, Recording
from graphveil.audit.result import UNEXPLAINED, Failure, Share
from graphveil.audit.settings import in_blocks
from graphveil.errors import GraphveilError, InputError, PrivacyError
from graphveil.methods.base import PrivateMethod
from graphveil.methods.model import Model
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation

TOLERANCE = 1e-9
EVERYBODY = "everybody's record is another"
UNACCOUNTED = "private data were read without noise and without account"


@dataclass
class Findings:
    """What the suite found for one method: failures, and the gap codes they exhibit."""

    method: str
    promises: list[Promise] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    moved: dict[str, Share] = field(default_factory=dict)  # at the largest share

    @property
    def largest(self) -> dict[str, float]:
        """The largest part of its declared sensitivity by which each release has moved."""
        return {name: share.part for name, share in self.moved.items()}

    def add(self, plan: Plan, failure: Failure) -> None:
        self.failures.append(failure)
        matching = [gap.code for gap in plan.gaps if gap.explains(failure.check, failure.release)]
        self.codes.update(matching or [f"{UNEXPLAINED} {failure.check}"])


@dataclass(frozen=True)
class Outcome:
    """What a run leaves behind; on a neighbour, with the same releases, it must come out the same.

    A prediction may read the node's own row: that of the changed record and, where predictions read own lists, of everybody whose
    list changes with it (k-neighbor: the contacts that lose an entry).
    """

    arrays: dict[str, np.ndarray]
    config: dict[str, Any]
    certificate: dict[str, Any]
    predictions: Any
    data: Any

    @classmethod
    def of(cls, model: Model, data: Any) -> Outcome:
        predictor = model.predictor
        told = model.certificate.to_json(), model.predict_proba(data)
        return cls(predictor.arrays(), predictor.config(), *told, data)

    def of_the_model(self, model: Model) -> list[str]:
        """What differs in the model and its certificate."""
        arrays = model.predictor.arrays()
        found = ["the model"] if any(not np.array_equal(v, arrays[k]) for k, v in self.arrays.items()) else []
        found += ["the configuration of the model"] if model.predictor.config() != self.config else []
        return found + (["the certificate"] if model.certificate.to_json() != self.certificate else [])

    def differences(self, model: Model, neighbour: Neighbour) -> list[str]:
        found = self.of_the_model(model)
        moved = (model.predict_proba(neighbour.data) != self.predictions).any(dim=1).numpy()
        if neighbour.record is not None:
            moved[neighbour.record] = False
            if getattr(model.predictor, "reads_lists", False):
                moved[changed_lists(self.data, neighbour.data)] = False
        return found + (["somebody else's prediction"] if moved.any() else [])


class ConformanceError(GraphveilError):
    """A method did not keep the contract; ``report`` and ``codes`` say how."""

    def __init__(self, report: Findings) -> None:
        self.report, self.codes = report, frozenset(report.codes)
        first = "; ".join(str(failure) for failure in report.failures[:3])
        count, codes = len(report.failures), ", ".join(sorted(report.codes))
        super().__init__(f"{report.method}: {count} checks failed ({codes}): {first}")


def check_private_method(method: PrivateMethod, promises: Iterable[Promise] | None = None, seed: int = 0) -> Findings:
    """Run every check on every guarantee the method names; raise :class:`ConformanceError` on the first report of failures."""
    report = inspect_method(method, promises, seed)
    if report.failures:
        raise ConformanceError(report)
    return report


def inspect_method(
    method: PrivateMethod,
    promises: Iterable[Promise] | None = None,
    seed: int = 0,
    on: tuple[Any, dict[str, int]] | None = None,
) -> Findings:
    """The report behind :func:`check_private_method`, without raising; ``on``: a graph and the names of its awkward nodes."""
    report = Findings(repr(method))
    data, names = on or awkward_graph(method, seed)
    widest = int(np.bincount(data.edge_index[0].numpy(), minlength=1).max())
    for promise in promises or [example_promise(g, widest) for g in sorted(method.supports, key=str)]:
        report.promises.append(promise)
        with warnings.catch_warnings(), in_blocks(int(data.num_nodes)):
            warnings.simplefilter("ignore")
            _check_promise(report, method, data, names, promise, seed)
    return report


def awkward_graph(method: PrivateMethod, seed: int = 0) -> tuple[Any, dict[str, int]]:
    """The worst-case graph for a method: with a clique above its cap, if it has one, so that the cap is put to the test."""
    cap = method.get_params().get("max_degree") if method.gaps else None
    return worst_case_graph(seed, clique=8 if cap is None else min(int(1.3 * cap) + 3, 140))


def example_promise(guarantee: Guarantee, max_degree: int, epsilon: float = 4.0) -> Promise:
    """A promise of this kind for a test graph whose largest degree is ``max_degree``."""
    bound = max_degree if guarantee.adjacency is Adjacency.BOUNDED_DEGREE else None
    k = 2 if guarantee.level is Level.K_NEIGHBOR else None
    return Promise(guarantee.level, guarantee.adjacency, guarantee.relation, epsilon, 1e-4, k=k, max_degree=bound)


def _check_promise(
    report: Findings, method: PrivateMethod, data: object, names: dict[str, int], promise: Promise, seed: int
) -> None:
    plan = method.plan(method.facts(data), promise)
    known = plan.epsilon() if plan.provable else plan.corrected
    if known is not None and known > promise.epsilon * (1 + TOLERANCE):
        report.add(plan, Failure("promise", "", f"epsilon {known:.4g} is accounted, {promise.epsilon:g} was promised"))
    run = Recording(method, plan, data, seed)
    try:
        model = run.run(data, run.recorder)
    except PrivacyError as error:
        report.add(plan, Failure("refused", "", str(error)))
        return
    if not plan.adaptive and [r.to_json() for r in model.certificate.releases] != plan.to_json()["releases"]:
        report.add(plan, Failure("ledger", "", "the releases that happened are not those of the plan"))
    if model.certificate.epsilon is not None and model.certificate.epsilon > plan.epsilon() * (1 + TOLERANCE):
        report.add(plan, Failure("ledger", "", "the ledger cost more than the plan"))
    left, events = Outcome.of(model, data), run.recorder.events
    for failure in (
        *noise_law(events),
        *(Failure("unaccounted", name, UNACCOUNTED) for name in sorted({e.name for e in events if e.what == "peek"})),
        *_repeats(run),
        *_without_noise(run),
        *_bad_row(run, names, report),
        *batch_failures(run),
    ):
        report.add(plan, failure)
    for failure in only_releases(run, model, left):
        report.add(plan, failure)
    for neighbour in neighbours(data, names, promise, seed, plan.weaker):
        for failure in _replay(run, neighbour, left, report):
            report.add(plan, failure)


def _replay(run: Recording, neighbour: Neighbour, left: Outcome | None, report: Findings) -> Iterable[Failure]:
    """Same path, clean values within the declared sensitivity, and a model made of released values only."""
    try:
        model, replayer = run.replay(neighbour)
    except (Diverged, PrivacyError) as error:
        check = "path" if isinstance(error, Diverged) else "refused"
        yield Failure(check, "", f"{error} ({neighbour.story})")
        return
    worst: dict[str, Share] = {}
    for step in replayer.measured:
        name, mechanism, bound = step.release.name, step.release.mechanism, step.release.bound(neighbour.kind)
        measurable = mechanism.random or bound == 0  # without noise only what nobody else can move is free
        if measurable and (name not in worst or step.distance >= worst[name].measured):
            worst[name] = Share(name, step.distance, mechanism.allowance(bound))
    for name, share in worst.items():
        if name not in report.moved or share.part >= report.moved[name].part:
            report.moved[name] = share
        if not share.kept:
            moved = f"moved by {share.measured:.4g}, declared {share.declared:.4g} ({neighbour.story})"
            yield Failure("sensitivity", name, moved)
    if left is not None and not run.peeked:
        for what in left.differences(model, neighbour):
            yield Failure("leak", "", f"{what} depends on private data beyond the releases ({neighbour.story})")


def only_releases(run: Recording, before: Model, left: Outcome) -> Iterable[Failure]:
    """With all releases frozen the model, and what is saved of it, is the same on any private data, not on a neighbour alone.

    A choice that reads private labels (an epoch, a mode) seldom turns on one record; it does on everybody's.
    """
    if run.peeked:
        return
    for data in everybody_changed(run.data, run.plan.promise):
        try:
            model, _ = run.replay(Neighbour(data, EVERYBODY, None, ""))
        except (Diverged, PrivacyError) as error:
            yield Failure("path", "", f"{error} ({EVERYBODY})")
            return
        saved = ["the saved run"] if saved_files(model) != saved_files(before) else []
        for what in left.of_the_model(model) + saved:
            yield Failure("leak", "", f"{what} depends on private data beyond the releases ({EVERYBODY})")


def saved_files(model: Model) -> dict[str, bytes]:
    """What :meth:`Model.save` writes, by the names of the files."""
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "run")
        published = sorted(
            file for file in (Path(folder) / "run").iterdir() if file.is_file()
        )  # the curator's folder stays
        return {file.name: file.read_bytes() for file in published}


def _repeats(run: Recording) -> Iterable[Failure]:
    """A seeded run repeats exactly; unseeded runs differ."""
    again, free, other = Recorder(), Recorder(), Recorder()
    run.run(run.data, again)
    for unseeded in (free, other):
        run.method.fit(run.data, run.plan.promise, tape=unseeded, plan=run.plan)
    pairs = zip(run.recorder.events, again.events, strict=False)
    if any(not np.array_equal(a.released, b.released) for a, b in pairs):
        yield Failure("seed", "", "two runs with one seed released different values")
    for a, b in zip(free.events, other.events, strict=False):
        if a.mechanism is not None and a.mechanism.random and np.array_equal(a.released, b.released):
            yield Failure("noise", a.name, "two runs drew the same noise")
            return


def _without_noise(run: Recording) -> Iterable[Failure]:
    """epsilon = inf: every release is the clean value, said so on the certificate."""
    recorder = Recorder()
    certificate = run.method.fit(run.data, replace(run.plan.promise, epsilon=math.inf), tape=recorder).certificate
    for event in recorder.events:
        if event.what == "release" and not np.array_equal(event.clean, event.released):
            yield Failure("infinite epsilon", event.name, "noise was added although none was asked for")
            return
    reads = any(event.what == "release" for event in recorder.events)
    if reads and (certificate.holds or certificate.epsilon is not None):
        yield Failure("infinite epsilon", "", "the certificate claims a guarantee for a run without noise")


def _bad_row(run: Recording, names: dict[str, int], report: Findings) -> Iterable[Failure]:
    """A row of NaN is refused, or zeroed on request; it moves no release by more than any other record could."""
    promise, hub = run.plan.promise, names["hub"]
    if promise.level is Level.EDGE:
        return
    poisoned = run.data.clone()
    poisoned.x[hub, 0] = math.nan
    try:
        run.method.fit(poisoned, promise, seed=run.seed, plan=run.plan)
        yield Failure("bad row", "", "a row with NaN was accepted silently")
    except InputError:
        pass
    except PrivacyError as error:
        yield Failure("bad row", "", str(error))
    if promise.relation is Relation.ZERO_OUT:
        neighbour = Neighbour(poisoned, "a hub with a NaN feature", hub, "train")
        yield from _replay(run, neighbour, None, report)
