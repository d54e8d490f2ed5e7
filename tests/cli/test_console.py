import pytest

from tacit.cli import console


@pytest.fixture
def clock(monkeypatch):
    """Ten seconds pass between two looks at the time."""
    times = iter(range(0, 10_000, 10))
    monkeypatch.setattr(console.time, "monotonic", lambda: float(next(times)))


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


@pytest.mark.usefixtures("clock")
def test_a_long_step_says_how_much_time_is_left(capsys):
    bar = console.Bar("init")
    bar.read(25, 100)
    bar.read(100, 100)
    bar.step(1, 2, "ranked by gram")  # another step: its own time
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "init: 25 of 100  of the table read  about 0:01:00 left",
        "init: 100 of 100  of the table read",
        "init: 1 of 2  ranked by gram  about 0:00:20 left",
    ]


def test_a_short_step_is_not_worth_a_line(capsys):
    bar = console.Bar("init")
    bar.read(25, 100)
    bar.read(100, 100)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_one_bar_for_each_step(monkeypatch):
    bar = console.Bar("train")
    bar.console._force_terminal = True
    for what, total in (("of the table read", 9), ("ranked by gram", 4)):
        bar.step(2, total, what)
        (task,) = bar.bar.tasks
        assert (task.total, task.fields["beside"]) == (total, what)
