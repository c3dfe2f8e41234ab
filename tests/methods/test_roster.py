"""Roster from data to certificate: the conditions of its review, one test each (19: ``tests/attacks/test_lists.py``)."""

import math
import pickle

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import everybody_changed, worst_case_graph
from graphveil.audit.central.replay import Recorder, Replayer
from graphveil.errors import InputError, PrivacyError
from graphveil.graph import Lists
from graphveil.graph.blocks import Block
from graphveil.graph.validate import validate
from graphveil.learn.grids import coefficient_grain
from graphveil.methods.roster import Roster
from graphveil.methods.roster.records import Blocks
from graphveil.methods.roster.statements import ONE_EDGE, ONE_ENTRY, WITH_EDGES
from graphveil.methods.roster.sums import Sums
from graphveil.methods.roster.weights import Weights
from graphveil.privacy.accounting.loss import gaussian_epsilon
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.noise import Noise
from graphveil.runs.verify import verify_run
from tests.methods.roster_histories import CLIP, history
from tests.methods.roster_runs import decided, roster
from tests.methods.roster_witness import Reading, random_world

RECORD = gv.NodeLevel(4.0, 1e-4)
FACTS = PublicFacts(2708, 20, 7)
MIXED = Weights(0.6, 0.6, 0.5, clip=CLIP)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def data():
    return worst_case_graph(1)[0]


def events(data, **options):
    tape = Recorder()
    model = roster(**options).fit(data, RECORD, seed=0, tape=tape)
    return {event.name: event for event in tape.events}, model


def with_list(data, r, contacts):
    """The same data where r lists these people."""
    other = data.clone()
    new = torch.tensor([[r] * len(contacts), list(contacts)], dtype=torch.long)
    other.edge_index = torch.cat([data.edge_index[:, data.edge_index[0] != r], new], dim=1)
    return other


def some_model(graph, seed=0):
    rng = np.random.default_rng(seed)
    sizes = ((graph.features, graph.classes), (graph.nodes, graph.classes), (1, graph.classes))
    return Blocks(*(rng.normal(size=size) for size in sizes))


def test_1_a_changed_list_moves_nobody_elses_summand_by_a_bit(data):
    """Lists are read as stored: neither symmetrised nor by who mentions whom."""
    r = 0
    one, other = (validate(d) for d in (data, with_list(data, r, [5, 6, 7, 30])))
    rest = np.flatnonzero((one.masks["train"] | one.masks["calibration"]) & (np.arange(one.nodes) != r))
    asked = np.flatnonzero(~(one.masks["train"] | one.masks["calibration"]))
    model, centre = some_model(one), np.zeros(one.features)
    for floor in (1, 4):
        a, b = (Sums(graph, rest, centre, floor) for graph in (one, other))
        assert np.array_equal(a.gradient(model, MIXED).flat(), b.gradient(model, MIXED).flat())
        assert np.array_equal(a.probe(np.full(3, 1 / 3)), b.probe(np.full(3, 1 / 3)))
        rows = [Sums(graph, asked, centre, floor).rows(model, MIXED) for graph in (one, other)]
        assert np.array_equal(*rows)


def test_1_a_prediction_reads_the_own_list_and_nobody_elses(data):
    model = roster().fit(data, RECORD, seed=0)
    other = with_list(data, 0, [5, 6, 7, 30])
    differs = (model.predict_proba(data) != model.predict_proba(other)).any(dim=1)
    assert differs[0] and not differs[1:].any()


def test_2_repeated_entries_and_self_loops_change_no_release(data):
    crowded = data.clone()
    loops = torch.arange(data.num_nodes).repeat(2, 1)
    crowded.edge_index = torch.cat([data.edge_index, data.edge_index[:, :40], loops], dim=1)
    one, other = events(data)[0], events(crowded)[0]
    assert all(np.array_equal(one[name].clean, other[name].clean) for name in one)


