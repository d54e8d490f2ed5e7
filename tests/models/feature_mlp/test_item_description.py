from dataclasses import replace

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category, Numeric, Text
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.models.feature_mlp.item_description import described, shared_words

TITLES = ("Alien (1979)", "Aliens (1986)", "Alien 3 (1992)", "The Omen (1976)")
CATALOG = Catalog(
    Strings.of("abcd"),
    Strings.of(TITLES),
    {
        "year": Numeric(np.array([1979, 1986, 1979, np.nan], np.float32)),
        "plot": Text(Strings.of("wxyz")),
        "maker": Category.of(["p", "q", "", "p"]),
    },
)


def test_words_that_titles_share():
    """Not years in brackets, and no word of a single title: it would be an id."""
    words = shared_words(CATALOG.titles)
    assert list(words.labels) == ["alien"]
    assert [words[i] for i in range(4)] == [("alien",), (), ("alien",), ()]


def test_all_but_text_where_nothing_is_named():
    assert [*described(CATALOG, (), ())] == ["year", "maker"]


def test_a_number_with_a_label_for_each_value():
    found = described(CATALOG, ("year",), ("year",))["year"]
    assert isinstance(found, Category)
    assert [found[i] for i in range(4)] == ["1979", "1986", "1979", ""]


def test_no_two_values_share_a_label():
    """Six digits are not enough; what is written short stays so."""
    values = [1234567, 1234568, 1234571, 1995, 0.1, np.nextafter(np.float32(0.1), 1), 0]
    column = Numeric(np.array([*values, -0.0], np.float32))
    catalog = replace(CATALOG.take(np.arange(8) % 4), features={"n": column})
    found = described(catalog, ("n",), ("n",))["n"]
    labels = [found[i] for i in range(8)]
    assert labels[:5] == ["1234567", "1234568", "1234571", "1995", "0.1"]
    assert len({*labels}) == 7
    assert labels[-2:] == ["0", "0"]


def test_titles_by_name():
    found = described(CATALOG, ("maker", "title"), ())
    assert isinstance(found["title"], Categories)


@pytest.mark.parametrize(
    ("names", "by_value", "complaint"),
    [
        (("yaer",), (), "did you mean 'year'"),
        (("maker",), ("year",), "by_value"),
        (("maker",), ("maker",), "has labels already"),
    ],
)
def test_what_is_not_there(names, by_value, complaint):
    with pytest.raises(BadValue, match=complaint):
        described(CATALOG, names, by_value)
