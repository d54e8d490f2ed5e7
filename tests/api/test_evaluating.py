"""The evaluation of a run from Python."""

import pytest

import tacit
from tacit.errors import BadRun, BadValue


def test_the_test_users_have_the_metrics_of_the_run(run):
    found = tacit.evaluate(run)
    assert found.metrics == pytest.approx(run.metrics)
    assert {row["method"] for row in found.rows()} >= {"gram", "popularity"}
    first = next(iter(run.metrics))
    pairs = [d for d in found.differences() if d.metric == first]
    others = {pair.seen_from("gram").against for pair in pairs}
    assert others == {"random", "popularity", "ease"}
    assert all(pair.mean >= 0 for pair in pairs)
    assert found.to_dict()["users"] == "test"
    assert "Methods compared" in str(found)
    assert "against" in found._repr_html_()


def test_validation_users_are_others(run):
    found = tacit.evaluate(run.path, users="validation")
    assert found.metrics != run.metrics


def test_what_is_no_run_is_refused(run, tmp_path):
    with pytest.raises(BadRun, match="holds no run"):
        tacit.evaluate(tmp_path)
    with pytest.raises(BadValue, match="users='tests' is not known"):
        tacit.evaluate(run, users="tests")
