import pytest

from tacit.data import sources


def test_list_names_homes_and_terms(tacit):
    answer = tacit("data", "list", "--json").json
    assert [s["name"] for s in answer["sets"]] == list(sources.names())
    assert all(s["home"] and s["terms"] for s in answer["sets"])
    assert "movielens-1m" in tacit("data", "list").out


def test_describe_counts(tacit):
    answer = tacit("data", "describe", "synthetic", "--json").json
    log = sources.load("synthetic").interactions
    assert (answer["users"], answer["items"]) == (log.n_users, log.n_items)
    assert answer["interactions"] == len(log)
    assert "users" in tacit("data", "describe", "synthetic").out


def test_a_missing_archive_names_its_home_and_what_to_do(tacit, monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    answer = tacit("data", "describe", "movielens-10m")
    assert answer.code == 2
    for part in ("https://grouplens.org", "--download", "--from", "TACIT_DATA"):
        assert part in answer.err


def test_an_unknown_name_suggests_the_nearest(tacit):
    answer = tacit("data", "describe", "movielens1m")
    assert answer.code == 2
    assert "did you mean 'movielens-1m'" in answer.err


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "users", "items", "interactions"),
    [("movielens-1m", 6040, 3706, 1_000_209), ("movielens-100k", 943, 1682, 100_000)],
)
def test_real_counts(tacit, real_data, monkeypatch, name, users, items, interactions):
    monkeypatch.setenv("TACIT_DATA", str(real_data))
    found = tacit("data", "describe", name, "--json").json
    counts = (found["users"], found["items"], found["interactions"])
    assert counts == (users, items, interactions)
