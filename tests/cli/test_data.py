import pytest

from tacit.data import sources


def test_list_names_homes_and_terms(tacit):
    answer = tacit("data", "list", "--json").json
    assert [s["name"] for s in answer["sets"]] == list(sources.names())
    assert all(s["home"] and s["terms"] for s in answer["sets"])
    assert "movielens-1m" in tacit("data", "list").out


def test_list_shows_whole_addresses_at_80_columns(tacit, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.strip() for line in tacit("data", "list").out.splitlines()]
    for name in sources.names():
        assert sources.source(name).home in lines
    assert max(map(len, lines)) <= 80


def test_describe_counts(tacit):
    answer = tacit("data", "describe", "synthetic", "--json").json
    log = sources.load("synthetic").interactions
    assert (answer["users"], answer["items"]) == (log.n_users, log.n_items)
    assert answer["interactions"] == len(log)
    assert "users" in tacit("data", "describe", "synthetic").out


def test_describe_counts_impressions_where_there_are_some(tacit):
    answer = tacit("data", "describe", "synthetic-news", "--json").json
    impressions = sources.load("synthetic-news").impressions
    assert answer["impressions"] == len(impressions)
    n_shown = len(impressions.slates.shown.values) / len(impressions)
    assert answer["shown_an_impression_mean"] == pytest.approx(n_shown)
    assert 1 <= answer["clicked_an_impression_mean"] < 2
    assert answer["impressions_from"].startswith("2023-01-30T")
    assert answer["impressions_to"].startswith("2023-02-05T")
    assert "impression_parts" not in answer
    shown = tacit("data", "describe", "synthetic-news").out
    assert f"impressions {len(impressions):,}" in " ".join(shown.split())
    without = tacit("data", "describe", "synthetic", "--json").json
    assert "impressions" not in without


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
    ("name", "users", "items", "interactions", "distinct"),
    [
        ("movielens-1m", 6040, 3706, 1_000_209, 1_000_209),
        ("movielens-100k", 943, 1682, 100_000, 100_000),
        ("frappe", 957, 4082, 96_203, 18_842),
        ("citeulike-a", 5551, 16_980, 204_986, 204_986),
        ("steam-200k", 12_393, 5155, 129_511, 128_804),
        ("lastfm", 1892, 17_632, 92_834, 92_834),
        ("filmtrust", 1508, 2071, 35_497, 35_494),
    ],
)
def test_real_counts(
    tacit, real_data, monkeypatch, name, users, items, interactions, distinct
):
    monkeypatch.setenv("TACIT_DATA", str(real_data))
    found = tacit("data", "describe", name, "--json").json
    keys = ("users", "items", "interactions", "distinct_pairs")
    assert [found[key] for key in keys] == [users, items, interactions, distinct]