def test_3_a_labelled_slot_without_a_label_adds_nothing_whatever_else_it_has(data):
    r = int(data.train_mask.nonzero()[0])
    unlabelled = data.clone()
    unlabelled.y[r] = -1
    graph, model = validate(unlabelled), some_model(validate(data))
    alone = Sums(graph, np.array([r]), np.zeros(graph.features), 1)
    assert not alone.labels().any() and not alone.probe(np.full(3, 1 / 3)).any()
    probe = np.split(np.ones((graph.features + 2 * graph.nodes, 3)), [graph.features, graph.features + graph.nodes])
    assert not alone.margins(tuple(probe), np.full(3, 1 / 3), np.ones(3)).any()
    assert not alone.gradient(model, MIXED).flat().any()


def test_4_rows_are_zero_without_features_and_noisy_for_everybody_who_is_not_labelled(data):
    labelled = (data.train_mask | data.val_mask).numpy()
    absent = int((~(data.train_mask | data.val_mask)).nonzero()[0])
    data.x[absent] = 0.0  # its list stays
    found, model = events(data)
    row = found["rows"]
    asked = np.flatnonzero(~labelled)
    assert np.array_equal(model.predictor.asked, asked) and row.clean.shape == (len(asked), 3)
    assert not row.clean[asked == absent].any() and row.clean[asked != absent].any(axis=1).all()
    assert (row.released.reshape(-1, 3) != row.clean).all()


def test_5_all_releases_are_made_whether_contacts_agree_or_not_and_both_runs_verify(data, tmp_path):
    told = []
    for mode in ("features", "lists", "agreement"):
        with decided(mode):
            model = roster().fit(data, RECORD, seed=0)
        model.save(tmp_path / mode)
        assert verify_run(tmp_path / mode)[0] == []
        told.append(model.certificate.to_json())
    assert told[0] == told[1] == told[2]
    assert [release["name"] for release in told[0]["releases"]] == [
        "mean",
        "prior",
        "probe",
        "test",
        "gradients",
        "rows",
    ]


def test_6_deleting_labels_changes_no_divisor_and_no_scale(data):
    fewer = data.clone()
    fewer.y[data.train_mask.nonzero()[:5]] = -1
    one, other = roster().fit(data, RECORD, seed=0), roster().fit(fewer, RECORD, seed=0)
    assert [r.mechanism for r in one.certificate.releases] == [r.mechanism for r in other.certificate.releases]
    tape = Recorder()
    roster().fit(data, RECORD, seed=0, tape=tape)
    replayer = Replayer(tape.events, None)
    replayed = roster().fit(fewer, RECORD, seed=0, tape=replayer)
    assert all(np.array_equal(value, replayed.predictor.arrays()[key]) for key, value in one.predictor.arrays().items())


def test_6_one_class_or_nobody_labelled_is_refused():
    with pytest.raises(InputError, match="classes"):
        PublicFacts(10, 3, 1)
    with pytest.raises(InputError, match="training and calibration"):
        Roster().plan(PublicFacts(10, 3, 2, kinds={"query": 10}), RECORD)


@pytest.mark.parametrize("cover", [True, False])
def test_7_everything_decided_follows_from_released_numbers(data, cover):
    tape = Recorder()
    model = roster(edge_cover=cover).fit(data, RECORD, seed=1, tape=tape)
    for other in everybody_changed(data, RECORD):
        replayed = roster(edge_cover=cover).fit(other, RECORD, seed=1, tape=Replayer(tape.events, None))
        arrays = replayed.predictor.arrays()
        assert all(np.array_equal(value, arrays[name]) for name, value in model.predictor.arrays().items())
        assert replayed.predictor.config() == model.predictor.config()


def test_8_the_certificate_prints_what_an_entry_an_edge_and_k_edges_cost(data):
    plan = Roster(edge_cover=False).plan(PublicFacts(1000, 5, 2), RECORD)
    assert plan.implied[ONE_ENTRY] == pytest.approx(gaussian_epsilon(1.9698 * plan.mu, 1e-4), rel=1e-3)
    assert plan.implied[ONE_EDGE] == pytest.approx(gaussian_epsilon(2.7857 * plan.mu, 1e-4), rel=1e-3)
    assert plan.implied[WITH_EDGES.format(1)] == pytest.approx(2.346 * plan.mu, rel=1e-3)
    assert plan.implied[WITH_EDGES.format(5)] == pytest.approx(7.783 * plan.mu, rel=1e-3)
    covered = Roster(edge_cover=True).plan(FACTS, RECORD)
    assert covered.implied[ONE_ENTRY] < 4 and 3.9 < covered.implied[ONE_EDGE] <= 4.0 * (1 + 1e-9)
    assert covered.implied[WITH_EDGES.format(1)] == pytest.approx(1.65 * covered.mu, rel=1e-2)
    assert set(plan.implied) <= set(roster(edge_cover=False).fit(data, RECORD, seed=0).certificate.implied)


