"""The papers' central systems: sound modes pass the suite, published modes fail with exactly the codes on their cards."""

import pytest

from graphveil.audit.central.conformance import ConformanceError, check_private_method, example_promise, inspect_method
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.methods.dp_sage import DpSage
from graphveil.methods.dpar import Dpar
from graphveil.methods.dpdgc import Dpdgc
from graphveil.methods.edge_rand import EdgeRand
from graphveil.methods.nip_gnn import NipGnn
from graphveil.privacy.facts import PublicFacts

DPDGC = {"steps": 3, "code_steps": 3, "width": 4, "epochs": 2}
DPAR = {"steps": 3, "sources": 6, "hidden": 4, "projection": 3, "batch_size": 3}
NIP = {"steps": 3, "width": 4, "epochs": 2}
SOUND = [
    EdgeRand(epochs=2, hidden=4),
    EdgeRand(epochs=2, hidden=4, backbone="gcn"),
    Dpdgc(**DPDGC),
    Dpdgc(**DPDGC, codes="labels", hidden=4),
    Dpdgc(**DPDGC, codes="rr-labels"),
    Dpdgc(**DPDGC, codes="random", row_norm=0.25),
    Dpar(**DPAR),
    Dpar(**DPAR, select="em0", pagerank="push"),
    Dpar(**DPAR, select="em1", inductive=False),
    Dpar(**DPAR, graph_rate=0.7),
    Dpar(**DPAR | {"batch_size": None}),
    Dpar(**DPAR | {"batch_size": None}, column_rows=2, self_weight=0.0),
    Dpar(**DPAR, route="aggregate"),
    Dpar(**DPAR, rows="identity"),
    Dpar(**DPAR, rows="random"),
    DpSage(steps=3, hidden=4, max_degree=3),
    NipGnn(**NIP),
    NipGnn(**NIP, labels="rr"),
    NipGnn(**NIP, allocation="uniform", residual=False, hops=1),
    NipGnn(**NIP, labels="rr", noise="laplace"),
    NipGnn(**NIP, messages="labels", hidden=4),
    NipGnn(**NIP, labels="rr", noise="laplace", messages="rr-labels", hops=3),
]
PUBLISHED = [
    Dpdgc(mode="published", hidden=4, width=8, epochs=2, open_epochs=2, max_degree=2, row_norm=1.0),
    Dpar(mode="published", hidden=4, sources=16, batch_size=16, clip=0.05, graph_rate=0.8),
    NipGnn(mode="published", hidden=4, epochs=2, max_degree=20),
]
EXPOSED = [  # variants whose plans have fewer gaps than the card
    NipGnn(mode="published", hidden=4, epochs=2, max_degree=20, beta_rule="proof", s_rule="intended"),
    NipGnn(mode="published", hidden=4, epochs=2, max_degree=20, allocation="uniform", degree_sampling=False),
    Dpar(mode="published", select="em0", picks=3, hidden=4, sources=16, batch_size=16, clip=0.05, graph_rate=0.8),
    Dpar(mode="published", select="em1", picks=3, hidden=4, sources=16, batch_size=16, clip=0.05, graph_rate=0.8),
]


@pytest.mark.parametrize("method", SOUND, ids=repr)
def test_sound_modes_conform(method):
    report = check_private_method(method)
    assert len(report.promises) == len(method.supports)


@pytest.mark.parametrize("method", PUBLISHED, ids=repr)
def test_published_modes_fail_with_exactly_the_codes_on_their_card(method):
    with pytest.raises(ConformanceError) as caught:
        check_private_method(method)
    assert caught.value.codes == {gap.code for gap in method.gaps}


@pytest.mark.parametrize("method", [*PUBLISHED, *EXPOSED], ids=repr)
def test_each_published_promise_fails_with_exactly_the_gaps_of_its_plan(method):
    cap = method.get_params().get("max_degree")
    facts = PublicFacts.of(worst_case_graph(clique=8 if cap is None else min(int(1.3 * cap) + 3, 140))[0])
    for guarantee in sorted(method.supports, key=str):
        promise = example_promise(guarantee, 12)
        expected = {gap.code for gap in method.plan(facts, promise).gaps}
        assert inspect_method(method, [promise]).codes == expected, guarantee
