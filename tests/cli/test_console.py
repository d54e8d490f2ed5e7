import logging

from tacit.cli import console


def test_long_work_says_what_it_does(capsys):
    source = logging.getLogger("tacit.tested")
    with console.newest_line("tacit.tested", "working"):
        source.info("first of %d", 2)
        source.info("second")
    source.info("too late")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "working, step 1: first of 2",
        "working, step 2: second",
    ]
    assert not source.handlers
