from pathlib import Path

import pytest

from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.csv_rows import Batch
from tacit.data.parsing.numbered_ids import Ids, blanks
from tacit.errors import BadData


def batch(*ids: str, bad: BadLines | None = None) -> Batch:
    rows = [[text or "-"] for text in ids]
    return Batch(Path("t.csv"), 2, rows, range(len(ids)), {"id": [*ids]}, bad)


def test_ids_are_numbered_as_they_come():
    ids = Ids()
    ids.add(["b", "a", "b"])
    ids.add(["c", "a"])
    assert list(ids.numbers) == ["b", "a", "c"]
    assert [codes.tolist() for codes in ids.codes] == [[0, 1, 0], [2, 1]]


def test_blank_and_repeated_ids_are_refused_or_left_out():
    assert blanks(batch("a", "", "b"), "id") == {1: "column 'id' is blank"}
    with pytest.raises(BadData, match="line 4: id='a' occurs twice; list it once"):
        Ids().add_once(batch("a", "b", "a"), "id")
    bad, ids = BadLines(), Ids()
    left = ids.add_once(batch("a", "", "a", "b", bad=bad), "id")
    assert left.columns["id"] == list(ids.numbers) == ["a", "b"]
    assert bad.count == 2
