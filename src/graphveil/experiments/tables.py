"""Tables of rows: one per promise, because epsilons of different promises are not comparable."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphveil.experiments.checked import private
from graphveil.experiments.execute import NOT_COVERED
from graphveil.experiments.summary import Estimate, Group, difference, groups
from graphveil.privacy.local import LISTS_ONLY_IN_PLAIN_WORDS
from graphveil.privacy.promise import Relation

SELECTED = "†"
UNPROVED = "‡"
NOTES = {
    UNPROVED: f"{UNPROVED} the promise does not hold: known gaps, or no finite bound",
    SELECTED: f"{SELECTED} {NOT_COVERED}",
}
EXACT = "accuracies are exact figures on private labels, not covered by the promise"


@dataclass(frozen=True)
class Table:
    """A title, columns, lines and notes; as text, Markdown or CSV."""

    title: str
    head: tuple[str, ...]
    body: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        widths = [max(len(line[number]) for line in (self.head, *self.body)) for number in range(len(self.head))]
        rule = tuple("-" * width for width in widths)
        shown = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (self.head, rule, *self.body)]
        return "\n".join([self.title, "", *shown, *(f"note: {note}" for note in self.notes)])

    def markdown(self) -> str:
        lines = (self.head, ("---",) * len(self.head), *self.body)
        table = ["| " + " | ".join(in_markdown(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
        notes = (f"{in_markdown(note)}.\n" for note in self.notes)
        return "\n".join([f"### {in_markdown(self.title)}", "", *table, "", *notes])

    def lines(self) -> list[dict[str, str]]:
        """Every line by the names of its columns."""
        return [dict(zip(self.head, line, strict=True)) for line in self.body]

    def csv(self) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows((self.head, *self.body))
        return out.getvalue()


def in_markdown(text: str) -> str:
    """Words of a row that stay words in a page: no mark-up, no comment that is a command, no line of their own."""
    return text.replace("<", "&lt;").replace("\r", " ").replace("\n", " ")


def tables(
    rows: Iterable[Mapping[str, Any]], metric: str = "test_accuracy", baseline: str | None = None
) -> list[Table]:
    """One table per promise: a line per data set and method, a column per budget.

    With a ``baseline`` (a label) every other method's cell has its paired difference to it, and Wilcoxon's p.
    """
    return [_table(found, metric, baseline) for found in _by_promise(rows, (metric,))]


def side_by_side(rows: Iterable[Mapping[str, Any]], metrics: Sequence[str]) -> list[Table]:
    """One table per promise: a line per data set, method and budget, a column per metric."""
    return [_columns(found, metrics) for found in _by_promise(rows, metrics)]


def _by_promise(rows: Iterable[Mapping[str, Any]], metrics: Sequence[str]) -> list[list[Group]]:
    """Groups that have one of the metrics, or failed, by promise."""
    found: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups(rows):
        if group.failures or any(group.estimate(metric) is not None for metric in metrics):
            found.setdefault(group.promise, []).append(group)
    return list(found.values())


def _columns(found: Sequence[Group], metrics: Sequence[str]) -> Table:
    used: set[str] = set()
    body = []
    for group in found:
        cells = []
        for metric in metrics:
            text, marks = _cell(group, None, metric)
            cells.append(text)
            used |= marks
        body.append((data_title(group), group["label"], group.budget, *cells))
    word = "budget" if found[0]["parts"] is not None or found[0]["level"] == "none" else "epsilon"
    head = ("data", "method", word, *(metric.replace("_", " ") for metric in metrics))
    notes = [NOTES[mark] for mark in (SELECTED, UNPROVED) if mark in used]
    return Table(promise_title(found[0]), head, tuple(body), (*notes, EXACT))


def promise_title(group: Group) -> str:
    """The promise in words, with how delta was chosen."""
    level, adjacency, relation, k, bound, rule = group.promise
    if level == "none":
        return "not private"
    if level == "local" and relation == Relation.ZERO_OUT:
        return f"level local ({LISTS_ONLY_IN_PLAIN_WORDS})"
    if level == "local":
        return "level local (one person's own record, randomised before it leaves)"
    more = ([f"k = {k}"] if k is not None else []) + ([f"degrees up to {bound}"] if bound is not None else [])
    chosen = "delta from the number of nodes" if rule == "default" else f"delta {rule}"
    return ", ".join([f"level {level}, adjacency {adjacency}, relation {relation}", *more, chosen])


def _table(found: Sequence[Group], metric: str, baseline: str | None) -> Table:
    budgets = sorted({group.budget for group in found}, key=_order)
    several = len({group["version"] for group in found}) > 1
    cells: dict[tuple[str, str], dict[str, Group]] = {}
    for group in found:
        name = group["label"] + (f" (version {group['version']})" if several else "")
        cells.setdefault((data_title(group), name), {})[group.budget] = group
    body, used = [], set()
    order = list(dict.fromkeys(data for data, _ in cells))
    for (data, name), by_budget in sorted(cells.items(), key=lambda item: order.index(item[0][0])):
        line = [data, name]
        for budget in budgets:
            text, marks = _cell(by_budget.get(budget), cells.get((data, str(baseline)), {}).get(budget), metric)
            used |= marks
            line.append(text)
        body.append(tuple(line))
    word = "epsilon " if found[0]["parts"] is None and found[0]["level"] != "none" else ""
    head = ("data", "method", *(budget if budget == "no noise" else f"{word}{budget}" for budget in budgets))
    first = f"{metric.replace('_', ' ')}: {promise_title(found[0])}"
    notes = [NOTES[mark] for mark in (SELECTED, UNPROVED) if mark in used]
    notes += [
        f"differences are paired with {baseline}: mean over common seeds, p by Wilcoxon's signed-rank test"
    ] * bool(baseline)
    return Table(first, head, tuple(body), (*notes, EXACT))


def data_title(group: Group) -> str:
    """The data set with what was done to it."""
    told = [group["preparation"]] if group["preparation"] else []
    told += [group["split"]] if group["split"] != "random" else []
    return f"{group['dataset']} ({', '.join(told)})" if told else str(group["dataset"])


def _cell(group: Group | None, base: Group | None, metric: str) -> tuple[str, set[str]]:
    """What is printed, and the marks that need a note."""
    if group is None:
        return "", set()
    estimate = group.estimate(metric)
    if estimate is None:
        return f"failed ({group.failures})" if group.failures else "", set()
    marks = ({UNPROVED} if private(group.rows[0]) and not group.proved["holds"] else set()) | (
        {SELECTED} if group["selection"] == "not covered" else set()
    )
    text = shown(estimate, metric) + "".join(sorted(marks))
    text += f" ({group.failures} failed)" if group.failures else ""
    compared = None if base is None or base is group else difference(group, base, metric)
    if compared is not None:
        p_value = "" if compared.p_value is None else f", p {compared.p_value:.2g}"
        text += f" ({100 * compared.estimate.mean:+.1f}{p_value})"
    return text, marks


def shown(estimate: Estimate, metric: str) -> str:
    """Shares in percent; other figures as they are."""
    if metric.endswith(("accuracy", "f1", "auc", "precision", "recall", "percent")):
        return estimate.percent()
    return f"{estimate.mean:.4g}"


def _order(budget: str) -> list[tuple[bool, float, str]]:
    """Word by word, numbers by size and before words."""

    def key(word: str) -> tuple[bool, float, str]:
        try:
            return False, float(word), ""
        except ValueError:
            return True, 0.0, word

    return [key(word) for word in budget.replace(",", " ").split()]
