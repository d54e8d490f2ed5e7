"""Codes of what a guarantee assumes, and of why there is none; each with a sentence.

Codes stand in what clients agree to: they are hashed, and compared when a client joins,
because an operator must not move a joined client from one assumption to another. The
sentences are made from the codes and may change at any time.

A promise may be PROVEN where a *party that is named* follows the protocol, or where
cryptography holds. What rests on a fact that nobody checks is `unchecked`: a guarantee
under such a code is ASSUMED at best.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tacit import check
from tacit.errors import BadValue

Value = int | str
_UNCHECKED_MARK = " (no program checks this)"
# How earlier versions, whose documents are still read, marked it.
_MARKS = (_UNCHECKED_MARK, ", which nobody checks")


@dataclass(frozen=True)
class Code:
    """A registered code, with the values that its sentence has places for.

    >>> str(Code("honest_clients", (50,)))
    'at least 50 honest clients in every round'
    """

    name: str
    values: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        kind = _kind(self.name)
        if len(self.values) != kind.places:
            raise BadValue(
                f"code '{self.name}' has {len(self.values)} values; its sentence has "
                f"{kind.places} places: {kind.sentence}"
            )

    def __str__(self) -> str:
        kind = _kind(self.name)
        mark = _UNCHECKED_MARK if kind.is_unchecked else ""
        return kind.sentence.format(*self.values) + mark

    @property
    def is_unchecked(self) -> bool:
        """Whether it is a fact that nobody checks."""
        return _kind(self.name).is_unchecked

    def to_json(self) -> list[Value]:
        """Name and values, as plain data."""
        return [self.name, *self.values]

    @classmethod
    def from_json(cls, document: Sequence[Value]) -> Code:
        """The code of what `to_json` gave; BadValue for anything else.

        A code that is not known here becomes `unknown_code`, which nobody checks.
        """
        if not isinstance(document, list) or not document:
            raise BadValue(f"{document!r} is no code: a list of its name and values")
        name, *values = document
        if not all(isinstance(one, str) or type(one) is int for one in document):
            raise BadValue(f"{document!r} is no code: values are whole numbers or text")
        kind = _KINDS.get(str(name))
        if kind is None or kind.places != len(values):
            # Still a ledger that is read, and a condition that nobody here can check.
            return cls("unknown_code", (" ".join(map(str, document)),))
        return cls(str(name), tuple(values))


@dataclass(frozen=True)
class _Kind:
    sentence: str
    is_unchecked: bool

    @property
    def places(self) -> int:
        return self.sentence.count("{}")


def sentences(codes: Iterable[Code]) -> str:
    """The sentences of these codes, each once; `nothing` without any.

    >>> sentences([Code("one_honest_aggregator")]), sentences([])
    ('one of the two aggregators follows the protocol', 'nothing')
    """
    return "; ".join(dict.fromkeys(map(str, codes))) or "nothing"


def earlier_assumptions(text: str) -> tuple[Code, ...]:
    """The codes of what an earlier version, which had none, put into sentences.

    A sentence that no version wrote is one that nobody checks.

    >>> [code.name for code in earlier_assumptions("trusted aggregator; the moon")]
    ['trusted_aggregator', 'earlier_version']
    """
    if text == "nothing":
        return ()
    # Some sentences had a semicolon of their own: the longest match comes first.
    found, rest = [], text
    while rest:
        pattern, name = next(
            (one, name)
            for one, name in (*_EARLIER.items(), (r".+?", "earlier_version"))
            if re.match(rf"{one}(?:; |$)", rest)
        )
        match = re.match(rf"({pattern})(?:; |$)", rest)
        assert match is not None
        sentence, *values = match.groups()
        numbers = tuple(map(int, values))
        found.append(Code(name, numbers or ((sentence,) * _kind(name).places)))
        rest = rest[match.end() :]
    return tuple(found)


def rests_on_unchecked(text: str) -> bool:
    """Whether sentences, of any version, name something that nobody checks."""
    if text == "nothing":
        return False
    return any(part.endswith(_MARKS) for part in text.split("; ")) or any(
        re.search(pattern, text)
        for pattern, name in _EARLIER.items()
        if _KINDS[name].is_unchecked
    )


def register_code(name: str, sentence: str, *, unchecked: bool = False) -> None:
    """Makes another package's code known; refuses a name that is known.

    The name carries the package: `package.code`. Values stand at `{}` in the sentence.
    """
    if "." not in name:
        raise BadValue(
            f"code '{name}' must carry the name of its package: 'package.{name}'"
        )
    if name in _KINDS:
        raise BadValue(f"code '{name}' is registered already: {_KINDS[name].sentence}")
    _KINDS[name] = _Kind(sentence, unchecked)


def _kind(name: str) -> _Kind:
    if name not in _KINDS:
        raise BadValue(
            f"code {check.unknown(name, _KINDS)}; those of other packages are made "
            "known by `register_code`"
        )
    return _KINDS[name]


# Parties that follow the protocol, and cryptography. No sentence has a semicolon: one
# stands between two sentences.
_TRUSTED = {
    "trusted_aggregator": "the aggregator follows the protocol and shows no single "
    "report",
    "one_honest_aggregator": "one of the two aggregators follows the protocol",
    "both_aggregators_add_noise": "both aggregators add their noise",
    "server_adds_noise": "the server adds the noise and shows no single report",
    "relay_apart": "the relay does not work together with the server",
    "ticket_per_user": "the relay hands out one ticket per user, and asks for it",
    "honest_clients": "at least {} honest clients in every round",
    "honest_clients_beside_sybils": "at least {} honest clients in every round (of {}, "
    "an attacker may have invented {})",
    "nodes_follow": "every node's operator follows the protocol and holds its users' "
    "histories, every user is on one node, and the server brings no other code to "
    "nodes",
    "sealed_halves": "AES-256-CTR, HPKE and the operating system's randomness are "
    "sound",
    "cipher_randomness": "AES-256 and the operating system's randomness are sound",
    "public_inputs": "items, population and settings are public",
    "public_slates": "the slates that each user was shown are public",
}
_UNCHECKED = {
    "uploads_not_invented": "every upload that the relay counts is a client's",
    "few_uploads_invented": "at most {} of the uploads that the relay counts are "
    "invented",
    "honest_but_curious_server": "the server follows the protocol of masked sums",
    "pki": "clients see each other's keys as they were advertised",
    "honest_fraction": "of the {} clients or more whose sums are unmasked, {} or more "
    "add their noise and share nothing with the server",
    "float_noise": "the low bits of noise in floating point reveal nothing (Mironov "
    "2012)",
    "owners_word": "{}",  # of the owner of a ledger, on a certain day
    "earlier_version": "{}",  # in words that this version does not know
    "unknown_code": "{}",  # of a package that is not here, or of a later version
}
_REASONS_OF_NONE = {
    "consented": "the members of this group accept that nothing is promised to them",
    "bare_reports": "reports are sent without noise",
    "bare_at_server": "the server sees every report without noise",
    "bare_node_sums": "the server sees the sum of each node without noise, and the sum "
    "over a single user is that user's report",
    "aggregator_colludes": "the aggregator sees every report and could show it to the "
    "server",
    "aggregators_collude": "the two aggregators together can open every report",
    "keys_forged": "a server that hands out the clients' keys itself can open every "
    "report",
    "one_machine": "one machine runs both operators and can open every report",
    "one_machine_relay": "one machine runs the relay and the collector, and knows the "
    "sender of every report",
    "clip_from_data": "the clip follows from the user's own data",
    "raw_history": "reports are computed from the history itself",
    "open_part_bare": "items of no sensitive category are sent without noise",
    "signs_remain": "the signs of a report give the history back",
    "earlier_reason": "an earlier version, which had no codes, gave the reason",
    "exact_sums": "the sums are exact, and a model made from them can reveal its users",
}
# Frozen: patterns of the sentences that versions without codes wrote.
_EARLIER = {
    "operators of nodes follow the protocol and hold their users' histories; the "
    "server brings no other code to nodes; every user is on one node": "nodes_follow",
    "trusted aggregator": "trusted_aggregator",
    "one of the two aggregators follows the protocol": "one_honest_aggregator",
    "both aggregators add their noise": "both_aggregators_add_noise",
    "the server adds the noise and shows nobody the reports": "server_adds_noise",
    "a relay that does not side with the server": "relay_apart",
    "the relay hands out one ticket per user, and asks for it": "ticket_per_user",
    r"at least (\d+) honest clients in every round, which are (\d+) less (\d+) that "
    "may be an attacker's": "honest_clients_beside_sybils",
    r"at least (\d+) honest clients in every round": "honest_clients",
    "AES-256-CTR, HPKE and the operating system's randomness": "sealed_halves",
    "AES-256 and the operating system's randomness": "cipher_randomness",
    "items, population and settings are public": "public_inputs",
    "what each user was shown is public": "public_slates",
    "none of the uploads that the relay counts are invented": "uploads_not_invented",
    r"no more than (\d+) of the uploads that the relay counts are "
    "invented": "few_uploads_invented",
    r"noise in floating point, whose low bits are not covered \(Mironov "
    r"2012\)": "float_noise",
}
_KINDS = {
    name: _Kind(sentence, name in _UNCHECKED)
    for name, sentence in (_TRUSTED | _UNCHECKED | _REASONS_OF_NONE).items()
}
