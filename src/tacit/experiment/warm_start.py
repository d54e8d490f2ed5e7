"""The finished run that an experiment refreshes, and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.data.catalog import Catalog
from tacit.data.dataset import Dataset
from tacit.errors import Refused
from tacit.experiment.saved_run import SavedRun, load
from tacit.method import Method
from tacit.runtime.checkpoint import load_learnt
from tacit.runtime.warm_start import Earlier, read_spent


@dataclass(frozen=True, eq=False)
class EarlierRun:
    """A finished run to go on from: its method, its items, its weights and memory."""

    path: Path
    method: Method
    catalog: Catalog
    left: Earlier
    is_simulation: bool = True

    @classmethod
    def at(cls, path: Path) -> EarlierRun:
        """The run in this directory; refuses one that is not finished.

        It needs no data set: the model file has the catalog, the ledger the releases.
        """
        run = SavedRun.at(path)
        is_simulation = bool(run.result["simulation"])  # refuses a run that has none
        model = load(path)
        weights, memory = load_learnt(run.directory.checkpoint)
        left = Earlier(weights, memory, read_spent(run.directory.ledger))
        return cls(path, model.method, model.catalog, left, is_simulation)

    def renumbered(self, dataset: Dataset) -> Dataset:
        """The same events over the catalog of this run, whose sums go by item index.

        Items that nobody has any more stay; an item that is new is refused.
        """
        places, ids = self.catalog.ids.positions, list(dataset.catalog.ids)
        new = [i for i in ids if i not in places]
        if new:
            raise Refused(
                f"{len(new):,} items of {dataset.name}, such as '{new[0]}', are new "
                f"since the run at {self.path}, whose sums have no place for them; "
                "leave their events out, or train without that run"
            )
        # Their candidates have item numbers, too, which nothing renumbers.
        if dataset.impressions is not None:
            raise Refused(f"{dataset.name} has impressions, which cannot be refreshed")
        place = np.array([places[i] for i in ids], np.int32)
        log = dataset.interactions
        log = replace(log, items=place[log.items], n_items=len(self.catalog))
        return replace(dataset, interactions=log, catalog=self.catalog)

    def refuse_other_items(self, catalog: Catalog) -> None:
        """Refuse a catalog that has not the same items in the same order."""
        if list(self.catalog.ids) != list(catalog.ids):
            raise Refused(
                f"{len(catalog):,} items are left of the {len(self.catalog):,} of the "
                f"run at {self.path}, and its sums go by an item's place; keep them "
                'all, with data.items = "all"'
            )
