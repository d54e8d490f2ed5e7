from tacit.data.parsing.bad_lines import MOST_SHOWN, BadLines


def test_all_lines_are_counted_and_the_first_are_shown():
    bad = BadLines()
    for line in range(1, 101):
        bad.note(line, "is odd")
    assert bad.count == 100
    assert len(bad.first) == MOST_SHOWN
    assert bad.first[:2] == ["line 1: is odd", "line 2: is odd"]
