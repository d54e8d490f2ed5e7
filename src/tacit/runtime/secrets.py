"""What a release draws from, and how it is forgotten.

    run    decides who is asked; stored until the last round
    round  noise, coins and order of the open round; every round has its own

Both stand in the checkpoint, which only its owner can read, before the round is
played: a round that was stopped is played again with the same noise, over the same
data. The checkpoint after a round replaces the one before in one step, so the noise is
forgotten in the step that makes the result durable; the last one holds no secret.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from tacit.cipher import SECRET_BYTES
from tacit.keys import Key


@dataclass(frozen=True)
class Secrets:
    """The secrets of a release, from the operating system."""

    run: bytes = field(repr=False)
    round: bytes = field(repr=False)

    @classmethod
    def from_os(cls) -> Secrets:
        """The secrets of the run and of its first round."""
        return cls(os.urandom(SECRET_BYTES), os.urandom(SECRET_BYTES))

    def of_next_round(self) -> Secrets:
        """The same secret of the run, and a new one for the next round."""
        return replace(self, round=os.urandom(SECRET_BYTES))

    def keys(self) -> tuple[Key, Key]:
        """The key of the run and the key of the round."""
        return Key.from_secret(self.run), Key.from_secret(self.round)
