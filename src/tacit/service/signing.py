"""What every operator checks of a manifest before it signs: limits, window, chain.

One manifest per round of a run: another one is signed only if the first was never
opened here and its window is over, so that no report was taken for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tacit.errors import BadMessage, BadValue
from tacit.service.http import Failure
from tacit.service.manifest import (
    AnyManifest,
    F,
    Manifest,
    read_document,
    read_manifest,
)
from tacit.service.signed_document import signing_public_key
from tacit.text import nth_round

DAY = 86_400  # seconds
Verdicts = Mapping[str, tuple[bool, str]]  # by limit: whether it is kept, and figures


@dataclass(frozen=True)
class Signer:
    """An operator's own signing key, and the public ones of all operators, by name."""

    key: bytes = field(repr=False)
    public: Mapping[str, bytes]

    def __post_init__(self) -> None:
        if signing_public_key(self.key) not in self.public.values():
            raise BadValue(
                f"the signing key is that of none of {', '.join(self.public)}"
            )
        if len({*self.public.values()}) < len(self.public):
            raise BadValue("both operators have one signing key: they are one operator")

    def read(self, sent: bytes, kind: type[F]) -> Manifest[F]:
        """The manifest that all operators have signed; 403 for every other."""
        try:
            return read_manifest(sent, kind, self.public)
        except BadMessage as error:
            raise Failure(403, "Signature", str(error)) from None


def read_unsigned(document: bytes, kind: type[F]) -> Manifest[F]:
    """The manifest that an operator is asked to sign; 400 for another form."""
    try:
        return read_document(document, kind)
    except BadMessage as error:
        raise Failure(400, "BadMessage", str(error)) from None


class SignedRound(Protocol):
    """A round that an operator has signed, as its store has it."""

    @property
    def id(self) -> bytes:
        """The name of the round."""


def refuse_limits(who: str, verdicts: Verdicts) -> None:
    """Refuse a manifest that passes a limit; all passed limits are named at once."""
    passed = [
        f"{name} is {said}" for name, (kept, said) in verdicts.items() if not kept
    ]
    if passed:
        said = f"this {who} does not sign it: {'; '.join(passed)}"
        raise Failure(403, "Limits", said)


def window_verdicts(
    manifest: AnyManifest, now: float, *, least: float, most: float
) -> Verdicts:
    """Whether the window of a manifest is within `least` and `most` seconds.

    What is over of the window does not count: clients that have a moment only would
    all send at once, and tell who was there just then.
    """
    window = manifest.closes - manifest.opens
    left = manifest.closes - max(manifest.opens, now)
    ahead = manifest.closes - now
    return {
        "the window": (window >= least, f"{window} s, at least {least} s"),
        "the rest of the window": (
            # A tenth and a second may go by until a manifest is here.
            left >= 0.9 * least - 1,
            f"{left:.0f} s, with at least {least} s when it is signed",
        ),
        "the time until it closes": (
            ahead <= most,
            f"{ahead:.0f} s, at most {most} s",
        ),
    }


def refuse_url(who: str, given: str, own: str) -> None:
    """Refuse a manifest that sends reports to another address."""
    if given != own:
        said = f"the manifest sends reports to {given}, and this {who} is at {own}"
        raise Failure(403, "Url", said)


def refuse_past(manifest: AnyManifest, now: float) -> None:
    """Refuse a manifest whose window is over."""
    if manifest.closes <= now:
        said = f"the window is over since {manifest.closes}"
        raise Failure(403, "Window", said)


def refuse_gap(manifest: AnyManifest, before: SignedRound | None) -> None:
    """Refuse a manifest that does not follow the round before, as it was here."""
    expected = b"" if before is None else before.id
    if manifest.previous != expected or (manifest.round and before is None):
        name = nth_round(manifest.round)
        said = f"{name} does not follow the round before it here"
        raise Failure(403, "Fork", said)


def refuse_fork(manifest: AnyManifest, *, may_be_replaced: bool) -> None:
    """Refuse a second manifest of a round, if the first may be open or was opened."""
    if not may_be_replaced:
        raise Failure(
            *(403, "Fork"),
            f"{nth_round(manifest.round)} has another manifest, which was signed "
            "here before: a round has one",
        )
