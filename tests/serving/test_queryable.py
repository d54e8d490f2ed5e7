"""Tests of the vectors of items and users; every method's are in its contract."""

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.errors import Refused
from tacit.method import Candidates
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.serving.queryable import space_of, vectors_of
from tacit.serving.recommender import Recommender
from tacit.transport.messages import Broadcast

from .test_population import CATALOG, TWO_KINDS


def test_vectors_give_the_scores_of_the_method():
    shard = Shards.of_history([3, 200], n_items=300)
    found = space_of(TWO_KINDS).scores(vectors_of(TWO_KINDS, shard))
    expected = TWO_KINDS.recommend(["i3", "i200"], 5)
    assert [line.score for line in expected] == pytest.approx(
        np.sort(np.delete(found[0], [3, 200]))[::-1][:5].tolist()
    )


def test_some_items_only():
    some = Candidates(np.array([7, 3]), CATALOG)
    whole = space_of(TWO_KINDS).vectors
    np.testing.assert_array_equal(space_of(TWO_KINDS, some).vectors, whole[[7, 3]])


def test_a_method_without_vectors_is_refused():
    weights = {"share": np.zeros(2)}
    catalog = Catalog.of_ids(["a", "b"])
    popular = Recommender(
        FederatedPopularity(), Broadcast(1, bytes(16), weights), catalog
    )
    with pytest.raises(Refused, match="on_device"):
        space_of(popular)
