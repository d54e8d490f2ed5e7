"""Headlines whose nouns tell topic and subtopic."""

import pytest

from tacit.data.synthetic import news_words
from tacit.data.synthetic.titles import TOPICS


@pytest.mark.parametrize("topics", [1, 3, len(TOPICS)])
def test_a_topic_has_three_subtopics_named_after_it(topics):
    above, below = news_words.categories(topics), news_words.subcategories(topics)
    assert len(below) == news_words.SUBTOPICS * len(above) == 3 * topics
    assert len({*below}) == len(below)
    assert [name.split("-")[0] for name in below[::3]] == above


def test_nouns_stand_in_the_order_of_their_subtopics():
    each = news_words.EACH
    firsts = [noun.lower() for noun in news_words.NOUNS[::each]]
    names = news_words.subcategories(len(TOPICS))
    assert [name.split("-")[1] for name in names] == firsts


@pytest.mark.parametrize("template", [*news_words.TITLES, *news_words.ABSTRACTS])
def test_a_sentence_holds_its_three_nouns(template):
    nouns = (0, 12, 30)
    said = news_words.sentence(template, nouns)
    assert all(news_words.NOUNS[n] in said for n in nouns)
    assert "{" not in said
