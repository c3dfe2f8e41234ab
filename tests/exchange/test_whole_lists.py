"""What a whole contact list costs when one contact is exchanged: exact ratios over everything that can be reported.

The law of a report is not taken from ``log_density`` but from the code that draws: its coins are played through, all of them,
each with its probability. So order, ties and the file that is written are in the law, too.
"""

import math
from collections import Counter
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pyarrow.csv
import pytest

from graphveil.errors import InputError
from graphveil.exchange.broadcast import Broadcast
from graphveil.exchange.privatizer import Privatizer
from graphveil.exchange.randomizers import BucketResponse, Contacts, EdgeListResponse, LabelHistogram, NeighbourMean
from graphveil.exchange.records import Records
from graphveil.exchange.round import Round
from graphveil.graph.formats.tables import TableFile
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Noise

MEMBERS = 2  # buckets have this many members at most, so uniform numbers need as many values


class Played(Noise):
    """Coins that play one game after another until all outcomes have come, each with its probability."""

    def __init__(self):
        super().__init__(0)
        self.script, self.place, self.chance = [], 0, 1.0

    def __iter__(self):
        """Once per outcome of all coins; ``chance`` is its probability once the game has been played."""
        while True:
            self.place, self.chance = 0, 1.0
            yield self
            while self.script and self.script[-1][0] + 1 == self.script[-1][1]:
                self.script.pop()
            if not self.script:
                return
            self.script[-1][0] += 1

    def _next(self, chances):
        if self.place == len(self.script):
            self.script.append([0, len(chances)])
        outcome = self.script[self.place][0]
        self.place += 1
        self.chance *= chances[outcome]
        return outcome

    def coins(self, rate, size):
        return np.array([self._next([1 - rate, rate]) == 1 for _ in range(size)])

    def integers(self, below, size):
        return np.array([self._next([1 / below] * below) for _ in range(size)], dtype=np.int64)

    def uniform(self, size):
        return np.array([(self._next([1 / MEMBERS] * MEMBERS) + 0.5) / MEMBERS for _ in range(size)])

    def positions(self, rate, below):
        return np.flatnonzero(self.coins(rate, below))


def law(report):
    """The probability of everything that ``report(noise)`` can give."""
    found, noise = Counter(), Played()
    for played in noise:
        shown = report(played)
        found[shown] += noise.chance
    assert math.fsum(found.values()) == pytest.approx(1.0, abs=1e-9)
    return found


def worst(laws, pairs):
    """The largest log-ratio of these pairs of laws."""
    return max(abs(math.log(laws[a][r] / laws[b][r])) for a, b in pairs for r in laws[a] | laws[b])


def exchanged(lists):
    """Pairs of lists that differ in one contact."""
    return [(a, b) for a, b in combinations(lists, 2) if len({*a} - {*b}) == 1 and len(a) == len(b)]


@pytest.mark.parametrize("buckets", [[0, 1, 2, 3], [0, 0, 1, 1]], ids=["single members", "pairs"])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_ordered_bucket_reports_would_cost_d_epsilon_and_sorted_ones_cost_epsilon(buckets, length):
    """Contacts are sorted by id: reports in that order would cost ``length`` times epsilon."""
    randomizer = BucketResponse(1.0, max(buckets) + 1, owned=False)
    lists = list(combinations(range(4), length))
    draw = lambda one: lambda noise: tuple(randomizer.randomize(Contacts.of([one]), buckets, noise)[0].tolist())
    laws = {one: law(draw(one)) for one in lists}
    assert worst(laws, exchanged(lists)) <= randomizer.epsilon + 1e-9
    assert worst(laws, exchanged(lists)) >= 0.99 * randomizer.epsilon / (1 if length == 1 else 3)
    for one in lists:
        for shown, chance in laws[one].items():
            assert randomizer.log_density(np.array(one), np.array(shown), buckets) == pytest.approx(math.log(chance))


@pytest.mark.parametrize("length", [3, 6])
def test_bucket_reports_of_whole_lists_cost_epsilon_by_the_stated_density_too(length):
    """Every multiset of seven slots in three unequal buckets; the masses add up to one."""
    buckets = np.array([0, 0, 0, 0, 1, 1, 2])
    randomizer = BucketResponse(1.0, 3, owned=False)
    reports = list(combinations_with_replacement(range(7), length))
    lists = list(combinations(range(7), length))[:12]
    laws = {a: np.array([randomizer.log_density(a, r, buckets) for r in reports]) for a in lists}
    assert all(np.exp(masses).sum() == pytest.approx(1.0, abs=1e-9) for masses in laws.values())
    assert max(np.abs(laws[a] - laws[b]).max() for a, b in exchanged(lists)) <= randomizer.epsilon + 1e-9
    if length == 3:
        assert randomizer.log_density((0, 1, 2), (2, 1, 0), buckets) == -math.inf  # reports are sorted
    drawn = randomizer.randomize(Contacts.of([lists[0]] * 40_000), buckets, Noise(1))
    seen = Counter(tuple(drawn[number].tolist()) for number in range(len(drawn)))
    masses = np.exp(laws[lists[0]])
    counts = np.array([seen[report] for report in reports])
    assert counts.sum() == 40_000
    often = masses * 40_000 > 50
    assert np.all(np.abs(counts - 40_000 * masses)[often] < 7 * np.sqrt(40_000 * masses[often]))


