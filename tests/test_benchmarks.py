"""Every program in benchmarks/ has a tiny run, and a broken one is noticed."""

import json

import numpy as np
import pytest

from benchmarks import scripts
from benchmarks.__main__ import tried
from benchmarks.bar import Bar
from benchmarks.kept_values import KeptValues
from benchmarks.news_fedrec import summed_noise
from tacit.privacy import PublishedGradientNoise


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


def test_a_study_goes_on_where_it_was(tmp_path):
    kept, run = tmp_path / "kept.jsonl", {"line": "groups", "seed": 0}
    values = {"validation": np.array([0.1, 1 / 3])}
    KeptValues(kept).of(run, lambda: values)
    again = KeptValues(kept)
    found = again.of({"seed": 0, "line": "groups"}, lambda: pytest.fail("run twice"))
    np.testing.assert_array_equal(found["validation"], values["validation"])
    again.of({**run, "seed": 1}, lambda: values)
    lines = [json.loads(line)["run"]["seed"] for line in kept.read_text().splitlines()]
    assert lines == [0, 1]


def test_without_a_file_everything_runs_again():
    times = []
    for _ in range(2):
        kept = KeptValues(None)
        kept.of({}, lambda: times.append(1) or {})
    assert len(times) == 2


def test_noise_of_a_sum_has_the_law_of_the_sum():
    """Variance and fourth moment of 3 Laplace noises; each within 5 %, of 10^6 draws.

    Its standard error is 0.2 % for the variance and 1 % for the fourth moment.
    """
    draw = np.random.default_rng(0)
    privacy, scale = PublishedGradientNoise(epsilon=2.0), 0.005
    variance = 3 * 2 * scale**2
    found = summed_noise(privacy, draw, (1_000_000,), 3, variance)
    assert found.var() == pytest.approx(variance, rel=0.05)
    fourth = 3 * 24 * scale**4 + 3 * 3 * 2 * (2 * scale**2) ** 2
    assert (found**4).mean() == pytest.approx(fourth, rel=0.05)
