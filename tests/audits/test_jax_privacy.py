"""The estimator beside that of jax-privacy, where it is installed (it brings jax).

Version 2.0.0 takes the size of mu where its sign would say that nothing was shown, so
for small mu it is no lower bound (google-deepmind/jax_privacy, pull request 270): 10.2
for scores that do not differ at all. Where mu is large the two must agree.
"""

from __future__ import annotations

import pytest

from tacit.audits.lower_bounds import epsilon_of, mu_lower_bound
from tacit.keys import Key

DELTA, ALARM = 1e-5, 1e-3


@pytest.mark.parametrize("mu", [2.0, 3.0])
def test_the_estimators_agree(mu):
    """For the same scores, thresholds and alarm."""
    auditing = pytest.importorskip("jax_privacy.auditing", reason="no jax-privacy")
    draws = Key.from_seed(1).generator().standard_normal((2, 1000))
    present, absent = draws[0] + mu, draws[1]
    theirs = auditing.CanaryScoreAuditor(present, absent)
    expected = theirs.epsilon_from_gdp(significance=ALARM, delta=DELTA)
    same = mu_lower_bound(present, absent, theirs._thresholds, alarm=ALARM)
    assert epsilon_of(same, delta=DELTA) == pytest.approx(expected, abs=1e-4)