@pytest.mark.parametrize(
    "promise",
    [
        gv.NodeLevel(4.0, adjacency="node"),
        gv.NodeLevel(4.0, adjacency="bounded-degree", max_degree=9),
        gv.EdgeLevel(4.0),
        gv.KNeighborLevel(1, 4.0, relation="replace"),
    ],
    ids=["node", "bounded-degree", "edge", "k-neighbor replace"],
)
def test_9_what_is_not_proved_is_refused(promise):
    with pytest.raises(InputError, match="does not cover"):
        Roster().plan(FACTS, promise)


def test_9_k_neighbor_makes_no_rows_and_costs_everybody_at_most_epsilon():
    for cover in (True, False):
        for k in (1, 5, 25):
            plan = Roster(edge_cover=cover).plan(FACTS, gv.KNeighborLevel(k, 4.0, 1e-4))
            assert [step.name for step in plan.steps] == ["mean", "prior", "probe", "test", "gradients"]
            costs = plan.costs(plan.steps)
            assert max(costs.values()) <= 4.0 * (1 + 1e-9) and costs["train"] > 3.99
            assert (
                0 < costs["query"] < costs["train"]
            )  # the lists that lose a query person move, the person's own row is not read
            assert (plan.implied[ONE_EDGE] <= 4.0) == (
                cover or k > 1
            )  # without cover two lists outweigh a record and a list


def test_10_replace_declares_its_own_constants():
    plan = Roster().plan(FACTS, gv.NodeLevel(4.0, 1e-4, relation="replace"))
    declared = {step.name: max(step.mechanism.allowance(b) for b in step.sensitivity.values()) for step in plan.steps}
    expected = {"mean": 2.0, "prior": math.sqrt(2), "probe": math.sqrt(2), "test": math.sqrt(13), "gradients": 2 * CLIP}
    expected["rows"] = math.sqrt(2 * 7 / 6)
    assert declared == pytest.approx(expected, rel=1e-4)
    assert all(declared[name] >= bound * (1 - 1e-15) for name, bound in expected.items())
    assert plan.implied[ONE_EDGE] < 4.0  # one edge moves no more than under zero-out, and the noise is larger


def sentences(method, promise, facts=FACTS):
    return " | ".join(method.statements(method.plan(facts, promise))[1])


def test_11_and_13_the_certificate_says_what_predictions_codes_and_lists_reveal(data):
    text = sentences(Roster(), RECORD)
    for said in (
        "one slot loses its features, its label and its own contact list",
        "the node's own features and its own contact list",
        "whoever sees it may reconstruct that list, and so the other end of each friendship",
        "show it to that node only",
        "covers the releases, not predictions of people who list the node",
        "the code of slot r is learned from the people who list r",
        "a person who vanishes from everybody's lists is not covered",
        "holds a noisy copy of its label",
        "there is no validation accuracy",
    ):
        assert said in text
    assert "even if it disappears from everybody's lists" not in text and "also covers one edge" not in text
    model = roster().fit(data, RECORD, seed=0)
    assert "epsilon at delta/100" in model.certificate.implied
    with pytest.raises(PrivacyError, match="own contact list"):
        model.predict(data, access="public-graph")


def test_11_edges_are_called_covered_exactly_where_their_printed_cost_keeps_epsilon():
    assert "costs at most the same (epsilon, delta)" in sentences(Roster(), RECORD)
    assert "not covered at this epsilon" in sentences(Roster(edge_cover=False), RECORD)
    near = sentences(Roster(), gv.KNeighborLevel(2, 4.0))
    assert "up to 2 of its edges, in both lists" in near and "costs at most the same (epsilon, delta)" in near
    assert "exchanges its features" in sentences(Roster(), gv.NodeLevel(4.0, relation="replace"))
    coarse = Roster(edge_cover=True, clip=1e-4)  # steps of the grid are no longer small beside the clip
    assert coarse.plan(FACTS, RECORD).implied[ONE_EDGE] > 4.0
    assert "the grid of the sums adds" in sentences(coarse, RECORD)
    large = PublicFacts(20_000_000, 5, 40)
    assert "the grid of the sums adds" in sentences(Roster(), gv.NodeLevel(4.0, 1e-9), large)


