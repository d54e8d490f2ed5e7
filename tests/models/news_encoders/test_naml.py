"""NAML against torch's own convolution, news by news."""

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.errors import BadValue
from tacit.models.news_encoders import Naml, Vocabulary
from tests.models.news_encoders.small import attended, catalog
from tests.models.news_encoders.word_models import WordModelContract


def attended_by_hand(theta, name, rows):
    names = (f"{name}.attention", f"{name}.offset", f"{name}.query")
    return attended(rows, *(theta[own] for own in names))


class TestNaml(WordModelContract):
    def model(self, file=None):
        vocabulary = Vocabulary(file, width=5, is_trained=file is None)
        return Naml(
            vocabulary, title=4, abstract=7, width=4, label_width=3, attention=2
        )

    def news_by_hand(self, theta, words, row):
        import torch
        from torch.nn.functional import conv1d

        views = []
        for name in ("title", "abstract"):
            own = f"news.{name}"
            rows = words[torch.tensor(row[name]).long()]
            filters = theta[f"{own}.filters"].T.reshape(4, 3, 5).transpose(1, 2)
            said = conv1d(rows.T[None], filters, theta[f"{own}.bias"], padding=1)
            views.append(attended_by_hand(theta, own, torch.relu(said[0]).T))
        for name in ("category", "subcategory"):
            own = f"news.{name}"
            label = theta[f"{own}.table"][int(row[name])]
            dense = label @ theta[f"{own}.dense"] + theta[f"{own}.bias"]
            views.append(torch.relu(dense))
        return attended_by_hand(theta, "news", torch.stack(views))

    def user_by_hand(self, theta, read):
        return attended_by_hand(theta, "user", read)


@pytest.mark.parametrize("name", ["abstract", "category", "subcategory"])
def test_a_catalog_without_one_of_the_views_is_refused(name):
    whole = catalog()
    left = {n: column for n, column in whole.features.items() if n != name}
    with pytest.raises(BadValue, match=f"NAML reads the \\w+ '{name}'.*use NRMS"):
        Naml().inputs(Catalog(whole.ids, whole.titles, left))


def test_unknown_labels_and_the_padding_news_share_a_row():
    inputs = Naml().inputs(catalog())
    assert inputs["category"].tolist() == [4, 2, 3, 4, 0, 1, 3, 0, 2, 0]
    assert inputs["title"].dtype == np.int32


@pytest.mark.parametrize("wrong", ["title", "abstract", "width", "label_width"])
def test_sizes_that_cannot_be_are_refused(wrong):
    with pytest.raises(BadValue, match=wrong):
        Naml(**{wrong: 0})
