"""What a collector asks of a relay: the other end of its endpoints."""

from __future__ import annotations

import json
from typing import ClassVar

from tacit.errors import BadMessage
from tacit.service.federation.operator_client import OperatorClient
from tacit.service.relay.relay import Status
from tacit.service.signed_document import SIGNATURE_BYTES

_ID_BYTES = 32


class RelayClient(OperatorClient):
    """One relay, reached at its private address with the secret of the pair."""

    greeted: ClassVar[str] = "/v1/epochs"

    def sign(self, document: bytes) -> bytes:
        """The relay's signature on a manifest's JSON."""
        return self._sized("POST", "/v1/signatures", SIGNATURE_BYTES, document)

    def open(self, sent: bytes) -> bytes:
        """Open an epoch that both have signed; its id."""
        return self._sized("POST", "/v1/epochs", _ID_BYTES, sent)

    def epoch(self, epoch: bytes) -> Status:
        """The state of an epoch."""
        found = self._asked("GET", f"/v1/epochs/{epoch.hex()}")
        try:
            told = json.loads(found.content)
            uploads = told["uploads"]
            return Status(str(told["state"]), None if uploads is None else int(uploads))
        except (ValueError, LookupError, TypeError) as error:
            raise BadMessage("the relay says nothing of an epoch") from error

    def void(self, epoch: bytes) -> None:
        """Have an epoch destroyed that is given up."""
        self._asked("DELETE", f"/v1/epochs/{epoch.hex()}", allowed=(200, 404))
