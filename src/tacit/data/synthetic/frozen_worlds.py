"""Worlds that may not change any more: figures were published on them.

The digest of a world's columns is pinned here and compared on every load. Draws and
times are exact everywhere; a pick could differ only where a draw falls within rounding
of a border, once in some millions of worlds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from tacit.data.archives import Progress
from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.sources.source import Generated
from tacit.data.synthetic.world import LIKE_MOVIELENS_1M, World
from tacit.errors import BadData


@dataclass(frozen=True, kw_only=True)
class Frozen(Generated):
    """A made data set whose columns must have this digest, whenever it is opened."""

    digest: str

    def open(
        self,
        *,
        where: Path | None = None,
        cache: Path | None = None,
        download: bool = False,
        progress: Progress | None = None,
    ) -> Dataset:
        """As any made set; refused if it is not the one that was frozen."""
        # On every load, from the cache too: a figure rests on each event of it.
        found = super().open(where=where, cache=cache)
        digest = digest_of(found.interactions)
        if digest != self.digest:
            problem = (
                f"its columns have the digest {digest}, frozen was {self.digest}: not "
                "the world that figures were published on; delete its cache entry, "
                "and if that does not help report how your machine differs"
            )
            raise BadData(self.name, None, problem)
        return found


def digest_of(log: Interactions) -> str:
    """32 digits that change with any event: who, what, how much, when."""
    digest = hashlib.blake2b(digest_size=16)
    for column in (log.offsets, log.items, log.values, log.times):
        if column is not None:
            little = column.astype(column.dtype.newbyteorder("<"), copy=False)
            digest.update(np.ascontiguousarray(little).data)
    return digest.hexdigest()


# As many users and items as leave 75,040 and 9,781, the sizes of the paper, with at
# least 60 events each; activity and popularity are those of MovieLens 1M.
LIKE_FMF_LDP = replace(LIKE_MOVIELENS_1M, users=112_600, items=12_400)


def _frozen(name: str, title: str, world: World, *, digest: str) -> Frozen:
    return Frozen(
        name=name,
        title=title,
        home="made by this package from a seed",
        terms="None: no real user is in it.",
        citation="None needed.",
        make=partial(world.dataset, name),
        stamp=world.stamp if world.is_large else None,
        digest=digest,
    )


SOURCES = {
    source.name: source
    for source in (
        _frozen(
            "synthetic-fmf-ldp",
            "An invented world for the figures of FMF-LDP, frozen",
            LIKE_FMF_LDP,
            digest="8334f953274843bcbdbf44f96a6f551c",
        ),
        _frozen(
            "synthetic-fmf-ldp-small",
            "The first 6,040 users of synthetic-fmf-ldp, frozen",
            replace(LIKE_FMF_LDP, users=6_040),
            digest="7d6fa462ce72f6edeb8b6bd179e44fc9",
        ),
    )
}
