"""Every program in benchmarks/ has a tiny run, and a broken one is noticed."""

from benchmarks import scripts


def test_every_script_has_a_tiny_run():
    assert scripts.found() == sorted(scripts.TINY)
    assert all(scripts.TINY.values())


def test_a_renamed_argument_is_noticed(monkeypatch):
    monkeypatch.setattr(scripts, "TINY", {"release_gram": (("--seedz", "2"),)})
    (line,) = scripts.broken()
    assert line.startswith("release_gram --seedz 2 does not run:")
    assert "unrecognized arguments" in line
