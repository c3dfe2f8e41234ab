"""The accounting agrees with integration, with dp_accounting and with exact enumeration; wrong accounting disagrees."""

import json

from graphveil.audit.accountants import CrossCheck, cross_checks


def test_every_cross_check_agrees():
    found = list(cross_checks())
    assert len(found) >= 12
    assert [check.name for check in found if not check.agrees] == []
    json.dumps([check.to_json() for check in found], allow_nan=False)


def test_too_little_and_far_too_much_both_disagree():
    assert not CrossCheck("x", 0.99, 1.0).agrees and not CrossCheck("x", 1.2, 1.0).agrees
    assert CrossCheck("x", 1.001, 1.0).agrees
