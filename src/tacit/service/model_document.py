"""What `GET /v1/model` says, as a type that the server writes and the client checks.

Nothing of it depends on who asks. The digests are SHA-256 in hexadecimal.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from tacit.errors import BadMessage

FORMAT = 1  # raised whenever a field changes


Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Path = Annotated[str, msgspec.Meta(pattern="^/v1/[a-z]+/[0-9a-f]{64}$")]
Size = Annotated[int, msgspec.Meta(ge=0)]


class Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where large public content is, and how to know that it is whole."""

    path: Path
    sha256: Digest
    bytes: Size


class Queries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which queries the server ranks for, and what one of them costs its user."""

    mode: str
    version: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    bytes: int  # of every query
    most: int  # items in an answer
    basis: Content  # the mechanism
    costs: list[dict[str, Any]]  # statements about one, 30 and 365 fresh queries


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
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise BadMessage(f"no model is described there: {error}") from error


class _Format(msgspec.Struct):
    format: int
