"""Means over seeds with bootstrap intervals, paired differences over the same seeds, and Wilcoxon's signed-rank test.

Intervals are percentile bootstraps over the runs (95 %, 2000 resamples, fixed coins). With three seeds the smallest and the
largest run are their ends: they show the spread of the runs and understate the uncertainty of the mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Row = Mapping[str, Any]
RESAMPLES = 2000
PROMISE = ("level", "adjacency", "relation", "k", "max_degree", "delta_rule")
VARIANT = ("label", "method", "mode", "options", "selection", "version")
DATA = ("dataset", "preparation", "split")
PARTS = ("features", "labels", "edges")


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval; no interval for a single value."""

    mean: float
    low: float | None
    high: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        found = np.asarray(values, dtype=np.float64)
        if len(found) < 2:
            return cls(float(found.mean()), None, None, len(found))
        coins = np.random.default_rng(0xB007)
        means = found[coins.integers(0, len(found), (RESAMPLES, len(found)))].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        return cls(float(found.mean()), float(low), float(high), len(found))

    def percent(self) -> str:
        """``81.7 [80.9, 82.4]``."""
        if self.low is None or self.high is None:
            return f"{100 * self.mean:.1f}"
        return f"{100 * self.mean:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class Difference:
    """Mean of the paired differences over common seeds, its interval, and the two-sided p-value of the signed-rank test."""

    estimate: Estimate
    p_value: float | None


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed only."""

    rows: tuple[Row, ...]

    def __getitem__(self, field: str) -> Any:
        return self.rows[0][field]

    @property
    def promise(self) -> tuple[Any, ...]:
        """What must be equal for two figures to stand in one table."""
        return tuple(self[field] for field in PROMISE)

    @property
    def budget(self) -> str:
        """Epsilon, or the budgets of the parts of a record, in words."""
        if self["parts"] is not None:
            return ", ".join(f"{part} {_short(self['parts'][part])}" for part in PARTS)
        if self["level"] == "none":
            return "not private"
        return "no noise" if self["epsilon_target"] is None else f"{self['epsilon_target']:g}"

    def values(self, metric: str) -> dict[int | None, float]:
        """The metric by seed, of the runs that have it."""
        found = {row["seed"]: row["metrics"].get(metric) for row in self.rows if row["status"] == "done"}
        return {seed: value for seed, value in found.items() if value is not None}

    def all_values(self, metric: str) -> list[float]:
        """The metric of every finished run, seeded or not."""
        found = [row["metrics"].get(metric) for row in self.rows if row["status"] == "done"]
        return [value for value in found if value is not None]

    def estimate(self, metric: str = "test_accuracy") -> Estimate | None:
        values = self.all_values(metric)
        return Estimate.of(values) if values else None

    @property
    def proved(self) -> dict[str, Any]:
        """What all finished runs prove together: the largest epsilon, every gap, and ``holds`` only where each one holds."""
        done = [row for row in self.rows if row["status"] == "done"] or list(self.rows)
        found: dict[str, Any] = {}
        for name in ("epsilon", "epsilon_claimed"):
            values = [row[name] for row in done]
            found[name] = None if None in values else max(values)
        gaps = list(dict.fromkeys(gap for row in done for gap in row["gaps"]))
        return found | {"holds": all(row["holds"] for row in done), "gaps": gaps}

    @property
    def failures(self) -> int:
        return sum(row["status"] == "failed" for row in self.rows)


def once(rows: Iterable[Row]) -> list[Row]:
    """Each row once, though two experiments share its run: rows that differ in the name of their experiment only."""
    return list({json.dumps({**row, "experiment": None}, sort_keys=True): row for row in rows}.values())


def groups(rows: Iterable[Row]) -> list[Group]:
    """Rows gathered by everything but the seed, in order of appearance; a run that two experiments share counts once."""
    found: dict[str, list[Row]] = {}
    fields = (*PROMISE, *VARIANT, *DATA, "epsilon_target", "parts")
    for row in once(rows):
        key = json.dumps([row[field] for field in fields], sort_keys=True)
        found.setdefault(key, []).append(row)
    return [Group(tuple(members)) for members in found.values()]


def difference(one: Group, other: Group, metric: str = "test_accuracy") -> Difference | None:
    """``one`` minus ``other`` over the seeds that both have; None without any."""
    mine, theirs = one.values(metric), other.values(metric)
    common = [seed for seed in mine if seed in theirs and seed is not None]
    if not common:
        return None
    paired = np.array([mine[seed] - theirs[seed] for seed in common])
    return Difference(Estimate.of(paired.tolist()), signed_rank(paired))


def signed_rank(differences: np.ndarray) -> float | None:
    """Two-sided p-value of Wilcoxon's signed-rank test; 1 if nothing differs, None for fewer than two pairs."""
    from scipy.stats import wilcoxon

    if len(differences) < 2:
        return None
    return 1.0 if not differences.any() else float(wilcoxon(differences).pvalue)


def summarize(rows: Iterable[Row], metric: str = "test_accuracy") -> list[dict[str, Any]]:
    """One plain line per group: what was run, mean, interval, how many runs, failures, and what is proved."""
    found = []
    for group in groups(rows):
        estimate = group.estimate(metric)
        told = {
            name: group[name] for name in ("experiment", *VARIANT, *DATA, *PROMISE, "delta", "epsilon_target", "parts")
        }
        figures = (
            {"mean": None, "low": None, "high": None, "runs": 0}
            if estimate is None
            else {"mean": estimate.mean, "low": estimate.low, "high": estimate.high, "runs": estimate.count}
        )
        found.append({**told, "metric": metric, **figures, "failed": group.failures, **group.proved})
    return found


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"
