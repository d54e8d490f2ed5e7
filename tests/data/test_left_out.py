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
