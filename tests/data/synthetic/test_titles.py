"""Invented titles: none twice, and each tells its topic."""

from itertools import islice, product

from tacit.data.synthetic.titles import TOPICS, title


def test_no_title_occurs_twice():
    made = [title(topic, n) for topic, n in product(TOPICS, range(400))]
    assert len({*made}) == len(made)


def test_a_title_has_a_noun_of_its_topic_and_of_no_other():
    owner = {noun: topic for topic in TOPICS for noun in topic.nouns}
    assert len(owner) == sum(len(topic.nouns) for topic in TOPICS)
    for topic, n in product(TOPICS, range(200)):
        noun = title(topic, n).split(",")[0].split()[-1]
        assert owner[noun] is topic


def test_neighbours_differ_in_their_noun():
    """Titles are mixed: the first ones of a topic are not all of one noun."""
    nouns = {title(TOPICS[0], n).split()[-1] for n in islice(range(20), 20)}
    assert len(nouns) >= 5
