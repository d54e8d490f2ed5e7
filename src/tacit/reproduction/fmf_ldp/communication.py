"""Section 5.3: what a device downloads and uploads, measured from the codec."""

from __future__ import annotations

import math

import numpy as np

from tacit.data.catalog import Catalog
from tacit.keys import Key
from tacit.methods.fmf_ldp import FmfLdp
from tacit.plan import Plan
from tacit.reproduction import Scale
from tacit.reproduction.fmf_ldp import published
from tacit.reproduction.fmf_ldp.trials import EPOCHS, Paper, Sound
from tacit.reproduction.tables import Claim, ReproducedTable, Reproduction, Row
from tacit.transport.codec import broadcast_size, wire_size

_PEOPLE = 1_000  # whose number changes no message
_PLAN = Plan(_PEOPLE, rounds=EPOCHS)
_ABOUT = 0.05  # the paper says "about"


def communication(_: Scale) -> Reproduction:
    """Bytes of one device; nothing is trained for it."""
    small, large = 1_000, published.FULL_SET[1]
    rows = (
        _row("item matrix, 1,000 items", published.V_OF_1000_ITEMS, small, down=1),
        _row("item matrix, 9,781 items", published.V_OF_ALL_ITEMS, large, down=1),
        _row("download, 20 epochs", published.DOWNLOAD_OF_20_EPOCHS, large, down=20),
        _row("upload, an epoch", published.UPLOAD_OF_AN_EPOCH, large, up=1),
        _row("upload, 20 epochs", published.UPLOAD_OF_20_EPOCHS, large, up=20),
    )
    claim = Claim(
        "a device sends little: about 8 KB in 20 epochs of 100 reports",
        20 * _payload(Paper().method, large) <= published.UPLOAD_OF_20_EPOCHS,
        f"20 × {_payload(Paper().method, large)} bytes of reports; "
        f"{rows[-1].paper:,.0f} bytes on the wire with their envelopes",
    )
    table = ReproducedTable("Section 5.3, bytes a device", rows)
    return Reproduction((table,), (claim,))


def _row(label: str, about: float, n_items: int, *, down: int = 0, up: int = 0) -> Row:
    paper, sound = Paper().method, Sound().method(_PEOPLE)
    measured = _bytes(paper, n_items, down=down, up=up)
    envelope = measured - up * _payload(paper, n_items)
    is_close = abs(measured / about - 1) <= _ABOUT
    reason = f"{envelope:,} bytes are envelopes: round, plan, layout, checksum"
    return Row(
        label,
        published=about,
        paper=measured,
        sound=_bytes(sound, n_items, down=down, up=up),
        ok=is_close,
        note="bytes; sound: 250 in all",
        reason="" if is_close else reason,
    )


def _bytes(method: FmfLdp, n_items: int, *, down: int, up: int) -> int:
    broadcast = method.broadcast(
        method.start(_PLAN, _catalog(n_items), Key.from_seed(0))
    )
    layout = method.layout(_PLAN, _catalog(n_items), round=0)
    return down * broadcast_size(broadcast) + up * wire_size(layout)


def _payload(method: FmfLdp, n_items: int) -> int:
    """The bytes of a report without its envelope."""
    layout = method.layout(_PLAN, _catalog(n_items), round=0)
    stored = layout.stored().values()
    return sum(np.dtype(kind).itemsize * math.prod(shape) for kind, shape in stored)


def _catalog(n_items: int) -> Catalog:
    return Catalog.of_ids([str(item) for item in range(n_items)])
