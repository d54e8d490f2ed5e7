"""`--from RUN` is a change of the experiment like any other."""

from pathlib import Path

from tacit.cli.options import refreshing


def test_without_an_earlier_run_nothing_is_changed():
    assert refreshing(["run.rounds=2"], None) == ["run.rounds=2"]


def test_the_earlier_run_is_named_by_its_whole_path(tmp_path, monkeypatch):
    """The experiment is read later, perhaps from another directory."""
    monkeypatch.chdir(tmp_path)
    [first, last] = refreshing(["run.rounds=2"], Path("before"))
    assert first == "run.rounds=2"
    assert last == f"run.refreshes={tmp_path.resolve() / 'before'}"
