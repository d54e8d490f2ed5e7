"""Codes of what a guarantee assumes, and of why there is none; each with a sentence.

Codes stand in what clients agree to: they are hashed, and compared when a client joins,
because an operator must not move a joined client from one assumption to another. The
sentences are made from the codes and may change at any time.

A promise may be PROVEN where a *party that is named* follows the protocol, or where
cryptography holds. What rests on a fact that nobody checks is `unchecked`: a guarantee
under such a code is ASSUMED at best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tacit import check
from tacit.errors import BadValue

Value = int | str


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
        checked = ", which nobody checks" if kind.is_unchecked else ""
        return kind.sentence.format(*self.values) + checked

    @property
    def is_unchecked(self) -> bool:
        """Whether it is a fact that nobody checks."""
        return _kind(self.name).is_unchecked

    def to_json(self) -> list[Value]:
        """Name and values, as plain data."""
        return [self.name, *self.values]

    @classmethod
    def from_json(cls, document: Sequence[Value]) -> Code:
        """The code of what `to_json` gave; BadValue for anything else."""
        if not isinstance(document, list) or not document:
            raise BadValue(f"{document!r} is no code: a list of its name and values")
        name, *values = document
        if not all(isinstance(one, str) or type(one) is int for one in document):
            raise BadValue(f"{document!r} is no code: values are whole numbers or text")
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

    >>> sentences([Code("trusted_aggregator")]), sentences([])
    ('trusted aggregator', 'nothing')
    """
    return "; ".join(dict.fromkeys(map(str, codes))) or "nothing"


def earlier_assumptions(text: str) -> tuple[Code, ...]:
    """The codes of what an earlier version had as one text of sentences.

    >>> [code.name for code in earlier_assumptions("trusted aggregator; the moon")]
    ['trusted_aggregator', 'earlier_version']
    """
    if text == "nothing":
        return ()
    known = {kind.sentence: name for name, kind in _KINDS.items() if not kind.places}
    return tuple(
        Code(known[part]) if part in known else Code("earlier_version", (part,))
        for part in text.split("; ")
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


# Parties that follow the protocol, and cryptography.
_TRUSTED = {
    "trusted_aggregator": "trusted aggregator",
    "one_honest_aggregator": "one of the two aggregators follows the protocol",
    "both_aggregators_add_noise": "both aggregators add their noise",
    "server_adds_noise": "the server adds the noise and shows nobody the reports",
    "relay_apart": "a relay that does not side with the server",
    "ticket_per_user": "the relay hands out one ticket per user, and asks for it",
    "honest_clients": "at least {} honest clients in every round",
    "honest_clients_beside_sybils": "at least {} honest clients in every round, which "
    "are {} less {} that may be an attacker's",
    "nodes_follow": "operators of nodes follow the protocol and hold their users' "
    "histories; the server brings no other code to nodes; every user is on one node",
    "sealed_halves": "AES-256-CTR, HPKE and the operating system's randomness",
    "cipher_randomness": "AES-256 and the operating system's randomness",
    "public_inputs": "items, population and settings are public",
    "public_slates": "what each user was shown is public",
    "earlier_version": "{}",  # in its words, which were agreed then
}
_UNCHECKED = {
    "uploads_not_invented": "none of the uploads that the relay counts are invented",
    "few_uploads_invented": "no more than {} of the uploads that the relay counts are "
    "invented",
    "float_noise": "noise in floating point whose low bits tell nothing (Mironov 2012)",
    "owners_word": "{}",  # of the owner of a ledger, on a certain day
}
_REASONS_OF_NONE = {
    "bare_reports": "reports are sent as they are",
    "bare_at_server": "the server sees every report bare",
    "bare_node_sums": "the server sees the sum of each node without noise, and the sum "
    "over a single user is that user's report",
    "aggregator_colludes": "an aggregator that colludes shows every report",
    "aggregators_collude": "both aggregators together can open every report",
    "one_machine": "both operators are one machine, which can open every report",
    "one_machine_relay": "relay and collector are one machine, which knows whose "
    "report is whose",
    "clip_from_data": "the clip follows from the user's own data",
    "raw_history": "reports are computed from the raw history",
    "signs_remain": "signs of a report give the history back",
    "earlier_reason": "an earlier version, which had no codes, said why",
    "exact_sums": "exact sums: a model remembers who trained it",
}
_KINDS = {
    name: _Kind(sentence, name in _UNCHECKED)
    for name, sentence in (_TRUSTED | _UNCHECKED | _REASONS_OF_NONE).items()
}
