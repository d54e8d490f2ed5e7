"""Films that a dozen people have seen, so small that every contender is quick."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Categories, Category, Numeric
from tacit.data.interactions import Interactions
from tacit.data.splits import adapt_half
from tacit.data.strings import Strings
from tacit.keys import Key
from tacit.reproduction.privrec import settings
from tacit.reproduction.privrec.benches import Bench

N_PEOPLE, N_ITEMS = 40, 20
SIZES = {"age_group": 7, "gender": 2, "occupation": 21}


def films() -> Dataset:
    draws = np.random.default_rng(0)
    who, what = np.nonzero(draws.random((N_PEOPLE, N_ITEMS)) < 0.5)
    log = Interactions.of_columns(
        who,
        what,
        values=draws.integers(1, 6, len(who)),
        n_users=N_PEOPLE,
        n_items=N_ITEMS,
    )
    genres = Categories.of([["comedy", "drama", "war"][: 1 + i % 3] for i in range(20)])
    year = Numeric(np.arange(1980, 2000, dtype=np.float32))
    names = [f"film {i // 2} again" for i in range(20)]
    ids = Strings.of(f"{i}" for i in range(20))
    told = {
        name: Category.of([f"{i % n:02}" for i in range(max(n, N_PEOPLE))])
        for name, n in SIZES.items()
    }
    return Dataset(
        "films",
        log,
        Catalog(ids, Strings.of(names), {"genres": genres, "year": year}),
        Profiles(Strings.of(f"p{i}" for i in range(N_PEOPLE)), told),
    )


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The bench of MovieLens, with other people and next to no rounds."""
    split = adapt_half(
        films(), train_share=0.6, min_target_value=4.0, key=Key.from_seed(1)
    )
    monkeypatch.setattr(Bench, "split", lambda self: split)
    monkeypatch.setattr(Bench, "rounds", 3)
    monkeypatch.setattr(settings, "_COUNTING", 1)
    for name in ("published_rounds", "local_epochs"):
        monkeypatch.setattr(Bench, name, 1)
    return Bench("movielens-1m", "quick", seed=7)
