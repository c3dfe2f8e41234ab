"""Privacy bugs that have been made before or could be, kept as patches: one list of all of them.

Each must be caught by the suite (``test_mutants.py``: by the cheapest check that sees it) and by ``graphveil audit``, but for
those that say why not. ``python -m tests.audit.mutants.table`` writes which check saw which, ``docs/results/mutants.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphveil.methods.ballot import Ballot
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.dp_sage import DpSage
from graphveil.methods.dpar import Dpar
from graphveil.methods.edge_rand import EdgeRand
from graphveil.methods.gap import Gap
from graphveil.methods.graph_privatizer import GraphPrivatizer
from graphveil.methods.lga_pgnn.baselines import LapGnn
from graphveil.methods.local import LocalRecipe
from graphveil.methods.lpgnn import Lpgnn
from graphveil.methods.roster import Roster
from graphveil.methods.rr_edges import RrEdges
from graphveil.privacy.local import Local
from graphveil.privacy.promise import EdgeLevel, NodeLevel
from tests.audit.mutants import blocks, central, core, late, local, roster, saving
from tests.audit.mutants.planting import Plant

CORE, CENTRAL, SAVING = "privacy core", "central methods", "saving and prediction"
RANDOMIZERS, CLIENTS, COLLECTORS = "randomizers", "clients", "collectors"

RECORD = NodeLevel(4.0, 1e-4)
BOUNDED = NodeLevel(4.0, 1e-4, adjacency="bounded-degree", max_degree=12)
REPLACED = NodeLevel(4.0, 1e-4, relation="replace")
NODE = NodeLevel(4.0, 1e-4, adjacency="node")
EDGE = EdgeLevel(4.0, 1e-4)
BOTH, LISTS, ALL = Local(1.0, 1.0, "raw"), Local("withheld", 1.0, 1.0), Local(1.0, 1.0, 1.0)


def small_gap() -> Gap:
    return Gap(steps=4, hidden=4, epochs=2)


def own() -> DpMlp:
    return DpMlp(steps=4)


def sampled() -> DpMlp:
    return DpMlp(network="paper", epochs=5, hidden=4, batch_size=5)


def long_steps() -> DpMlp:
    return DpMlp(steps=20, learning_rate=1.0)


def two_epochs() -> DpMlp:
    return DpMlp(network="paper", epochs=2, hidden=4, batch_size=5)


def ballot() -> Ballot:
    return Ballot(steps=4, combiner_steps=4, assume="homophilous", least_votes=0.5)


def choosing_ballot() -> Ballot:
    return Ballot(steps=4, combiner_steps=4, audible=0.0)


def pulling() -> Roster:
    return Roster(steps=2, learning_rate=1.0)


def open_lists() -> Roster:
    return Roster(steps=2, learning_rate=1.0, edge_cover=False)


def sage() -> DpSage:
    return DpSage(steps=6, hidden=3, max_degree=3, batch_rate=0.5)


def slots() -> Dpar:
    return Dpar(steps=3, sources=6, hidden=4, projection=3, graph_rate=0.1)


def flipped() -> EdgeRand:
    return EdgeRand(epochs=2, hidden=4)


def lpgnn() -> Lpgnn:
    return Lpgnn(epochs=1, hidden=4)


def recipe() -> LocalRecipe:
    return LocalRecipe(epochs=1)


def two_rounds() -> LocalRecipe:
    return LocalRecipe(histogram_rounds=2, epochs=1)


def hidden_lengths() -> LocalRecipe:
    return LocalRecipe(degrees="noisy", epochs=1)


def buckets() -> GraphPrivatizer:
    return GraphPrivatizer(epochs=1)


def rr_edges() -> RrEdges:
    return RrEdges(epochs=1)


def laplace_rows() -> LapGnn:
    return LapGnn(epochs=1)


@dataclass(frozen=True)
class Mutant:
    """A bug, whom it is planted in, and the cheapest check of the suite that sees it (``checks.py``).

    ``unseen``: why an audit does not see it. ``samples``: so many draws of the sampled bounds show it, where nothing else does.
    """

    name: str
    area: str
    plant: Plant
    method: Callable[[], Any]
    promise: Any
    suite: str = "conformance"
    unseen: str = ""
    samples: int = 10_000


MUTANTS = (
    Mutant("noise reused across hops", CORE, core.noise_reused_across_hops, small_gap, RECORD),
    Mutant("scale 0", CORE, core.scale_zero, own, RECORD),
    Mutant("one draw for all numbers", CORE, core.one_draw_for_all_numbers, own, RECORD),
    Mutant("signs instead of Gaussians", CORE, core.signs_instead_of_gaussians, own, RECORD),
    Mutant("noise off the grid", CORE, core.noise_off_the_grid, small_gap, RECORD),
    Mutant("noise that remembers", CORE, core.noise_that_remembers, small_gap, RECORD, "draws"),
    Mutant(
        "a tenth of the noise on one number", CORE, core.a_tenth_of_the_noise_on_one_number, ballot, RECORD, "draws"
    ),
    Mutant(
        "half the noise on the last number", CORE, core.half_the_noise_on_the_last_number, small_gap, RECORD, "draws"
    ),
    Mutant("half the noise handed back", CORE, core.half_the_noise_handed_back, small_gap, RECORD, "draws"),
    Mutant("slots at half price", CORE, core.slots_at_half_price, ballot, RECORD),
    Mutant("a release left off the ledger", CORE, core.a_release_left_off_the_ledger, own, RECORD),
    Mutant("batches of fixed size", CORE, core.batches_of_fixed_size, sampled, RECORD, "batches"),
    Mutant("one batch for all steps", CORE, core.one_batch_for_all_steps, sampled, RECORD, "batches"),
    Mutant("one record in more batches", CORE, core.one_record_in_more_batches, sampled, RECORD, "batches"),
    Mutant("records drawn in pairs", CORE, core.records_drawn_in_pairs, sampled, RECORD, "batches"),
    Mutant("half of a batch stays", CORE, core.half_of_a_batch_stays, sampled, RECORD, "batches"),
    Mutant("empty batches skipped", CORE, core.empty_batches_skipped, sampled, RECORD, "batches"),
    Mutant("empty batches without noise", CORE, core.empty_batches_without_noise, sampled, RECORD, "batches"),
    Mutant("batches ignored", CORE, core.batches_ignored, sampled, RECORD, "batches"),
    Mutant("edges only added", CORE, core.edges_only_added, flipped, EDGE, "draws"),
    Mutant(
        "replacing accounted as removing",
        CORE,
        core.replacing_accounted_as_removing,
        two_epochs,
        REPLACED,
        "accountants",
        samples=60_000,
    ),
    Mutant("linear amplification", CORE, core.linear_amplification, slots, NODE, "accountants", samples=60_000),
    Mutant(
        "sampling rate halved", CORE, core.sampling_rate_halved_in_the_accounting, two_epochs, RECORD, "accountants"
    ),
    Mutant(
        "Gaussians added like their maximum", CORE, core.gaussians_added_like_their_maximum, own, RECORD, "accountants"
    ),
    Mutant(
        "query labels in every hand",
        CORE,
        core.query_labels_in_every_hand,
        own,
        RECORD,
        "query labels",
        "no method asks for them, so that no run shows it",
    ),
    Mutant(
        "ledger kept in memory",
        CORE,
        core.ledger_kept_in_memory,
        own,
        RECORD,
        "ledger on disk",
        "audits keep their ledgers in memory; what a killed run leaves behind is a matter of the suite",
    ),
    Mutant("clipping skipped", CENTRAL, central.clipping_skipped, own, RECORD),
    Mutant("sqrt D for D", CENTRAL, central.root_of_the_degree_taken_twice, small_gap, BOUNDED),
    Mutant("undirected edge counted once", CENTRAL, central.undirected_edge_counted_once, small_gap, EDGE),
    Mutant("data-dependent max degree", CENTRAL, central.data_dependent_max_degree, small_gap, RECORD),
    Mutant("NaN feature", CENTRAL, central.nan_feature_let_through, own, RECORD),
    Mutant("mean instead of sum", CENTRAL, central.mean_instead_of_sum, own, RECORD),
    Mutant("nodes in no mask not charged", CENTRAL, central.nodes_in_no_mask_not_charged, own, RECORD),
    Mutant("group counted as one row", CENTRAL, central.group_counted_as_one_row, sage, RECORD, "occurrences"),
    Mutant(
        "epoch chosen on validation labels",
        CENTRAL,
        central.epoch_chosen_on_validation_labels,
        long_steps,
        RECORD,
        "choices",
    ),
    Mutant(
        "weights chosen on validation labels",
        CENTRAL,
        central.weights_chosen_on_validation_labels,
        long_steps,
        RECORD,
        "choices",
        "by chance, the audit of seed 0 keeps the same weights on all data; those of seeds 1, 2, 3 and 5 see it, 4 does not",
    ),
    Mutant(
        "mode chosen on true labels", CENTRAL, central.mode_chosen_on_true_labels, choosing_ballot, RECORD, "choices"
    ),
    Mutant("ballots weigh too much", CENTRAL, central.ballots_weigh_too_much, ballot, RECORD),
    Mutant("combiner not clipped", CENTRAL, central.combiner_not_clipped, ballot, RECORD),
    Mutant("rows at full length", CENTRAL, central.rows_at_full_length, own, RECORD),
    Mutant("mean over the true count", CENTRAL, central.mean_over_the_true_count, own, RECORD),
    Mutant(
        "bits at the whole budget", RANDOMIZERS, local.bits_at_the_whole_budget, lpgnn, Local(6.0, 1.0, "raw"), "local"
    ),
    Mutant("labels kept too often", RANDOMIZERS, local.labels_kept_too_often, lpgnn, BOTH, "local"),
    Mutant("counts with half the noise", RANDOMIZERS, local.counts_with_half_the_noise, recipe, LISTS, "local"),
    Mutant("noisy lists keep every contact", RANDOMIZERS, local.noisy_lists_keep_every_contact, rr_edges, ALL, "local"),
    Mutant("half of the Laplace noise", RANDOMIZERS, local.half_of_the_laplace_noise, laplace_rows, BOTH, "local"),
    Mutant("true contact within its bucket", RANDOMIZERS, local.true_contact_within_its_bucket, buckets, ALL, "local"),
    Mutant("second answer with fresh noise", CLIENTS, local.second_answer_with_fresh_noise, lpgnn, BOTH, "local"),
    Mutant("class 0 is no label", CLIENTS, local.class_0_is_no_label, lpgnn, BOTH, "clients"),
    Mutant(
        "features centred by the true mean", CLIENTS, local.features_centred_by_the_true_mean, lpgnn, BOTH, "clients"
    ),
    Mutant("truer of two draws", CLIENTS, local.truer_of_two_draws, lpgnn, BOTH, "local"),
    Mutant("label rides on the list", CLIENTS, local.label_rides_on_the_list, recipe, LISTS, "clients"),
    Mutant(
        "second broadcast of clean labels",
        COLLECTORS,
        local.second_broadcast_of_clean_labels,
        two_rounds,
        Local("withheld", 1.0, 2.0),
        "local",
    ),
    Mutant(
        "true degrees where they are hidden",
        COLLECTORS,
        local.true_degrees_where_they_are_hidden,
        hidden_lengths,
        LISTS,
        "local",
    ),
    Mutant("server reads what is not raw", COLLECTORS, local.server_reads_what_is_not_raw, lpgnn, BOTH, "local"),
    Mutant(
        "second reports are taken",
        COLLECTORS,
        local.second_reports_are_taken,
        lpgnn,
        BOTH,
        "second reports",
        "the clients of an audit send one report each; that they repeat it is audited",
    ),
    Mutant("labels saved beside the model", SAVING, saving.labels_saved_beside_the_model, own, RECORD, "choices"),
    Mutant("edges counted on the certificate", SAVING, saving.edges_counted_on_the_certificate, own, RECORD),
    Mutant("prediction reads the edges", SAVING, saving.prediction_reads_the_edges, small_gap, RECORD),
    Mutant("prediction normalised over everybody", SAVING, saving.prediction_normalised_over_everybody, own, RECORD),
    Mutant("prediction smoothed over contacts", SAVING, saving.prediction_smoothed_over_contacts, own, RECORD),
    Mutant(
        "anybody may ask",
        SAVING,
        saving.anybody_may_ask,
        own,
        RECORD,
        "publication",
        "audits give every node its own prediction and publish none",
    ),
    Mutant("noise above zero", CORE, late.noise_above_zero, own, RECORD),
    Mutant("noise cut at two sigma", CORE, late.noise_cut_at_two_sigma, own, RECORD, "draws"),
    Mutant("Laplace noise above zero", RANDOMIZERS, late.laplace_noise_above_zero, recipe, LISTS, "local"),
    Mutant("larger batches than planned", CORE, late.larger_batches_than_planned, sampled, RECORD, "batches"),
    Mutant("fewer flips", RANDOMIZERS, late.fewer_flips, rr_edges, ALL, "local"),
    Mutant("weights by the lists of others", CENTRAL, late.weights_by_the_lists_of_others, small_gap, RECORD),
    Mutant("reports in the order of contacts", CLIENTS, late.reports_in_the_order_of_contacts, buckets, ALL, "clients"),
    Mutant(
        "people without contacts keep their label",
        CLIENTS,
        late.people_without_contacts_keep_their_label,
        hidden_lengths,
        LISTS,
        "clients",
    ),
    Mutant("own slot among the contacts", CENTRAL, roster.own_slot_among_the_contacts, open_lists, RECORD, "decisions"),
    Mutant(
        "lists divided by the degrees of others",
        CENTRAL,
        roster.lists_divided_by_the_degrees_of_others,
        open_lists,
        RECORD,
    ),
    Mutant(
        "validation labels outside the ledger", CENTRAL, roster.validation_labels_outside_the_ledger, pulling, RECORD
    ),
    Mutant(
        "leave-one-out term forgotten",
        CENTRAL,
        roster.leave_one_out_term_forgotten,
        pulling,
        RECORD,
        "leave one out",
        "no privacy bug: every term stays in its interval, only the weights that follow are too hopeful",
    ),
    Mutant("query rows read by labelled nodes", CENTRAL, roster.query_rows_read_by_labelled_nodes, open_lists, RECORD),
    Mutant(
        "residuals read codes at full length",
        CENTRAL,
        roster.residuals_read_codes_at_full_length,
        pulling,
        RECORD,
        "one edge",
        "audits change records; what the certificate says of one edge is a matter of the suite",
    ),
    Mutant(
        "floor forgotten",
        CENTRAL,
        roster.floor_forgotten,
        pulling,
        RECORD,
        "one edge",
        "audits change records; what the certificate says of one edge is a matter of the suite",
    ),
    Mutant(
        "temperature inside rows",
        CENTRAL,
        roster.temperature_inside_rows,
        pulling,
        RECORD,
        "one edge",
        "audits change records; what the certificate says of one edge is a matter of the suite",
    ),
    Mutant("a repeated part counts twice", CORE, blocks.a_repeated_part_counts_twice, own, RECORD),
    Mutant("blocks share noise", CORE, blocks.blocks_share_noise, ballot, RECORD, "draws"),
    Mutant("prediction reads who lists a node", SAVING, roster.prediction_reads_who_lists_a_node, pulling, RECORD),
)
NAMED = {mutant.name: mutant for mutant in MUTANTS}
