"""What an attack yields, as data that says which guarantee was attacked."""

import json

import pytest

from tacit.attacks.leaks.finding import Attempt, Finding, Score, stated
from tacit.mechanisms.gaussian import gaussian_event
from tacit.plans import Plan
from tacit.privacy.guarantees import summed, unprotected
from tacit.release import Standing, Unit, View

PLAN = Plan(100, rounds=1, channel="secure_sum", delta=1e-6)
CELLS = {
    True: summed(PLAN, gaussian_event(2.0), reason="Gaussian mechanism"),
    False: unprotected("bare_reports", "sent as they are"),
}


def attempt(is_protected: bool) -> Attempt:
    line = stated(
        PLAN, CELLS[is_protected], what="sums", seen_by="server", view=View.RELEASE
    )
    return Attempt("a mechanism", line, {"found": Score(0.5, None, 0.1)})


@pytest.mark.parametrize("is_protected", [True, False])
def test_an_attempt_knows_whether_its_mechanism_is_on(is_protected):
    one = attempt(is_protected)
    assert one.is_protected is is_protected
    assert (one.statement.unit, one.statement.view) == (Unit.USER, View.RELEASE)
    assert (one.statement.standing is Standing.PROVEN) is is_protected


def test_a_finding_is_plain_data_and_says_that_it_is_simulation():
    found = Finding("gradients", "who?", "invented", 3, 4, 0, (attempt(False),))
    said = json.loads(json.dumps(found.to_json(), default=str))
    assert said["simulation"] is True
    assert said["attempts"][0]["is_protected"] is False
    assert said["attempts"][0]["scores"]["found"]["chance"] == 0.1
