"""DP-VAE's bound on the real MovieLens 100K."""

from __future__ import annotations

import pytest

from tacit.data.contribution_bounds import ContributionBounds

pytestmark = pytest.mark.data


def test_with_all_items_as_dimension_a_quarter_of_ml_100k_would_go(real):
    """Table 2 prints that everybody stays; with its own bound [3, 1772] they would."""
    dataset, bounds = real("movielens-100k"), ContributionBounds(items=False)
    log = dataset.interactions
    assert (log.n_users, log.n_items) == (943, 1682)
    fewest = bounds.bound(0.001, n_items=log.n_items)
    assert (log.per_user < fewest).mean() == pytest.approx(0.26, abs=0.005)
    assert len(bounds.of(dataset).profiles) == (log.per_user >= fewest).sum()
    assert 20 == log.per_user.min() > 3
    assert log.per_user.max() == 737 < 1772
