from tacit.cli import console


def test_long_work_says_what_it_does(capsys):
    """In a pipe: lines on stderr, the last step always, and none in between."""
    with console.Bar("working") as bar:
        bar.say("first of all")
        bar.advance(1, 3, "begun")
        bar.advance(2, 3, "too soon for another line")
        bar.advance(3, 3, "done")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "working: first of all",
        "working: 1 of 3  begun",
        "working: 3 of 3  done",
    ]
