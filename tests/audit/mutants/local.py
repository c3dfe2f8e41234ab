"""Bugs of the local model: randomizers, clients, and the side that collects."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from graphveil.exchange.client import Client
from graphveil.exchange.collector import Collector
from graphveil.exchange.randomizers import BucketResponse, Contacts, EdgeListResponse, LaplaceRows
from graphveil.exchange.report import Report
from graphveil.exchange.server import Server
from graphveil.privacy.local import Part
from graphveil.privacy.noise import grid
from tests.audit.mutants.planting import planted


@planted(EdgeListResponse, "randomize")
def noisy_lists_keep_every_contact(original):
    def randomize(self, records, broadcast, rng):
        noisy = original(self, records, broadcast, rng)
        if not isinstance(records, Contacts):
            return np.union1d(noisy, records)
        return Contacts.of([np.union1d(noisy[number], records[number]) for number in range(len(records))])

    return randomize


@planted(LaplaceRows, "randomize")
def half_of_the_laplace_noise(original):
    def randomize(self, records, broadcast, rng):
        halved = (original(self, records, broadcast, rng) + self.clean(records, broadcast)[0]) / 2
        return np.rint(halved / grid(self.scale)) * grid(self.scale)

    return randomize


@planted(BucketResponse, "randomize")
def true_contact_within_its_bucket(original):
    """If the bucket is kept, the contact itself is sent."""

    def randomize(self, records, broadcast, rng):
        reports, bucket = original(self, records, broadcast, rng), np.asarray(broadcast)
        if isinstance(records, Contacts):
            kept = bucket[records.targets] == bucket[reports.targets]
            return Contacts(records.starts, np.where(kept, records.targets, reports.targets))
        return np.where(bucket[records] == bucket[reports], records, reports)

    return randomize


def with_records(client, part, records):
    """The same client with other records of one part."""
    held = {**client._records, part: records}
    return Client(client.ids, held, client.rounds.values(), client._noise, client.holder)


@planted(Client, "_randomize")
def class_0_is_no_label(original):
    def randomize(self, round, broadcast):
        if round.part is not Part.LABELS:
            return original(self, round, broadcast)
        labels = self._records[Part.LABELS]
        return original(with_records(self, Part.LABELS, np.where(labels == 0, -1, labels)), round, broadcast)

    return randomize


@planted(Client, "_randomize")
def features_centred_by_the_true_mean(original):
    def randomize(self, round, broadcast):
        if round.part is not Part.FEATURES:
            return original(self, round, broadcast)
        rows = self._records[Part.FEATURES]
        return original(with_records(self, Part.FEATURES, rows - rows.mean(axis=0)), round, broadcast)

    return randomize


@planted(Client, "_randomize")
def truer_of_two_draws(original):
    """Drawn twice; the true label is sent if either draw has it."""

    def randomize(self, round, broadcast):
        first, second = (original(self, round, broadcast) for _ in range(2))
        if round.part is not Part.LABELS:
            return first
        true = self._records[Part.LABELS][np.isin(self.ids, first.ids)]
        return Report(first.round, first.ids, np.where(first.values == true, first.values, second.values), first.holder)

    return randomize


@planted(Client, "_randomize")
def label_rides_on_the_list(original):
    """A report on contacts carries one's label in its last digits."""

    def randomize(self, round, broadcast):
        report = original(self, round, broadcast)
        if round.part is not Part.EDGES or Part.LABELS not in self._records:
            return report
        values = report.values + 2.0**-20 * self._records[Part.LABELS][:, None]
        return Report(report.round, report.ids, values, report.holder)

    return randomize


@planted(Server, "_clear")
def server_reads_what_is_not_raw(original):
    return lambda self, part: self.answers.in_the_clear(part)


@planted(Collector, "accept")
def second_reports_are_taken(original):
    """Another report of the same vertex replaces the first: its owner pays twice."""

    def accept(self, report):
        self._which[report.round][report.ids] = -1
        original(self, report)

    return accept


@contextmanager
def bits_at_the_whole_budget() -> Iterator[None]:
    """Every sampled attribute of the multi-bit mechanism gets the whole epsilon."""
    from graphveil.exchange.randomizers import MultiBit

    with patch.object(MultiBit, "q", property(lambda self: 1 / (math.exp(self.budget) + 1))):
        yield


@contextmanager
def labels_kept_too_often() -> Iterator[None]:
    """The sampler keeps labels more often than its stated probabilities say."""
    from graphveil.exchange.randomizers import LabelResponse

    original = LabelResponse.randomize

    def randomize(self, records, broadcast, rng):  # type: ignore[no-untyped-def]
        drawn = np.asarray(original(self, records, broadcast, rng))
        return np.where(rng.coins(0.3, drawn.size).reshape(drawn.shape), records, drawn)

    with patch.object(LabelResponse, "randomize", randomize):
        yield


@contextmanager
def counts_with_half_the_noise() -> Iterator[None]:
    """Swapping a contact moves two counts; the Laplace noise is for one."""
    from graphveil.exchange.randomizers import LabelHistogram

    with patch.object(LabelHistogram, "scale", property(lambda self: 1 / self.budget)):
        yield


@contextmanager
def second_answer_with_fresh_noise() -> Iterator[None]:
    """A client forgets what it has sent."""
    from graphveil.exchange.client import Client

    original = Client.report

    def report(self, name, broadcast=None):  # type: ignore[no-untyped-def]
        self._sent.pop(name, None)
        return original(self, name, broadcast)

    with patch.object(Client, "report", report):
        yield


def inside(server):  # type: ignore[no-untyped-def]
    """The clients behind the answers of a server, which only a planted bug reaches for."""
    answers = server.answers
    while not hasattr(answers, "clients"):
        answers = answers.answers
    return answers


@contextmanager
def second_broadcast_of_clean_labels() -> Iterator[None]:
    """The server sends round what the clients hold instead of what it has inferred from reports."""
    from graphveil.methods.local import algorithm

    original = algorithm.from_histograms

    def from_histograms(session, *rest):  # type: ignore[no-untyped-def]
        ask = session.ask

        def asked(name, broadcast=None):  # type: ignore[no-untyped-def]
            clean = np.concatenate([client._records[Part.LABELS] for client in inside(session).clients])
            return ask(name, np.maximum(clean, 0) if name == "histogram-2" else broadcast)

        session.ask = asked
        return original(session, *rest)

    with patch.object(algorithm, "from_histograms", from_histograms):
        yield


@contextmanager
def true_degrees_where_they_are_hidden() -> Iterator[None]:
    """The certificate says that lengths of lists are hidden, and the server takes them from the lists."""
    from graphveil.methods.local import algorithm

    def list_lengths(session, rounds, public):  # type: ignore[no-untyped-def]
        lists = [client._records[Part.EDGES].degrees for client in inside(session).clients]
        return np.concatenate(lists).astype(np.float64)

    with patch.object(algorithm, "list_lengths", list_lengths):
        yield