def test_12_what_is_published_is_computed_from_released_numbers_alone(data):
    model = roster().fit(data, RECORD, seed=0)
    shown = model.predict_proba(data, access="charge")
    other = with_list(data, int(data.test_mask.nonzero()[0]), [1, 2, 3])
    other.x = -data.x
    assert torch.equal(model.predict_proba(other, access="charge"), shown)
    assert torch.equal(model.predict_proba(), shown)
    assert not torch.equal(model.predict_proba(other), model.predict_proba(data))
    assert np.array_equal(
        model.predictor.codes, roster().fit(data, RECORD, seed=0).predictor.codes
    )  # and left as they are
    near = roster().fit(data, gv.KNeighborLevel(1, 4.0, 1e-4), seed=0)
    assert "no rows are released" in " ".join(near.certificate.assumptions)
    with pytest.raises(PrivacyError):
        near.predict(data, access="charge")


def test_14_calibration_nodes_are_learned_from_and_have_no_accuracy(data):
    assert Roster.learns_from == ("train", "calibration")
    model = roster().fit(data, RECORD, seed=0)
    assert 0 <= model.score(data) <= 1
    with pytest.raises(InputError, match="learns from calibration"):
        model.score(data, kind="calibration")
    relabelled = data.clone()
    relabelled.y[data.val_mask] = (data.y[data.val_mask] + 1) % 3
    assert not np.array_equal(events(data)[0]["prior"].clean, events(relabelled)[0]["prior"].clean)


def test_15_permuting_people_leaves_lists_and_slots_bit_equal(data):
    graph, rng = validate(data), np.random.default_rng(0)
    order = rng.permutation(graph.nodes)
    model, prior = some_model(graph), np.full(3, 1 / 3)
    moved = Blocks(model.features, model.codes[order], model.bias)
    labelled = graph.masks["train"] | graph.masks["calibration"]
    here = Sums(graph, np.flatnonzero(labelled), np.zeros(graph.features), 2)
    there = Sums(graph.reordered(order), np.flatnonzero(labelled[order]), np.zeros(graph.features), 2)
    # codes are read in another order, so the residuals may differ in the last bits: those of the features alone do not
    flat = Weights(0.6, 0.0, 0.0, clip=CLIP)
    assert np.array_equal(here.gradient(model, flat).bias, there.gradient(moved, flat).bias)
    one, other = (np.split(r.probe(prior).reshape(-1, 3)[graph.features :], 2) for r in (here, there))
    assert all(np.array_equal(a[order], b) for a, b in zip(one, other, strict=True))


def test_16_sums_are_exact_and_truncated_coefficients_cost_an_edge_below_a_thousandth_for_ten_million_people():
    release = Roster().plan(PublicFacts(10_000_000, 100, 10), gv.NodeLevel(4.0)).release("gradients")
    assert release.mechanism.slack == 0 and release.sensitivity["train"] == CLIP
    assert 0 < coefficient_grain(10_000_000, CLIP, 10) < 1e-3 * CLIP


@pytest.mark.parametrize("cover", [True, False])
def test_17_blocks_that_weigh_nothing_are_released_as_planned(data, cover):
    for mode in ("features", "lists"):
        with decided(mode):
            found, model = events(data, edge_cover=cover)
        width = data.num_features
        clean = found["gradients"].clean.reshape(-1, 3)
        assert clean.size == model.certificate.releases[4].mechanism.dimension
        skipped = clean[:width] if mode == "lists" else clean[width:-1]
        assert not skipped.any() and clean.any()
        table = model.predictor.features if mode == "lists" else model.predictor.codes
        assert not table.any()


