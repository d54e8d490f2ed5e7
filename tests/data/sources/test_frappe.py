from __future__ import annotations

import math

import numpy as np
import pytest
from data.sources.releases import FRAPPE, edited, parsed, write

from tacit.data.sources import load
from tacit.errors import BadData

LOG, APPS = "frappe/frappe.csv", "frappe/meta.csv"


@pytest.mark.parametrize("packed", [True, False])
def test_a_line_is_an_event_in_a_situation(packed, tmp_path):
    write("frappe", tmp_path, FRAPPE, packed=packed)
    found = load("frappe", where=tmp_path, cache=tmp_path / "cache")
    log = found.interactions
    assert list(found.profiles.ids) == ["0", "4"]
    assert list(found.catalog.ids) == ["0", "1"]  # nobody used app 2
    assert log.offsets.tolist() == [0, 2, 3]
    assert log.items.tolist() == [0, 0, 1]
    assert log.values.tolist() == [1, 7, 428]
    assert log.times is None
    assert {name: [c[row] for row in range(3)] for name, c in log.contexts.items()} == {
        "daytime": ["morning", "noon", "night"],
        "weekday": ["sunday", "friday", "monday"],
        "isweekend": ["weekend", "workday", "workday"],
        "homework": ["", "work", "home"],  # unknown, as everywhere
        "cost": ["free", "free", "paid"],
        "weather": ["sunny", "cloudy", ""],
        "country": ["Curaçao", "", "Spain"],
        "city": ["0", "369", "147"],
    }


def test_apps_and_what_is_not_known_of_them(tmp_path):
    catalog = parsed("frappe", tmp_path).catalog
    assert list(catalog.titles) == ["A tool", "1"]
    known = {name: feature[0] for name, feature in catalog.features.items()}
    assert known == {
        "category": "Tools",
        "developer": "Any",
        "downloads": "10,000+",
        "language": "en",
        "price": pytest.approx(2.99),
        "rating": 4.5,
        "summary": "Short.",
        "description": 'Say "hé"',
    }
    missing = {name: feature[1] for name, feature in catalog.features.items()}
    assert math.isnan(missing.pop("price"))
    assert math.isnan(missing.pop("rating"))
    assert set(missing.values()) == {""}


@pytest.mark.parametrize(
    ("text", "dollars"),
    [
        *(("Free", 0.0), ("$3", 3.0), ("$2.5", 2.5), ("$19.99", 19.99)),
        *(
            ("€\xa01,59", math.nan),
            ("1,59\xa0€", math.nan),
            ("60,00\xa0руб.", math.nan),
        ),
    ],
)
def test_prices_are_in_dollars_or_unknown(text, dollars, tmp_path):
    files = edited("frappe", APPS, b"$2.99", text.encode())
    price = parsed("frappe", tmp_path, files).catalog.features["price"]
    assert price[0] == pytest.approx(dollars, nan_ok=True)


@pytest.mark.parametrize(
    ("member", "old", "new", "line", "problem"),
    [
        (LOG, b"4\t1\t", b"x\t1\t", 3, "user='x' must be a whole number"),
        (LOG, b"4\t1\t", b"4\t9\t", 3, "app 9 is not in the table of apps"),
        (LOG, b"428", b"-428", 3, "cnt='-428' must be a whole number"),
        (LOG, b"428", b"nan", 3, "cnt='nan'"),
        (LOG, b"\t147", b"", 3, r"10 fields separated by '\t', expected 11"),
        (LOG, b"user\titem", b"item\tuser", 1, "header 'item', 'user'"),
        (LOG, "ç".encode(), b"\xe7", 2, "is not utf-8"),
        (APPS, b"\n2\t", b"\n0\t", 4, "item 0 occurs twice"),
        (APPS, b"$2.99", b"$nan", 2, "price='$nan' must be Free, unknown,"),
        (APPS, b"$2.99", b"2.99", 2, "price='2.99'"),
        (APPS, b"4.5", b"5.5", 2, "rating='5.5' must be a number >= 0 and <= 5"),
        (APPS, b"4.5", b"", 2, "rating=''"),
        (APPS, b'""h', b'"h', 2, "check its quotation marks"),
        (APPS, b"short desc", b"short", 1, "must be 'item'"),
    ],
)
def test_odd_input_is_named(member, old, new, line, problem, tmp_path):
    with pytest.raises(BadData) as caught:
        parsed("frappe", tmp_path, edited("frappe", member, old, new))
    assert problem in str(caught.value)
    assert member in caught.value.file
    assert caught.value.line == line


def test_a_header_alone_is_refused(tmp_path):
    header = FRAPPE[LOG].split(b"\n")[0]
    with pytest.raises(BadData, match="no lines after the header"):
        parsed("frappe", tmp_path, FRAPPE | {LOG: header})


@pytest.mark.data
def test_the_real_one(real):
    found = real("frappe")
    log = found.interactions
    assert (log.n_users, log.n_items, len(log)) == (957, 4082, 96_203)
    assert len(log.distinct()) == 18_842
    levels = {  # as the factorization-machine papers count them: with `unknown`
        name: len(column.labels) + (column.codes < 0).any()
        for name, column in log.contexts.items()
    }
    assert list(levels.values()) == [7, 7, 2, 3, 2, 9, 80, 233]
    assert log.n_users + log.n_items + sum(levels.values()) == 5382
    nameless = np.isnan(found.catalog.features["rating"].values)
    assert nameless.sum() == 550
    assert np.isnan(found.catalog.features["price"].values).sum() == 556
