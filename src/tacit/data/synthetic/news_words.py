"""Invented headlines: nouns that carry a topic, among words that carry nothing.

A topic's nine nouns are its three subtopics' three each, so a reader who counts nouns
can tell topic and subtopic from a title or an abstract.
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.data.synthetic.titles import TOPICS

SUBTOPICS = 3  # of a topic
EACH = 3  # nouns of a subtopic

NOUNS = tuple(noun for topic in TOPICS for noun in topic.nouns)  # by subtopic
TITLES = (
    "{0} and {1}: What the {2} Means",
    "Why the {0} Outlived the {1} and the {2}",
    "Inside the {0}, Beyond the {1}: A {2} Story",
    "How One {0} Became a {1} Without a {2}",
    "The {0} Nobody Expected: {1}, {2}, and More",
)
ABSTRACTS = (
    "First the {0}, then the {1}; by evening all spoke of the {2}.",
    "A report on the {0}, with a word about the {1} and the {2}.",
    "They came for the {0} and stayed for the {1}. Nobody mentioned the {2}.",
)


def categories(topics: int) -> list[str]:
    """The names of the first topics, as MIND writes them.

    >>> categories(2)
    ['space', 'crime']
    """
    return [topic.name.lower() for topic in TOPICS[:topics]]


def subcategories(topics: int) -> list[str]:
    """The names of their subtopics, each after its first noun.

    >>> subcategories(1)
    ['space-orbit', 'space-signal', 'space-moon']
    """
    return [
        f"{topic.name}-{topic.nouns[first]}".lower()
        for topic in TOPICS[:topics]
        for first in range(0, SUBTOPICS * EACH, EACH)
    ]


def sentence(template: str, nouns: Sequence[int]) -> str:
    """A template with three nouns in it.

    >>> sentence(TITLES[0], (0, 1, 2))
    'Orbit and Comet: What the Station Means'
    """
    return template.format(*(NOUNS[n] for n in nouns))
