"""A process that spends from a budget book; tests kill it or run two of them at once.

``spend BOOK OUT MU`` reserves, "releases" (one durable line in OUT) and settles for ever; ``once BOOK MU`` reserves once.
"""

import os
import sys

from graphveil.errors import PrivacyError
from graphveil.privacy.budget import BudgetBook
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import NodeLevel


def plan(mu: float, promise=None) -> Plan:
    release = Release.gaussian("table", mu, {"train": 1.0}, 4, "one unit row")
    return Plan(promise or NodeLevel(1.0, 1e-5, adjacency="record"), PublicFacts(100, 3, 2), (release,))


def main(what: str, path: str, *rest: str) -> None:
    with BudgetBook(path) as book:
        if what == "once":
            sys.stdin.readline()  # both are ready
            try:
                book.reserve(plan(float(rest[0])), method="x")
                print("admitted")
            except PrivacyError as error:
                print(error)
            return
        out, mu = rest
        with open(out, "a", encoding="utf-8") as file:
            while True:
                one = plan(float(mu))
                reservation = book.reserve(one, method="x")
                file.write("release\n")
                file.flush()
                os.fsync(file.fileno())
                reservation.settle(one.steps, certificate="c")


if __name__ == "__main__":
    main(*sys.argv[1:])
