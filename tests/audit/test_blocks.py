"""Audits go over blocks: the replay sees a graph that is cut into pieces, read in threads or from a folder, as large ones are."""

import numpy as np
import pytest

from graphveil.audit import audit_method
from graphveil.audit.central.conformance import (
    ConformanceError,
    awkward_graph,
    check_private_method,
    example_promise,
)
from graphveil.audit.central.many_draws import many_draws
from graphveil.audit.central.neighbours import neighbours
from graphveil.audit.central.replay import Recording
from graphveil.audit.result import GREEN
from graphveil.audit.settings import BLOCKS, in_blocks
from graphveil.graph.folder import open_folder, save_folder
from graphveil.learn import engine
from graphveil.learn.engine.local import Local
from graphveil.methods.ballot import Ballot
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.gap import Gap
from graphveil.methods.mlp import Mlp
from graphveil.methods.roster import Roster
from graphveil.privacy.promise import EdgeLevel, KNeighborLevel, NodeLevel
from tests.audit.mutants.blocks import a_repeated_part_counts_twice, blocks_share_noise, chunks_share_counters
from tests.audit.mutants.central import clipping_skipped, data_dependent_max_degree, mean_instead_of_sum

METHODS = [
    DpMlp(steps=4),
    Ballot(steps=4, combiner_steps=4, assume="homophilous", least_votes=0.5),
    Roster(steps=4),
    Gap(steps=4),
    Gap(steps=4, hidden=5),
]
RECORD = NodeLevel(4.0, 1e-4)


def stored(kind, folder):
    """The method, fitted to a folder that the data are written to first."""

    class Stored(kind):
        def validated(self, data, on_bad_rows):
            graph = super().validated(data, on_bad_rows)
            if graph.on_disk:
                return graph
            place = folder / str(len(list(folder.iterdir())))
            save_folder(graph, place, BLOCKS)
            return open_folder(place, keep=0)

    return Stored


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("promise", [RECORD, KNeighborLevel(2, 4.0, 1e-4)], ids=["record", "k-neighbor"])
def test_a_run_from_a_folder_conforms(method, promise, tmp_path):
    kind = stored(type(method), tmp_path)
    report = check_private_method(kind(**{k: v for k, v in method.get_params().items() if k != "mode"}), [promise])
    assert max(report.largest.values()) > 0.98  # bounds were put to the test
    assert len(list(tmp_path.iterdir())) > 20


def test_an_edge_level_run_from_a_folder_conforms(tmp_path):
    report = check_private_method(stored(Gap, tmp_path)(epochs=2, hidden=5), [EdgeLevel(4.0, 1e-4)])
    assert max(report.largest.values()) > 0.98
    report = check_private_method(stored(Mlp, tmp_path)(epochs=2, hidden=5), [EdgeLevel(4.0, 1e-4)])
    assert not report.largest  # nothing is released that edges could move


@pytest.mark.parametrize("method", METHODS[-2:], ids=repr)
@pytest.mark.parametrize("bug", [clipping_skipped, mean_instead_of_sum, data_dependent_max_degree])
def test_bugs_in_the_sums_of_gap_are_seen(method, bug):
    with bug(), pytest.raises(ConformanceError):
        check_private_method(method, [RECORD])


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_replays_do_not_depend_on_the_cut(method):
    """Clean values and distances of every release, on every neighbour: one block, a few in threads, one record each."""
    data, names = awkward_graph(method)
    plan = method.plan(method.facts(data), RECORD)
    seen = []
    for where in (Local(1), Local(3, records=7), Local(1, records=1)):
        with engine.using(where):
            run = Recording(method, plan, data, 0)
            run.run(data, run.recorder)
            cleans = [event.clean for event in run.recorder.events]
            moved = [part.distance for n in neighbours(data, names, RECORD) for part in run.replay(n)[1].measured]
        seen.append((cleans, moved))
    for cleans, moved in seen[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(cleans, seen[0][0], strict=True)) and moved == seen[0][1]


def test_audits_cut_their_graph_and_leave_a_chosen_engine_alone():
    asked = []

    class Listening(DpMlp):
        def learn(self, curator, coins, progress):
            where = engine.chosen()
            asked.append((where, len(where.spans(curator._private))))
            return super().learn(curator, coins, progress)

    found = audit_method(Listening(steps=2), RECORD, runs=1, samples=1000, outside=False)
    assert found.verdict == GREEN and {blocks for _, blocks in asked} == {BLOCKS}
    asked.clear()
    chosen = Local(1, records=2)
    with engine.using(chosen):
        check_private_method(Listening(steps=2), [RECORD])
    assert {where for where, _ in asked} == {chosen}


def test_a_part_that_counts_twice_shows_where_the_graph_is_cut_and_nowhere_else():
    method = METHODS[0]
    data, names = awkward_graph(method)
    plan = method.plan(method.facts(data), RECORD)

    def worst():
        run = Recording(method, plan, data, 0)
        run.run(data, run.recorder)
        replays = [run.replay(neighbour)[1] for neighbour in neighbours(data, names, RECORD)]
        return max(m.distance / max(m.release.sensitivity.values()) for tape in replays for m in tape.measured)

    with a_repeated_part_counts_twice():
        with engine.using(Local(1)):
            assert worst() <= 1 + 1e-9
        with in_blocks(int(data.num_nodes)):
            assert worst() > 1.9


@pytest.mark.parametrize("shared", [blocks_share_noise, chunks_share_counters])
def test_noise_that_blocks_share_is_seen_by_nothing_but_a_table_of_several_blocks(shared):
    """No release of a small graph has two blocks: each has its law, and only the wide table tells."""
    method = DpMlp(steps=4)
    data, _ = awkward_graph(method)
    plan = method.plan(method.facts(data), example_promise(RECORD.guarantee, 12))
    with shared():
        run = Recording(method, plan, data, 0)
        run.run(data, run.recorder)
        found = list(many_draws(run, 2000))
    assert {failure.release for failure in found} == {step.name for step in plan.steps}
    assert all("share noise" in failure.detail for failure in found)
    run = Recording(method, plan, data, 0)
    run.run(data, run.recorder)
    assert not list(many_draws(run, 2000))
