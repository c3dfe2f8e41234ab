"""Targets: which runs they are for, and when they are missed."""

import pytest

from graphveil.errors import InputError
from graphveil.experiments.targets import against, read_targets

from .test_summary import rows

CENTRAL = "dataset,level,adjacency,relation,epsilon,target_accuracy,published_best_same_setting,option\n"


def targets(tmp_path, *lines, head=CENTRAL):
    (tmp_path / "t.csv").write_text(head + "".join(line + "\n" for line in lines))
    return read_targets(tmp_path / "t.csv")


def test_a_target_is_missed_below_its_allowance_only(tmp_path):
    asked = targets(tmp_path, "cora,node,record,zero-out,4,60.0,55.5,")
    for accuracy, missed in (([0.6, 0.6], 0), ([0.594, 0.594], 0), ([0.592, 0.592], 1), ([0.55, 0.63], 0)):
        table, found = against(rows(accuracy), asked)
        assert found == missed and len(table.body) == 1, accuracy
    assert table.body[0][6:] == ("59.0 ± 4.0", "60", "yes", "55.5", "2")


@pytest.mark.parametrize(
    "line",
    [
        "pubmed,node,record,zero-out,4,10,,",
        "cora,edge,record,zero-out,4,10,,",
        "cora,node,node,zero-out,4,10,,",
        "cora,node,record,replace,4,10,,",
        "cora,node,record,zero-out,8,10,,",
        "cora,node,record:3,zero-out,4,10,,",
        "cora,node,record,zero-out,4,10,,hops=2",
    ],
)
def test_a_target_is_for_its_own_setting_alone(tmp_path, line):
    assert against(rows([0.5, 0.6]), targets(tmp_path, line))[0].body == ()


def test_local_targets_are_by_the_budgets_of_the_parts(tmp_path):
    head = "dataset,labels,edges,target_accuracy\n"
    asked = targets(tmp_path, "cora,3,raw,50", "cora,6,raw,50", head=head)
    parts = {"features": "withheld", "labels": 3.0, "edges": "raw"}
    table, missed = against(rows([0.4], level="local", adjacency="local", parts=parts, epsilon_target=None), asked)
    assert len(table.body) == 1 and missed == 1 and table.body[0][8] == "NO"


def test_a_local_target_is_for_its_own_relation(tmp_path):
    """An entry that is there or not is another promise than an entry that is exchanged."""
    parts = {"features": "raw", "labels": "raw", "edges": 2.0}
    local = {"level": "local", "adjacency": "local", "parts": parts, "epsilon_target": None}
    head = "dataset,features,labels,edges,relation,target_accuracy\n"
    asked = targets(tmp_path, "cora,raw,raw,2,zero-out,50", head=head)
    kept, other = (against(rows([0.6], relation=one, **local), asked)[0].body for one in ("zero-out", "replace"))
    assert len(kept) == 1 and other == ()
    optional = targets(tmp_path, "cora,raw,raw,2,degrees=public,50", head=head.replace("relation", "option"))
    assert against(rows([0.6], **local), optional)[0].body == ()


def test_other_figures_keep_limits_as_they_stand(tmp_path):
    head = "dataset,method,metric,at_least,at_most\n"
    asked = targets(tmp_path, "cora,gap,a.auc,,0.55", "cora,gap,a.auc,0.5,", "cora,mlp,a.auc,0.9,", head=head)
    found = [row | {"metrics": {"a.auc": value}} for row, value in zip(rows([0, 0]), (0.5, 0.62), strict=True)]
    table, missed = against(found, asked)
    assert missed == 1 and [line[6:10] for line in table.body] == [
        ("a.auc", "0.560 ± 0.060", "at most 0.55", "NO"),
        ("a.auc", "0.560 ± 0.060", "at least 0.5", "yes"),
    ]


def test_a_limit_on_the_accuracy_has_no_allowance(tmp_path):
    asked = targets(tmp_path, "cora,60", head="dataset,at_least\n")
    assert [against(rows([value] * 2), asked)[1] for value in (0.601, 0.599)] == [0, 1]
    assert against(rows([0.601] * 2), asked)[0].body[0][6:9] == ("60.1 ± 0.0", "at least 60", "yes")


def test_every_committed_specification_can_run_and_meets_its_targets_somewhere():
    from pathlib import Path

    from graphveil.experiments import expand, read_experiment
    from graphveil.experiments.execute import failed
    from graphveil.experiments.summary import groups
    from graphveil.experiments.targets import fits

    folder = Path(__file__).parents[2] / "benchmarks"
    found = {path.stem: expand(read_experiment(path)) for path in folder.glob("*.yaml")}
    assert {name: len(runs) >= 20 for name, runs in found.items()} == dict.fromkeys(found, True) and len(found) >= 5
    for name in ("ballot", "local"):
        known = groups([failed(run, "") | {"experiment": name} for run in found[name] if run.method == name])
        for target in read_targets(folder / f"{name}_targets.csv"):
            assert any(fits(group, target) for group in known), target


def test_files_that_hold_no_targets_are_one_line(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_targets(tmp_path / "none.csv")
    with pytest.raises(InputError, match="target_accuracy"):
        targets(tmp_path, "1", head="dataset\n")
