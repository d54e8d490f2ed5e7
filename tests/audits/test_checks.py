"""What a check and an estimate say, also of what is no number."""

import json
import math

import pytest

from tacit.audits.checks import Audit, Check, Estimate


def check(measured: float) -> Check:
    return Check.at_most("mu", measured, claimed=1.0, slack=0.1, detail="of a toy")


@pytest.mark.parametrize(
    ("measured", "ok"),
    [(0.0, True), (1.1, True), (1.2, False), (math.inf, False), (math.nan, False)],
)
def test_a_measurement_holds_up_to_the_claim_and_its_slack(measured, ok):
    assert check(measured).ok is ok


def test_an_audit_holds_if_every_check_does():
    right, wrong = check(0.5), check(2.0)
    assert Audit("toy", (right,)).ok
    assert not Audit("toy", (right, wrong)).ok
    assert Audit("toy", (right, wrong)).failed == (wrong,)


@pytest.mark.parametrize("measured", [math.nan, math.inf])
def test_documents_hold_no_number_that_json_has_not(measured):
    said = json.dumps(check(measured).to_json(), allow_nan=False)
    assert json.loads(said)["measured"] is None


@pytest.mark.parametrize(
    ("estimated", "above"), [(0.5, False), (1.5, True), (math.nan, True)]
)
def test_an_estimate_above_its_claim_says_that_it_refutes_nothing(estimated, above):
    said = Estimate("canaries", 1.0, estimated, 0.2, 2.5, 400).to_json()
    assert ("no violation" in said["remark"]) is above
    assert "never a guarantee" in said["label"]
    assert (
        "from 400 canaries of one run, with 95 % between 0.20 and 2.50"
        in (said["remark"])
    )
