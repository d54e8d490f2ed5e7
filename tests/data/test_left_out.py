from tacit.data.left_out import LeftOut
from tacit.data.parsing.bad_lines import BadLines


def test_nothing_left_out_is_nothing_to_tell():
    assert LeftOut.of(None, unlisted=0) is None
    assert LeftOut.of(BadLines(), unlisted=0) is None


def test_what_was_left_out_is_told_with_numbers():
    bad = BadLines()
    bad.note(7, "column 'who' is blank")
    bad.note(9, "1 fields, the header has 2")
    lines, unlisted = LeftOut.of(bad, unlisted=1200).sentences()
    assert lines == (
        "2 bad lines were left out, the first: line 7: column 'who' is blank"
    )
    assert unlisted == "1,200 events with items that are not listed were left out"
    assert len(LeftOut.of(None, unlisted=1).sentences()) == 1


def test_bad_lines_are_listed_up_to_a_number():
    bad = BadLines()
    for line in range(23):
        bad.note(line, "is odd")
    listed = LeftOut.of(bad, unlisted=0).bad_ones()
    assert listed[:2] == ["line 0: is odd", "line 1: is odd"]
    assert listed[-1] == "… and 3 more"
    assert LeftOut.of(None, unlisted=1).bad_ones() == []
    assert LeftOut.of(None, unlisted=1).sentences() == [
        "1 event with an item that is not listed was left out"
    ]
