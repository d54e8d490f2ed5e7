"""The account in plain words, for people who have never seen an epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from tacit.errors import BadValue
from tacit.release import EVERYONE, Adjacency, Standing, Unit, View
from tacit.statement import Statement
from tacit.text import shown
from tacit.transport.channels import CHANNELS, channel

# Up to which epsilon a promise is called so. Above the last nothing is reassuring.
_STRENGTHS = (
    (0.5, "a very strong promise"),
    (1.0, "a strong promise"),
    (3.0, "a moderate promise"),
    (8.0, "a weak promise"),
)
_HARDLY = "hardly a promise"
_MARGIN = 0.1  # above epsilon, so that the chance of more is bounded, see `meaning`

_ABOUT = {
    (Unit.USER, Adjacency.ZERO_OUT): "that a person took part",
    (Unit.USER, Adjacency.REPLACE_ONE): "that a person has this history and no other",
    (Unit.ITEM, Adjacency.ZERO_OUT): "that a history has a certain item",
    (Unit.ITEM, Adjacency.REPLACE_ONE): "that a history has this item in place of "
    "another",
}
_UNIT = {Unit.USER: "one person's whole history", Unit.ITEM: "one item of a history"}
_NEIGHBOR = {
    (Unit.USER, Adjacency.ZERO_OUT): "compared with that person absent",
    (Unit.USER, Adjacency.REPLACE_ONE): "compared with any other history",
    (Unit.ITEM, Adjacency.ZERO_OUT): "compared with that item absent",
    (Unit.ITEM, Adjacency.REPLACE_ONE): "compared with any other item in its place",
}
_READERS = "everyone who sees the model"
_OPERATOR = "the server's operator"
_ANY_THIRD = "the aggregator or the relay"


NO_RELEASE = (
    "no release could follow from these items, filters and protection as they are "
    "(tacit release says why)"
)


def purpose(*, is_release: bool, could_be_released: bool = True) -> str:
    """What a run is for, said before its figures."""
    if is_release:
        return (
            "release: randomness comes from the operating system, sums are whole "
            "numbers, and the model may be published"
        )
    holds = "all figures below hold for a release (tacit release)"
    return (
        "simulation: randomness comes from a seed, which is enough to subtract the "
        f"noise; {holds if could_be_released else NO_RELEASE}"
    )


def released(metric: Mapping[str, Any]) -> str:
    """A metric that was released, with what its noise leaves open."""
    name, value, n_users = metric["name"], metric["value"], metric["people"]
    return (
        f"{name} {value:.4f}, between {metric['low']:.4f} and {metric['high']:.4f} by "
        f"95 % of the noise: the last item of about {n_users:,} users of the training "
        "was held out"
    )


def in_words(totals: Sequence[Statement]) -> list[str]:
    """One sentence per observer, about a user's whole history.

    A guarantee bounds an observer's beliefs (`meaning`).
    """
    # Readers ask about the user; lines about one interaction are left out.
    mine = [line for line in totals if line.unit is Unit.USER]
    return [f"Against {observers([n.view], n)}: {_verdict(n)}" for n in mine]


def observers(views: Iterable[View], line: Statement) -> str:
    """The observers of these views of a line, and the group that it is about.

    Against the server alone, over two servers, means that one aggregator is honest.
    """
    seen, thirds = {*views}, _thirds(line.channel)
    alone, together = _OPERATOR, f"the server together with {thirds}"
    either = f"the server, alone or together with {thirds}"
    if line.channel in CHANNELS and channel(line.channel).noise_shares > 1:
        alone = "the server together with one of the two aggregators"
        either = "the server together with one of the two aggregators or with both"
    if not thirds:
        together = either = alone
    server = {
        (True, False): alone,
        (False, True): together,
        (True, True): either,
    }.get((View.SERVER in seen, View.COLLUSION in seen))
    readers = _READERS if View.RELEASE in seen else None
    group = "" if line.group == EVERYONE else f", about group '{shown(line.group)}'"
    return ", and ".join(filter(None, (server, readers))) + group


def _thirds(names: str) -> str:
    """The parties beside the server; `names` may be several channels, or unknown."""
    found = dict.fromkeys(_third(one) for one in names.split("; "))
    return _ANY_THIRD if _ANY_THIRD in found else " and ".join(filter(None, found))


def _third(name: str) -> str:
    """With whom the server would have to collude; over `direct` there is nobody."""
    return channel(name).third if name in CHANNELS else _ANY_THIRD


def about(line: Statement) -> str:
    """The unit of a line, and what a neighboring data set is."""
    return f"{_UNIT[line.unit]}, {_NEIGHBOR[line.unit, line.adjacency]}"


def groups_as_one(sizes: Mapping[str, int], epsilon: float) -> str:
    """How many users each group has, and what their budgets are worth together.

    >>> groups_as_one({"strict": 60, "open": 40}, 2.5)
    "groups: 60 'strict', 40 'open'; sums are as clear as with everyone at epsilon 2.5"
    """
    who = ", ".join(f"{size:,} '{shown(group)}'" for group, size in sizes.items())
    one = f"{epsilon:.3g}"
    return f"groups: {who}; sums are as clear as with everyone at epsilon {one}"


def consenting(sizes: Mapping[str, int], groups: Sequence[str], weight: float) -> str:
    """What a plan says of groups to which nothing is promised: both ways to ask them.

    >>> consenting({"others": 95, "few": 5}, ["few"], 10.0).split("; ")[0]
    "nothing is promised to 5 'few', whose reports weigh 10 times those of the others"
    """
    who = ", ".join(f"{sizes[group]:,} '{shown(group)}'" for group in groups)
    return (
        f"nothing is promised to {who}, whose reports weigh {weight:.3g} times those "
        "of the others; to learn of them alone, and promise the others that nothing of "
        "them is asked, set privacy.asks"
    )


def targets(target: float | Mapping[str, float | None] | None) -> str:
    """The target of all, or that of each group.

    >>> targets({"strict": 1.0, "open": 8.0}), targets(2.0), targets(None)
    ("epsilon 1.0 for 'strict', 8.0 for 'open'", 'epsilon 2.0', 'none')
    >>> targets({"others": 1.0, "volunteers": None})
    "epsilon 1.0 for 'others', no promise for 'volunteers'"
    """
    if target is None:
        return "none"
    if not isinstance(target, Mapping):
        return f"epsilon {target}"
    each = ", ".join(
        f"{e} for '{shown(group)}'" for group, e in target.items() if e is not None
    )
    without = "".join(
        f", no promise for '{shown(group)}'" for group, e in target.items() if e is None
    )
    return f"epsilon {each}{without}"


def without_figure(standing: Standing) -> str:
    """What stands in the place of a figure where a line has none.

    >>> without_figure(Standing.NONE), without_figure(Standing.NOTHING)
    ('no promise', 'nothing yet')
    """
    return "nothing yet" if standing is Standing.NOTHING else "no promise"


def _verdict(line: Statement) -> str:
    if not line.standing.has_epsilon or line.epsilon is None:
        return f"{without_figure(line.standing)}; {line.reason}."
    assumed = "" if line.assumes == "nothing" else f" Assumes: {line.assumes}."
    return f"{meaning(line)}.{assumed}"


def meaning(line: Statement) -> str:
    """What a proven line means: how far a belief of 50 % and of 1 % can grow.

    Without a delta odds grow by e^epsilon at most, always. With one, let L be the log
    of the odds' growth. Then delta >= E[max(0, 1 - e^(epsilon - L))], so L is above
    epsilon + a with a probability of delta / (1 - e^-a) at most, for every a > 0. The
    sentence has a = 0.1; `exception` gives that probability.
    """
    if line.epsilon is None:
        raise BadValue(f"'{line.what}' has no epsilon, so nothing bounds a belief")
    return promise(line.epsilon, line.delta or 0.0, _ABOUT[line.unit, line.adjacency])


def exception(line: Statement) -> str:
    """How often a belief can grow further than `meaning` says.

    It is for readers who want every term, beside the delta that it follows from.
    """
    if not line.delta:
        return "none"
    chance = line.delta / -math.expm1(-_MARGIN)
    return f"a belief can grow further with a probability of at most {_up(chance)}"


def paper_claim(line: Statement) -> str | None:
    """The figure that a paper itself states for this line; it is never an epsilon."""
    if line.published_epsilon is None:
        return None
    return f"the paper's own figure is {line.published_epsilon:.6g}"


def promise(epsilon: float, delta: float, about: str) -> str:
    """What an epsilon and a delta are worth, and what a belief can become under them.

    >>> promise(1.0, 0.0, "in rain")[:44]
    "a strong promise: an observer's belief in ra"
    """
    grown = beliefs(epsilon + _MARGIN if delta else epsilon, about)
    return f"{strength(epsilon)}: {grown}"


def is_reassuring(lines: Sequence[Statement]) -> bool:
    """Whether every line is proven with an epsilon that is called a promise at all."""
    return bool(lines) and all(
        line.standing is Standing.PROVEN and is_a_promise(line.epsilon)
        for line in lines
    )


def unchecked(lines: Sequence[Statement]) -> str:
    """A sentence for lines of which some rest on an unchecked fact; else nothing."""
    if all(line.standing is not Standing.ASSUMED for line in lines):
        return ""
    return (
        "An ASSUMED promise holds only under a condition that no program checks; the "
        "condition stands with the promise."
    )


def is_a_promise(epsilon: float | None) -> bool:
    """Whether a proven epsilon is small enough to be called a promise.

    >>> is_a_promise(8.0), is_a_promise(8.01), is_a_promise(None)
    (True, False, False)
    """
    most, _ = _STRENGTHS[-1]
    return epsilon is not None and epsilon <= most


def _up(chance: float) -> str:
    """A small probability with two digits, rounded up.

    >>> _up(1.0508e-05), _up(0.9)
    ('1.1e-05', '0.9')
    """
    digits = Context(prec=2, rounding=ROUND_CEILING)
    return f"{float(digits.create_decimal(repr(chance))):g}"


def strength(epsilon: float) -> str:
    """What an epsilon is worth, in one of five degrees.

    >>> strength(0.1), strength(4.0), strength(8.5)
    ('a very strong promise', 'a weak promise', 'hardly a promise')
    """
    return next((word for most, word in _STRENGTHS if epsilon <= most), _HARDLY)


def beliefs(epsilon: float, about: str) -> str:
    """How far a belief can grow, by the rule of Bayes, rounded up.

    >>> beliefs(1.0, "in rain")
    "an observer's belief in rain can grow from 50 % to 73.2 %, and from 1 % to 2.7 %"
    """
    half, rare = (percent(believed(prior, epsilon)) for prior in (0.5, 0.01))
    return (
        f"an observer's belief {about} can grow from 50 % to {half}, and from 1 % to "
        f"{rare}"
    )


def believed(prior: float, epsilon: float) -> float:
    """The largest probability that a belief of `prior` can become.

    >>> round(believed(0.5, 0.0), 3), round(believed(0.01, 4.0), 3)
    (0.5, 0.355)
    """
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def percent(share: float) -> str:
    """A share in percent, rounded up, and never to all where something is missing.

    >>> percent(0.5), percent(0.98201), percent(0.9999999), percent(1.0)
    ('50.0 %', '98.3 %', 'more than 99.9 %', 'more than 99.9 %')
    """
    up = math.ceil(round(share * 1000, 6)) / 10
    return f"{up:.1f} %" if up < 100 else "more than 99.9 %"


def rounded_up(figure: float) -> str:
    """An epsilon with two decimals, rounded up: rounded down it would not hold.

    >>> rounded_up(3.999999), rounded_up(0.501)
    ('4.00', '0.51')
    """
    return str(Decimal(figure).quantize(Decimal("0.01"), ROUND_CEILING))


def capital(text: str) -> str:
    """The text with a capital letter in front."""
    return f"{text[:1].upper()}{text[1:]}"


def sentence(text: str) -> str:
    """The text as a sentence.

    >>> sentence("noise on two sums")
    'Noise on two sums.'
    """
    return f"{capital(text)}."