def test_18_a_second_release_is_refused_and_a_prediction_is_none(data):
    graph = validate(data)
    plan = roster().plan(PublicFacts.of(graph), RECORD)
    curator = Curator(graph, plan, Noise(0), Ledger())
    curator.release("prior", lambda private: np.zeros(3))
    with pytest.raises(PrivacyError, match="already happened"):
        curator.release("prior", lambda private: np.zeros(3))
    ledger = Ledger()
    model = roster().fit(data, RECORD, seed=0, ledger=ledger)
    model.predict(data)
    model.predict(data, access="charge")
    assert len(ledger.entries) == 6
    with pytest.raises(PrivacyError, match="already happened"):
        roster().fit(data, RECORD, seed=0, ledger=ledger)


def test_leave_one_out_margins_are_those_of_a_probe_without_the_record():
    """Without noise, taking the own term off is recomputing the probe without that person."""
    rng = np.random.default_rng(3)
    for _ in range(15):
        world = random_world(rng)
        past = history(rng, world, False)
        everybody = Reading(world, past.centre, 1)
        bounds, width, n = np.full(3, 1e6), world.x.shape[1], len(world.y)
        for i in world.labelled:
            total = sum(everybody.probe(j, past.prior) for j in world.labelled)
            others = sum((everybody.probe(j, past.prior) for j in world.labelled if j != i), 0 * total)
            told, root = everybody.deviation(i, past.prior), math.sqrt(3)
            expected = [
                root * told @ (everybody.features(i) @ others[:width]),
                root * told @ (everybody.contacts(i) @ others[width : width + n]),
                root * told @ (everybody.contacts(i) @ others[width + n :]),
            ]
            alone = Sums(world.graph, np.array([i]), past.centre, 1)
            found = alone.margins(tuple(np.split(total, [width, width + n])), past.prior, bounds)[:3] * 1e6
            assert found == pytest.approx(expected, abs=0.07)  # the grid times 1e6


def test_edge_cover_is_on_for_undirected_data_and_off_for_directed_lists(data):
    assert Roster().covers(PublicFacts(10, 3, 2)) and not Roster().covers(PublicFacts(10, 3, 2, directed=True))
    assert Roster(edge_cover=True).covers(PublicFacts(10, 3, 2, directed=True))
    directed = data.clone()
    directed.directed = True
    one, other = (roster().fit(d, RECORD, seed=0) for d in (data, directed))
    assert one.predictor.floor >= 2 and other.predictor.floor == 1
    assert one.certificate.implied[ONE_EDGE] <= 4.0 * (1 + 1e-9) < other.certificate.implied[ONE_EDGE]


def test_people_asked_about_later_and_longer_lists_need_no_new_release(data):
    model = roster().fit(data, RECORD, seed=0)
    swapped = data.clone()
    swapped.test_mask = ~(data.train_mask | data.val_mask)
    assert torch.equal(model.predict_proba(swapped), model.predict_proba(data))
    grown = with_list(data, 3, [4, 5, 6, 7])
    differs = (model.predict_proba(data) != model.predict_proba(grown)).any(dim=1)
    assert differs.nonzero().ravel().tolist() == [3]


def joined(data, contacts):
    """Two people come, of whom the first lists these; person 3 now lists the first of them."""
    n, other = data.num_nodes, data.clone()
    other.x = torch.cat([data.x, data.x[:2]])
    other.y = torch.cat([data.y, torch.tensor([-1, -1])])
    for mask in ("train_mask", "val_mask", "test_mask"):
        other[mask] = torch.cat([data[mask], torch.tensor([False, False])])
    new = torch.tensor([[n] * len(contacts) + [3], [*contacts, n]])
    other.edge_index = torch.cat([data.edge_index, new], dim=1)
    return other


def test_people_who_came_later_have_no_code_and_get_their_own_prediction(data):
    model, n = roster(edge_cover=False).fit(data, RECORD, seed=0), data.num_nodes
    larger = joined(data, [1, 2])
    found = model.predict_proba(larger)
    assert found.shape == (n + 2, 3)
    before = model.predict_proba(data)
    assert torch.equal(found[:3], before[:3]) and torch.equal(found[4:n], before[4:])
    alone = model.predict_proba(joined(data, []))
    assert not torch.equal(found[n], alone[n]) and torch.equal(found[n + 1], alone[n + 1])
    with pytest.raises(InputError, match="came later"):
        model.predict(larger, access="charge")
    with pytest.raises(InputError, match="say nothing about another"):
        gv.Gap(hops=1).fit(data, RECORD, seed=0).predict(larger)
    fewer = data.subgraph(torch.arange(n) > 0)
    with pytest.raises(InputError, match="say nothing about another"):
        model.predict(fewer)


