"""The benchmark over nodes judges what was promised, and by its exit code."""

import json

import pytest

from benchmarks import flower

SPREAD = {
    "seconds_per_round": [2.0, 2.0],
    "took_part": [1_000, 1_000],
    "sum_of_peaks_gib": 3.6,
}


@pytest.mark.parametrize(
    ("apart", "peaks", "said"),
    [
        (2e-9, 12.0, []),
        (3e-9, 3.6, ["apart by 3e-09, above 2e-09"]),
        (float("nan"), 3.6, ["apart by nan"]),
        (0.0, 12.01, ["12.01 GiB, above 12"]),
        (1.0, 13.0, ["apart", "GiB"]),
    ],
)
def test_memory_and_models_are_judged(apart, peaks, said):
    spread = {**SPREAD, "sum_of_peaks_gib": peaks}
    found = flower.problems(spread, {"models_apart": apart}, rounds=2)
    assert len(found) == len(said)
    assert all(part in line for part, line in zip(said, found, strict=True))


def judged(monkeypatch, capsys, *words, spread=SPREAD):
    """The exit code and the document of a run whose figures are given."""

    def nothing(*_, **__):
        return []

    monkeypatch.setattr(flower, "write_world", nothing)
    monkeypatch.setattr(flower, "write_experiments", nothing)
    monkeypatch.setattr(flower, "over_nodes", lambda *_: spread)
    monkeypatch.setattr(flower, "one_machine", lambda *_, **__: {"models_apart": 0.0})
    monkeypatch.setenv("TACIT_CACHE", "")  # so that what it sets is taken back
    code = flower.main(["--users", "1000", "--nodes", "2", *words])
    return code, json.loads(capsys.readouterr().out)


def test_its_code_says_whether_it_passed(monkeypatch, capsys):
    assert judged(monkeypatch, capsys)[0] == 0
    code, found = judged(
        monkeypatch, capsys, spread={**SPREAD, "sum_of_peaks_gib": 13.0}
    )
    assert code == 1
    assert found["problems"]


def test_the_ratio_is_that_of_the_time_per_client(monkeypatch, capsys, tmp_path):
    """Two milliseconds per client over nodes, ten over Ray."""
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\necho a line of Ray\necho '{\"milliseconds_per_client\": 10.0}'\n"
    )
    python.chmod(0o755)
    words = ("--ray", "50", "--ray-python", str(python))
    _, found = judged(monkeypatch, capsys, *words)
    assert found["milliseconds_per_client_over_nodes"] == 2.0
    assert found["ray_takes_times_as_long_per_client"] == 5.0
