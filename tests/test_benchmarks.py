"""Every program in benchmarks/ has a tiny run, and a broken one is noticed."""

from benchmarks import scripts
from benchmarks.__main__ import tried
from benchmarks.bar import Bar


def test_every_script_has_a_tiny_run():
    assert scripts.found() == sorted(scripts.TINY)
    assert all(scripts.TINY.values())


def test_a_renamed_argument_is_noticed(monkeypatch):
    monkeypatch.setattr(scripts, "TINY", {"release_gram": (("--seedz", "2"),)})
    (line,) = scripts.broken()
    assert line.startswith("release_gram --seedz 2 does not run:")
    assert "unrecognized arguments" in line


def test_a_bar_and_a_script_that_stop_are_both_told(monkeypatch):
    monkeypatch.setattr(scripts, "TINY", {"release_gram": (("--seedz", "2"),)})
    stops = Bar(99, "a toy that stops", 1.0, lambda quick: [][0])
    of_bar, of_script = tried([stops], with_scripts=True)
    assert of_bar == "bar 99 does not run: IndexError: list index out of range"
    assert of_script.startswith("release_gram --seedz 2 does not run:")
    assert tried([stops], with_scripts=False) == [of_bar]