def test_people_who_came_later_are_found_behind_the_others_by_their_ids(data):
    n = data.num_nodes
    data.ids = [f"person {i}" for i in range(n)]
    model = roster().fit(data, RECORD, seed=0)
    larger = joined(data, [1, 2])
    larger.ids = [*data.ids, "new", "newer"]
    expected = model.predict_proba(larger)
    order = np.random.default_rng(0).permutation(n + 2)
    graph = validate(larger).reordered(order)
    assert torch.allclose(model.predict_proba(graph), expected[torch.from_numpy(order)], atol=1e-12)
    larger.ids = [f"stranger {i}" for i in range(n + 2)]
    with pytest.raises(InputError, match="not in the training data"):
        model.predict(larger)


def test_a_node_without_a_list_is_predicted_from_its_features(data):
    model = roster(edge_cover=False).fit(data, RECORD, seed=0)
    predictor = model.predictor
    graph = validate(data).without_lists()
    reading = predictor.logits(graph)
    shift = predictor.heard * predictor.push * predictor.codes
    predictor.codes = 0 * predictor.codes
    assert np.allclose(predictor.logits(graph) + shift, reading)


def test_a_saved_run_predicts_the_same(data, tmp_path):
    for mode in ("agreement", "lists"):
        with decided(mode):
            model = roster().fit(data, RECORD, seed=0)
        model.save(tmp_path / mode)
        loaded = gv.load_model(tmp_path / mode)
        assert torch.equal(loaded.predict_proba(data), model.predict_proba(data))
        assert torch.equal(loaded.predict_proba(data, access="charge"), model.predict_proba(data, access="charge"))
        assert loaded.certificate == model.certificate


def test_without_features_and_without_noise_it_still_runs(data):
    bare = data.clone()
    bare.x = data.x[:, :0]
    model = roster().fit(bare, RECORD, seed=0)
    assert next(release.name for release in model.certificate.releases) == "prior"
    assert model.predict(bare).shape == (data.num_nodes,)
    for promise in (gv.NodeLevel(math.inf), gv.NonPrivate(), gv.KNeighborLevel(1, math.inf)):
        model = roster().fit(data, promise)
        assert not model.certificate.holds and model.certificate.epsilon is None
        assert torch.isfinite(model.predict_proba(data)).all()


def test_nobody_but_labelled_people_gives_a_plan_without_rows():
    plan = Roster().plan(PublicFacts(10, 3, 2, kinds={"train": 10}), gv.NodeLevel(4.0, 1e-4))
    assert "rows" not in [step.name for step in plan.steps]


def test_an_odd_number_of_steps_is_refused():
    with pytest.raises(InputError, match="even number"):
        Roster(steps=5).plan(FACTS, RECORD)


@pytest.mark.parametrize("room", [0, 1 << 30])
def test_records_are_kept_ready_only_where_there_is_room_and_never_leave_their_process(data, room):
    graph = validate(data)
    labelled = np.flatnonzero(graph.masks["train"] | graph.masks["calibration"])
    sums = Sums(graph, labelled, np.zeros(graph.features), 1, room)
    first, again = (sums.gradient(some_model(graph), MIXED).flat() for _ in range(2))
    assert np.array_equal(first, again) and len(sums._reader._ready._kept) == (1 if room else 0)
    sent = pickle.loads(pickle.dumps(sums._reader))
    assert not sent._ready._kept and np.array_equal(sent.wanted, sums._reader.wanted)
    block = Block(graph, slice(0, graph.nodes))
    assert np.array_equal(sent(block).x.values, sums._reader(block).x.values) and not sent._ready._kept


def test_lists_keep_no_entry_of_their_owner():
    lists = Lists.from_edge_index(np.array([[0, 0, 0, 1], [0, 1, 1, 1]]), 3)
    assert lists.of(np.arange(3)).degrees.tolist() == [1, 0, 0]
