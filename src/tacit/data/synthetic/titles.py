"""Invented titles: an adjective and a noun of the topic, no title twice."""

from __future__ import annotations

from dataclasses import dataclass

_ADJECTIVES = (
    *("Amber", "Borrowed", "Broken", "Crooked", "Distant", "Electric", "Endless"),
    *("Forgotten", "Gentle", "Golden", "Hidden", "Hollow", "Last", "Quiet", "Restless"),
    *("Second", "Silver", "Sleepless", "Velvet", "Winter"),
)


@dataclass(frozen=True)
class Topic:
    """A kind of item and the nouns its titles are made of; topics share no noun."""

    name: str
    nouns: tuple[str, ...]


def _topic(name: str, nouns: str) -> Topic:
    return Topic(name, tuple(nouns.split()))


TOPICS = (
    _topic("Space", "Orbit Comet Station Signal Nebula Voyage Moon Horizon Beacon"),
    _topic("Crime", "Alibi Heist Witness Verdict Safe Informer Cipher Motive Getaway"),
    _topic("Romance", "Letter Waltz Promise Summer Balcony Stranger Kiss Vow Reunion"),
    _topic("Nature", "River Forest Wolf Glacier Meadow Storm Heron Canyon Orchard"),
    _topic(
        "History", "Empire Crown Siege Treaty Caravan Dynasty Fortress Relic Scribe"
    ),
    _topic(
        "Music", "Chorus Ballad Encore Fiddle Overture Refrain Drummer Nocturne Duet"
    ),
    _topic("Food", "Kitchen Harvest Recipe Bakery Feast Lemon Vineyard Spoon Banquet"),
    _topic("Magic", "Spell Dragon Mirror Potion Lantern Wizard Oracle Labyrinth Charm"),
    _topic("Sport", "Marathon Referee Rally Stadium Finish Rival Coach Summit Penalty"),
    _topic("Sea", "Harbor Tide Lighthouse Captain Reef Anchor Current Island Sailor"),
    _topic(
        "Comedy", "Neighbor Mishap Butler Costume Parade Nephew Parrot Picnic Prank"
    ),
    _topic("Ghosts", "Attic Whisper Manor Shadow Cellar Seance Portrait Midnight Echo"),
)


def topic_name(number: int) -> str:
    """The name of topic `number`; after all of them it counts their kinds.

    >>> topic_name(0), topic_name(12)
    ('Space', 'Space 2')
    """
    kind, place = divmod(number, len(TOPICS))
    return f"{TOPICS[place].name} {kind + 1}" if kind else TOPICS[place].name


def title(topic: Topic, number: int) -> str:
    """The title of a topic's item `number`; after all pairs it counts parts.

    >>> title(TOPICS[0], 0), title(TOPICS[0], 180)
    ('Amber Orbit', 'Amber Orbit, Part 2')
    """
    pairs = len(_ADJECTIVES) * len(topic.nouns)  # 180 titles of a topic
    part, place = divmod(number, pairs)
    place = place * 77 % pairs  # 77 shares no factor with 20 × 9: visits all, mixed
    adjective, noun = divmod(place, len(topic.nouns))
    text = f"{_ADJECTIVES[adjective]} {topic.nouns[noun]}"
    return f"{text}, Part {part + 1}" if part else text
