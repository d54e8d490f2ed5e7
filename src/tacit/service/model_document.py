"""What `GET /v1/model` says, as a type that the server writes and the client checks.

Nothing of it depends on who asks. The digests are SHA-256 in hexadecimal.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tacit.errors import BadMessage

FORMAT = 1  # raised whenever a field changes


class Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where large public content is, and how to know that it is whole."""

    path: str
    sha256: str
    bytes: int


class Queries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which queries the server ranks for, and what one of them costs its user."""

    mode: str
    version: str  # of the served model, in hexadecimal
    bytes: int  # of every query
    most: int  # items in an answer
    settings: dict[str, Any]  # of the mechanism, such as its epsilon
    basis: Content  # the mechanism's public numbers
    release: dict[str, Any]  # one fresh query, as ledgers read it


class ModelDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model, what is needed to rank with it, and what was promised for it."""

    format: int
    tacit: str  # the version of the program
    items: int
    model: dict[str, Any]  # the run's own `model.json`
    candidates: Content  # weights and catalog
    queries: Queries | None  # None: every client ranks by itself
    simulation: bool
    epsilons: list[dict[str, Any]]

    def encode(self) -> bytes:
        """The document as JSON text."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, text: bytes) -> ModelDocument:
        """The document in this text; refuses another format, or what is none."""
        try:
            form = msgspec.json.decode(text, type=_Format).format
            if form != FORMAT:
                raise BadMessage(
                    f"a model of format {form}; this program reads {FORMAT}: use the "
                    "version that the server has"
                )
            return msgspec.json.decode(text, type=cls)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BadMessage(f"no model is described there: {error}") from error


class _Format(msgspec.Struct):
    format: int