def test_a_whole_list_of_bits_costs_epsilon_per_bit():
    randomizer, lists = EdgeListResponse(1.0, 4), list(combinations(range(4), 2))
    laws = {one: law(lambda noise: tuple(randomizer.randomize(Contacts.of([one]), None, noise)[0])) for one in lists}  # noqa: B023
    assert worst(laws, exchanged(lists)) == pytest.approx(2 * randomizer.epsilon)
    for one, shown in product(lists, laws[lists[0]]):
        assert laws[one][shown] == pytest.approx(math.exp(randomizer.log_density(one, shown)))


@pytest.mark.parametrize("length", [1, 3])
def test_a_whole_histogram_costs_epsilon(length):
    """Counts have no order; every sign pattern of a report that is far away, and reports between the counts."""
    randomizer, bins = LabelHistogram(1.0, 3), np.array([0, 0, 1, 1, 2, 2])
    lists = list(combinations(range(6), length))
    reports = [np.array(r) for r in product((-40.0, 0.0, 0.5, 1.0, 40.0), repeat=3)]
    ratios = [abs(randomizer.log_ratio(a, b, r, bins)) for a, b in exchanged(lists) for r in reports]
    assert 0.99 * randomizer.epsilon <= max(ratios) <= randomizer.epsilon + 1e-9
    clean = [randomizer.counts(Contacts.of([order]), bins).tolist() for order in (lists[-1], lists[-1][::-1])]
    assert clean[0] == clean[1]


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_a_whole_histogram_costs_epsilon_for_an_entry_that_comes_or_goes(epsilon):
    """All 32 lists of five slots and one entry more or less; exchanging one costs twice that, an edge in both lists, too."""
    randomizer, bins = LabelHistogram(epsilon, 3, "hidden", "zero-out"), np.array([0, 0, 1, 1, 2])
    far = 40 * randomizer.scale
    reports = [np.array(r) for r in product((-far, 0.0, 0.5, 1.0, far), repeat=3)]
    lists = [one for length in range(6) for one in combinations(range(5), length)]
    laws = {a: np.array([randomizer.log_density(np.array(a, int), r, bins) for r in reports]) for a in lists}
    grown = [(a, b) for a, b in combinations(lists, 2) if len({*a} ^ {*b}) == 1]
    assert len(grown) == 80
    worst_of = lambda pairs: max(np.abs(laws[a] - laws[b]).max() for a, b in pairs)
    assert 0.99 * epsilon <= worst_of(grown) <= randomizer.epsilon + 1e-9 <= epsilon + 2e-9
    assert 1.98 * epsilon <= worst_of(exchanged(lists)) <= 2 * randomizer.epsilon + 1e-9
    both_ends = worst_of([((1,), (1, 4))]) + worst_of([((2,), (0, 2))])
    assert 1.98 * epsilon <= both_ends <= randomizer.edge_units * randomizer.epsilon + 1e-9


def test_an_entry_that_comes_or_goes_needs_a_hidden_length():
    with pytest.raises(InputError, match="public length"):
        LabelHistogram(1.0, 3, "public", "zero-out")


def test_a_whole_mean_moves_by_its_sensitivity_in_any_order():
    randomizer, rows = NeighbourMean(1.0, 2, 1e-3), np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0.6, 0.8]])
    lists = list(combinations(range(5), 3))
    means = {one: randomizer.means(Contacts.of([one]), rows)[0] for one in lists}
    gaps = [np.linalg.norm(means[a] - means[b]) for a, b in exchanged(lists)]
    assert max(gaps) == pytest.approx(2 / 3) and max(gaps) / randomizer.sigma(3) <= randomizer.mu * (1 + 1e-9)
    for one in lists:
        assert np.allclose(randomizer.means(Contacts.of([one[::-1]]), rows)[0], means[one], rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", ["bucket", "list"])
def test_the_contacts_column_of_a_reports_file_costs_what_the_list_costs(tmp_path, kind):
    """The text in the column ``contacts``, as ``privatize`` writes it, for one record whose list has one contact exchanged."""
    names = ["d", "c", "b", "a"]  # the order of the slots is not that of the names
    randomizer = BucketResponse(1.0, 4, owned=False) if kind == "bucket" else EdgeListResponse(0.5, 4)
    heard = Broadcast.of(names, np.arange(4), Round("edges", Part.EDGES, randomizer))
    out = tmp_path / "reports.csv"
    laws = {}
    for friends in ("d c", "c b"):  # exchanging d for b moves c from the second place to the first
        source = tmp_path / "records.csv"
        source.write_text(f"id,friends\na,{friends}\n")
        table = Records(TableFile(source), contacts="friends")
        job = Privatizer(table, Local("withheld", "withheld", 1.0), (heard.round,), heard)

        def written(noise, job=job):
            for old in tmp_path.rglob("*"):
                if old.is_file() and old != source:  # noqa: B023
                    old.unlink()
            job.run(out, noise)
            return pyarrow.csv.read_csv(out)["contacts"].to_pylist()[0]

        laws[friends] = law(written)
    assert worst(laws, [tuple(laws)]) <= 1.0 + 1e-9
    assert len(laws["d c"]) == (10 if kind == "bucket" else 16)  # multisets of two of four, sets of four
