"""From a client's protected report to the bytes that it sends to two operators.

report     what `participate` returned: bounded, of one client
written    in whole steps, of which the sum of squares is within the limit
cut        a seed from the operating system, and the report without its stream
sealed     the seed to the helper, the rest to the leader, for this round alone
"""

from __future__ import annotations

import os

import numpy as np
from jaxtyping import Int64

from tacit.errors import BadValue, Refused
from tacit.service.federation.manifest import Agreed, Manifest
from tacit.service.federation.sealing import SEED_BYTES, sealed_report
from tacit.transport.messages import Reports
from tacit.transport.shared_sum import SharedSum, explicit, to_bytes


def agreed_on(shared: SharedSum, *, run: bytes) -> Agreed:
    """What a client of this run holds a manifest of such a sum against."""
    if shared.steps < 1:
        raise Refused(
            f"a bound of {shared.bound:g} has {shared.steps:g} steps per unit, and a "
            "manifest has whole ones; scale the reports down"
        )
    return Agreed(
        run,
        shared.leaf,
        shared.size,
        int(shared.steps),
        shared.limit,
        shared.sigma / shared.limit**0.5,
    )


def envelope(reports: Reports, shared: SharedSum, manifest: Manifest) -> bytes:
    """One client's report, cut and sealed with fresh randomness for this round.

    The manifest was checked before (`manifest.check_manifest`). The bytes are kept and
    sent again as they are: a second envelope of the same report is another report.
    """
    if len(reports) != 1:
        raise BadValue(f"{len(reports)} reports; an envelope has that of one client")
    [whole] = shared.encoded(reports.tree)
    return sealed_row(whole, manifest)


def sealed_row(row: Int64[np.ndarray, "numbers"], manifest: Manifest) -> bytes:
    """A report in whole steps, cut and sealed with fresh randomness."""
    seed = os.urandom(SEED_BYTES)
    sealed = sealed_report(
        seed,
        to_bytes(explicit(row, seed)),
        round_id=manifest.round_id,
        leader=manifest.leader_key,
        helper=manifest.helper_key,
    )
    return sealed.body()
