"""Table and picture of ``benchmarks/attacks.py``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.attacks.lsa2 import REFERENCE
from graphveil.attacks.membership import PUBLISHED, SAME_GRAPH
from graphveil.report.panel import Panel, Reference, Series, draw_sheet, notes_of

Row = dict[str, Any]
Kept = dict[str, list[Row]]
LOSS = "loss of the true label, no shadow"
COSINE = "cosine, no training"
TRAINED = "mlp, hadamard-difference"


def chosen(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def values(rows: Iterable[Row], figure: str = "auc", **wanted: Any) -> list[float]:
    return [row[figure] for row in chosen(rows, **wanted)]


def cell(found: list[float], digits: int = 3) -> str:
    return f"{np.mean(found):.{digits}f} ± {np.std(found):.{digits}f}" if found else "-"


def keys(rows: Iterable[Row], **wanted: Any) -> list[tuple[str, float | None]]:
    """(target, epsilon) in order of appearance."""
    return list(dict.fromkeys((row["target"], row["epsilon"]) for row in chosen(rows, **wanted)))


def shown(epsilon: float | None) -> str:
    return "no privacy" if epsilon is None else f"{epsilon:g}"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rows)] + [""]


def links_table(rows: list[Row]) -> list[str]:
    lines = []
    for how in ("balanced", "degree-matched"):
        body = []
        for target, epsilon in keys(rows, pairs=how):
            if target == "control":
                continue
            of = lambda attack, figure="auc", t=target, e=epsilon, h=how, **more: values(
                rows, figure, attack=attack, target=t, epsilon=e, pairs=h, **more
            )
            mine, without = of("lsa2", variant="correlation"), of("lsa2", variant=REFERENCE)
            leak = cell(list(np.subtract(mine, without)))
            body.append([target, shown(epsilon), cell(of("link-teller")), cell(mine), cell(without), leak])
        controls = ", ".join(
            f"{name} {cell(values(rows, attack='link-teller', target='control', variant=name, pairs=how))}"
            for name in ("degree product", "label equality")
        )
        lines += [f"Pairs: {how}, 500 edges and 500 non-edges. Controls without a model: {controls}.", ""]
        head = [
            "target",
            "epsilon (edge level)",
            "LinkTeller AUC",
            "LSA2 AUC",
            "LSA2, same method without edges",
            "difference",
        ]
        lines += table(head, body)
    return lines


def stealing_table(rows: list[Row]) -> list[str]:
    clean = chosen(rows, target="clean", pairs="balanced")
    variants = list(dict.fromkeys(row["variant"] for row in clean))
    body = [
        [
            name,
            *(cell(values(clean, figure, variant=name)) for figure in ("accuracy", "precision", "recall", "f1", "auc")),
        ]
        for name in variants
    ]
    lines = ["Clean attributes of Cora, 5000 + 5000 balanced pairs, 70 % known:", ""]
    lines += table(["attack model, combination", "accuracy", "precision", "recall", "F1", "AUC"], body)
    noisy = chosen(rows, pairs="degree-matched")
    body = []
    for target, epsilon in keys(noisy):
        of = lambda figure, variant, t=target, e=epsilon: cell(
            values(noisy, figure, target=t, epsilon=e, variant=variant)
        )
        body.append([target, shown(epsilon), of("accuracy", TRAINED), of("auc", TRAINED), of("auc", COSINE)])
    lines += ["Released reports, 2600 + 2600 degree-matched pairs, 70 % known:", ""]
    return lines + table(
        ["rows the attacker holds", "epsilon per person", "accuracy", "AUC", "AUC of the cosine alone"], body
    )


def attributes_table(rows: list[Row]) -> list[str]:
    body = []
    for target, epsilon in keys(rows):
        found = chosen(rows, target=target, epsilon=epsilon)
        for variant in dict.fromkeys(row["variant"] for row in found):
            figures = (
                cell(values(found, f, variant=variant)) for f in ("accuracy", "precision", "recall", "f1", "auc")
            )
            body.append([target, shown(epsilon), variant, *figures])
    return table(
        ["rows the attacker holds", "epsilon per person", "attack", "accuracy", "precision", "recall", "F1", "AUC"],
        body,
    )


def membership_table(rows: list[Row]) -> list[str]:
    body = []
    for target, epsilon in keys(rows):
        of = lambda figure, variant, t=target, e=epsilon: cell(
            values(rows, figure, target=t, epsilon=e, variant=variant)
        )
        figures = [of("auc", SAME_GRAPH), of("accuracy", SAME_GRAPH), of("tpr_at_1_percent", SAME_GRAPH)]
        body.append([target, shown(epsilon), *figures, of("auc", LOSS), of("auc", PUBLISHED)])
    head = [
        "target",
        "epsilon (node level)",
        "AUC",
        "accuracy",
        "TPR at 1 % FPR",
        "AUC of the loss alone",
        "AUC as published",
    ]
    return table(head, body)


def acceptance(kept: Kept) -> list[tuple[str, float, float, bool]]:
    """(what, found, limit, whether it must be at least the limit)."""
    found = []
    if links := kept.get("links"):
        plain = {"target": "gcn", "pairs": "balanced"}
        found.append(
            ("LinkTeller AUC, plain GCN, Cora", np.mean(values(links, attack="link-teller", **plain)), 0.97, True)
        )
        lsa2 = np.mean(values(links, attack="lsa2", variant="correlation", **plain))
        found.append(("LSA2 AUC, plain GCN, Cora", lsa2, 0.85, True))
        for target in ("ballot", "gap"):
            auc = np.mean(values(links, attack="link-teller", target=target, epsilon=1.0))
            found.append((f"LinkTeller AUC, {target}, edge level, epsilon 1", auc, 0.55, False))
    if stealing := kept.get("stealing"):
        accuracy = np.mean(values(stealing, "accuracy", target="clean", pairs="balanced", variant=TRAINED))
        found.append(("link stealing accuracy, clean Cora", accuracy, 0.75, True))
    if attributes := kept.get("attributes"):
        f1 = np.mean(values(attributes, "f1", target="clean", variant="mlp"))
        found.append(("attribute inference F1, deezer-hu, clean", f1, 0.75, True))
    if membership := kept.get("membership"):
        auc = np.mean(values(membership, target="gcn, overfitted", variant=SAME_GRAPH))
        found.append(("membership AUC, overfitted GCN, full graph", auc, 0.60, True))
    if speed := kept.get("speed"):
        found.append(
            ("LinkTeller over 500 nodes of Cora, CPU seconds", max(values(speed, "incremental_seconds")), 2.0, False)
        )
        found.append(("times faster than one forward pass per node", min(values(speed, "ratio")), 20.0, True))
    return found


def speed_table(rows: list[Row]) -> list[str]:
    body = [
        [
            str(row["seed"]),
            f"{row['incremental_seconds']:.2f}",
            f"{1000 * row['forward_pass_seconds']:.1f}",
            f"{row['ratio']:.0f}",
        ]
        for row in rows
    ]
    lines = table(
        ["seed", "all pairs of 500 nodes, s", "one forward pass, ms", "ratio (499 forward passes / incremental)"], body
    )
    probes = list(rows[0]["seconds_by_probes"])
    body = [[str(row["seed"]), *(f"{row['seconds_by_probes'][count]:.3f}" for count in probes)] for row in rows]
    return [*lines, "CPU seconds by number of probed nodes, 100 pairs each:", "", *table(["seed", *probes], body)]


NOTES = {
    "links": "Edge level, Cora. LinkTeller: influence of one node's features on another's prediction. LSA2: correlation of "
    "posteriors. 0.5 is chance. What LSA2 finds on a model trained without edges comes from labels and attributes alone.",
    "stealing": "No model is queried. At small epsilon a trained attack is left with what it learns about who has many edges, "
    "so pairs are degree-matched in the second table. There a trained attack on multi-bit reports falls below 0.5 "
    "(likely: matched non-edges "
    "use the same hubs, and whoever is met in many known edges has fewer left among the guessed ones; not tested).",
    "attributes": "Genre Alternative from the 83 other genres of a Deezer user in Hungary, 70 % of the people known. "
    "Printed (LGA-PGNN, Table I, clean rows): accuracy 87.99, precision 90.81, recall 76.07, F1 82.79 %.",
    "membership": "Shadow model of the same method; members and non-members are asked on the full graph. The last column is the "
    "published protocol, in which members are asked on their training graph. The loss alone, without a shadow, is the stronger "
    "attack on private models; why the shadow's classifier carries over badly was not examined.",
    "speed": "CPU time on one core; the forward pass is the model's own, on a validated graph.",
}
TITLES = {
    "links": "LinkTeller and LSA2",
    "stealing": "Link stealing from attributes",
    "attributes": "Attribute inference",
    "membership": "Membership inference (shadow model)",
    "speed": "What LinkTeller costs",
}
TABLES = {
    "links": links_table,
    "stealing": stealing_table,
    "attributes": attributes_table,
    "membership": membership_table,
    "speed": speed_table,
}


LEVELS = "across: dashed what an attack reaches without privacy, dotted controls that see no model"
CLEAN = "clean rows, no privacy"
DIRECTION = "direction, 16 dimensions"


def panels(kept: Kept) -> list[Panel]:
    found = []
    curve = lambda rows, target, **more: {
        e: values(rows, target=target, epsilon=e, **more) for t, e in keys(rows) if t == target and e is not None
    }
    mean = lambda rows, **wanted: float(np.mean(values(rows, **wanted)))
    if links := kept.get("links"):
        for title, attack, variant in (("LinkTeller", "link-teller", "influence"), ("LSA2", "lsa2", "correlation")):
            game = {"attack": attack, "pairs": "degree-matched"}
            rows = chosen(links, variant=variant, **game)
            series = [Series(target, target, curve(rows, target)) for target in ("edge-rand", "ballot", "gap")]
            if attack == "lsa2":
                apart = curve(chosen(links, variant=REFERENCE, **game), "gap")
                series.append(Series("gap trained without edges", "gap", apart, variant=1))
            levels = [Reference("gcn, not private", mean(rows, target="gcn"), "gcn")]
            levels += [
                Reference(name, mean(links, target="control", variant=name, **game), control=True)
                for name in ("degree product", "label equality")
            ]
            told = "Cora, edge level (edge-undirected), degree-matched pairs"
            found.append(_panel(title, told, series, levels))
    if stealing := kept.get("stealing"):
        rows = chosen(stealing, pairs="degree-matched")
        series = [
            Series(f"{target}: {label}", target.partition(",")[0], curve(rows, target, variant=variant), variant=number)
            for target in (DIRECTION, "multi-bit")
            for number, (variant, label) in enumerate(((TRAINED, "trained"), (COSINE, "cosine")))
        ]
        levels = [Reference(CLEAN, mean(rows, target="clean", variant=TRAINED), "clean"), CHANCE]
        found.append(_panel("Link stealing from reports", "Cora, local model, degree-matched pairs", series, levels))
    if attributes := kept.get("attributes"):
        series = [Series(target, target, curve(attributes, target)) for target in ("direction", "multi-bit")]
        levels = [Reference(CLEAN, mean(attributes, target="clean", variant="mlp"), "clean")]
        control = mean(attributes, variant="feature propagation")
        levels.append(Reference("feature propagation", control, control=True))
        found.append(_panel("Attribute inference", "deezer-hu, local model", series, levels))
    if membership := kept.get("membership"):
        rows = chosen(membership, variant=SAME_GRAPH)
        series = [Series(target, target, curve(rows, target)) for target in ("ballot", "gap", "dp-mlp")]
        levels = [
            Reference(f"{name}, not private", mean(rows, target=name), name.partition(",")[0])
            for name in ("gcn, overfitted", "mlp")
        ]
        told = "Cora, node level (record, zero-out), shadow model"
        found.append(_panel("Membership", told, series, [*levels, CHANCE]))
    return found


CHANCE = Reference("chance", 0.5, control=True)


def _panel(title: str, subtitle: str, series: list[Series], levels: list[Reference]) -> Panel:
    return Panel(title, "AUC of the attack", series, subtitle, references=levels, unit=1.0)


def write_report(kept: Kept, folder: Path) -> bool:
    """Write table and picture; whether every acceptance line holds."""
    seeds = {name: len({row["seed"] for row in rows}) for name, rows in kept.items()}
    lines = [
        "# Attacks, measured",
        "",
        f"Made by `python benchmarks/attacks.py --seeds {max(seeds.values(), default=0)}`; mean and standard deviation over",
        "seeds, which draw split, noise, pairs and attack models. What each attack does is in [attacks.md](../attacks.md).",
        "",
        "![attack success against epsilon](attacks.svg)",
        "",
    ]
    for name in (name for name in TABLES if name in kept):
        lines += [f"## {TITLES[name]}", "", f"{NOTES[name]} Seeds: {seeds[name]}.", "", *TABLES[name](kept[name])]
    checks = acceptance(kept)
    holds = [value >= limit if least else value <= limit for _, value, limit, least in checks]
    body = [
        [what, f"{value:.3f}", f"{'>=' if least else '<='} {limit:g}", "yes" if fine else "NO"]
        for (what, value, limit, least), fine in zip(checks, holds, strict=True)
    ]
    lines += ["## Limits", "", *table(["figure (mean over seeds)", "found", "limit", "holds"], body)]
    (folder / "attacks.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    if found := panels(kept):
        draw_sheet(found, folder / "attacks.svg", "Attack success against epsilon", [*notes_of(found), LEVELS])
    return all(holds)
