from pathlib import Path

import pytest

from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.csv_rows import Batch
from tacit.data.sources.table import EventsTable
from tacit.data.sources.table_events import Events
from tacit.errors import BadData

TABLE = EventsTable(Path("t.csv"), "who", "what", time="when", value="stars")


def batch(*rows: tuple[str, str, str, str], bad: BadLines | None = None) -> Batch:
    names = ("who", "what", "when", "stars")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    return Batch(Path("t.csv"), 2, rows, range(len(rows)), columns, bad)


GOOD = ("ann", "lamp", "5", "1")


def test_all_columns_lose_the_same_rows():
    bad, events = BadLines(), Events(TABLE, None)
    odd = [("ann", "", "5", "1"), ("ann", "desk", "soon", "1"), ("", "x", "5", "nan")]
    events.add(batch(GOOD, *odd, ("bob", "desk", "6", "2"), bad=bad))
    found = events.dataset(bad)
    assert found.interactions.values.tolist() == [1.0, 2.0]
    assert found.interactions.times.tolist() == [5, 6]
    assert found.left_out.bad_lines == 3


def test_the_first_bad_row_is_refused_whatever_is_wrong_with_it():
    with pytest.raises(BadData, match="line 3: stars='x'"):
        Events(TABLE, None).add(batch(GOOD, ("a", "b", "5", "x"), ("", "b", "5", "1")))
