"""Section 5.3: what a client downloads and uploads, measured from the codec."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import numpy as np

from tacit.data.catalog import Catalog
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.reproduction.published import PublishedTable
from tacit.reproduction.tables import Claim, ReproducedTable, Reproduction, Row
from tacit.transport.codec import broadcast_size, wire_size

_USERS = 1_000  # whose number changes no message
_ABOUT = 0.05  # the paper says "about"
_ITEMS = 9_781
_ROWS = {  # label -> items, messages down, messages up
    "item matrix, 1,000 items": (1_000, 1, 0),
    "item matrix, 9,781 items": (_ITEMS, 1, 0),
    "download, 20 epochs": (_ITEMS, 20, 0),
    "upload, an epoch": (_ITEMS, 0, 1),
    "upload, 20 epochs": (_ITEMS, 0, 20),
}


def communication(published: PublishedTable, experiments: Path) -> Reproduction:
    """Bytes of one client; nothing is trained for it."""
    paper, sound = (
        _calibrated(experiments / f"{name}.toml")
        for name in ("figure4", "figure4-sound")
    )
    rows = tuple(_row(label, published, paper, sound) for label in _ROWS)
    upload = published.value("upload, 20 epochs")
    own = _payload(*paper, _ITEMS)
    claim = Claim(
        "a client sends little: about 8 KB in 20 epochs of 100 reports",
        upload is not None and 20 * own <= upload,
        f"20 × {own} bytes of reports; {rows[-1].paper:,.0f} bytes on the wire with "
        "their envelopes",
    )
    return Reproduction(
        (ReproducedTable("Section 5.3, bytes a client", rows),), (claim,)
    )


def _calibrated(path: Path) -> tuple[Method, Plan]:
    """The method of an experiment file, and a plan of its length."""
    experiment = read_experiment(path)
    target = experiment.privacy.planned_targets
    plan = Plan(_USERS, rounds=experiment.run.rounds, target_epsilon=target)
    return experiment.method.calibrated(plan), plan


def _row(
    label: str,
    published: PublishedTable,
    paper: tuple[Method, Plan],
    sound: tuple[Method, Plan],
) -> Row:
    n_items, down, up = _ROWS[label]
    about = cast("float", published.value(label))
    measured = _bytes(*paper, n_items, down=down, up=up)
    envelope = measured - up * _payload(*paper, n_items)
    is_close = abs(measured / about - 1) <= _ABOUT
    reason = f"{envelope:,} bytes are envelopes: round, plan, layout, checksum"
    return Row(
        label,
        published=about,
        paper=measured,
        sound=_bytes(*sound, n_items, down=down, up=up),
        ok=is_close,
        note="bytes; sound: 250 in all",
        reason="" if is_close else reason,
    )


def _bytes(method: Method, plan: Plan, n_items: int, *, down: int, up: int) -> int:
    catalog = _catalog(n_items)
    broadcast = method.broadcast(method.start(plan, catalog, Key.from_seed(0)))
    layout = method.layout(plan, catalog, round=0)
    return down * broadcast_size(broadcast.stored()) + up * wire_size(layout)


def _payload(method: Method, plan: Plan, n_items: int) -> int:
    """The bytes of a report without its envelope."""
    stored = method.layout(plan, _catalog(n_items), round=0).stored().values()
    return sum(np.dtype(kind).itemsize * math.prod(shape) for kind, shape in stored)


def _catalog(n_items: int) -> Catalog:
    return Catalog.of_ids([str(item) for item in range(n_items)])
