from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.popularity import Popularity
from tacit.data import sources
from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.synthetic.world import World, checkerboard
from tacit.errors import BadValue
from tacit.evaluation.candidate_sets import FullRanking
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.metrics import parse
from tacit.evaluation.paper_protocols import NamedProtocol, datasets, named, names
from tacit.keys import Key

KEY = Key.from_seed(1)
EVERY = [(name, dataset) for name in names() for dataset in datasets(name)]


def _plain(**filters) -> NamedProtocol:
    return NamedProtocol(
        "", lambda d, *, key: d, (), lambda _: FullRanking(), **filters
    )


@pytest.mark.parametrize(("name", "dataset"), EVERY)
def test_split_candidates_and_metrics_fit_together(name, dataset):
    """On an invented world, with the data filter left out; sizes are the paper's."""
    protocol = named(name, dataset)
    world = World(users=1100, items=150, events_per_user=8).dataset()
    split = protocol.divide(world, key=KEY)
    scorer = Popularity().fit(split.train, key=KEY)
    found = evaluate(
        scorer.score,
        split.test,
        metrics=protocol.metrics,
        protocol=protocol.candidates(KEY),
    )
    assert {*found.metrics()} == {*protocol.metrics}
    assert protocol.candidates(KEY).name == found.protocol


@pytest.mark.parametrize(
    ("name", "dataset", "expected"),
    [
        ("privrec", "frappe", (880, 55, 165)),
        ("fedvae", "movielens-1m", (700, 200, 200)),
        ("fedvae", "citeulike-a", (300, 400, 400)),
        ("fedvae", "steam-200k", (100, 500, 500)),
        ("fedvae", "lastfm", (900, 100, 100)),
        ("fedvae", "filmtrust", (900, 100, 100)),
        ("dpvae", "movielens-100k", (1100, 1100, 1100)),
        ("fmf-ldp", "movielens-20m", (1100, 1100, 1100)),
    ],
)
def test_as_many_users_as_the_paper_says(name, dataset, expected):
    split = named(name, dataset).divide(checkerboard(1100, 40, 4), key=KEY)
    held = (split.validation.users, split.test.users)
    assert (len(split.users), *map(len, held)) == expected


def test_the_papers_metrics():
    assert named("privrec", "frappe").metrics == (
        *("hr_each@5", "hr_each@10", "hr_each@20", "hr_each@30"),
        *("ndcg_each@5", "ndcg_each@10", "ndcg_each@20", "ndcg_each@30"),
    )
    assert named("fedvae", "lastfm").metrics == ("ndcg@100", "recall@100")
    assert named("fedvae", "filmtrust").metrics == ("ndcg@20", "recall@20")
    assert all(parse(m) for name, on in EVERY for m in named(name, on).metrics)


def test_items_are_counted_before_users():
    users = [0, 0, 0, 1, 1, 2, 2, 2]
    items = [0, 1, 1, 0, 1, 0, 2, 3]  # items 2 and 3 have one user each
    log = Interactions.of_columns(users, items, n_users=3, n_items=4)
    board = checkerboard(3, 4, 1)
    dataset = Dataset("counted", log, board.catalog, board.profiles)
    kept = _plain(min_users=2, min_interactions=2).kept(dataset)
    assert (kept.interactions.n_users, kept.interactions.n_items) == (2, 2)
    assert len(kept.interactions) == 5  # the repeat stays
    assert _plain().kept(dataset).interactions.n_items == 4
    high = np.arange(8) < 4
    rated = Interactions.of_columns(users, items, values=high, n_users=3, n_items=4)
    liked = _plain(min_value=1.0).kept(
        Dataset("r", rated, board.catalog, board.profiles)
    )
    assert len(liked.interactions) == 4


@pytest.mark.parametrize(
    ("name", "dataset", "problem"),
    [
        ("privrek", "frappe", "'privrek' is not known; did you mean 'privrec'"),
        (
            "fedvae",
            "frappe",
            "'fedvae' on data set 'frappe' is not known; .*steam-200k",
        ),
    ],
)
def test_unknown_names_are_refused(name, dataset, problem):
    with pytest.raises(BadValue, match=problem):
        named(name, dataset)


def test_fedvae_on_movielens_has_the_papers_sizes(real_data):
    """6,034 users; 3,533 items, of which training users have about 3,520 (Table II).

    Over 20 seeds 400 users held out leave 3,522 ± 6 items; 800 would leave 3,507 ± 9.
    """
    protocol = named("fedvae", "movielens-1m")
    kept = protocol.kept(sources.load("movielens-1m", where=real_data))
    log = kept.interactions
    assert (log.n_users, log.n_items, len(log)) == (6034, 3533, 575272)
    split = protocol.divide(kept, key=KEY)
    assert (len(split.users), len(split.test.users)) == (5634, 200)
    assert abs(len(split.catalog) - 3522) <= 30
