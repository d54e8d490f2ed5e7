"""A step is made once in a process, and once in a directory, by the same code."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tacit.reproduction import kept as module
from tacit.reproduction.kept import keeping, kept


@dataclass(frozen=True)
class Bench:
    rounds: int


def stepping() -> tuple[Callable[[Bench], list[int]], list[Bench]]:
    """A step as a new process would have it, and what it was asked to make."""
    made: list[Bench] = []

    @kept(lambda found: {"found": found}, lambda plain: list(plain["found"]))
    def step(bench: Bench) -> list[int]:
        made.append(bench)
        return [bench.rounds, bench.rounds + 1]

    return step, made


def test_a_step_is_made_once_in_a_process() -> None:
    step, made = stepping()
    assert step(Bench(1)) == step(Bench(1)) == [1, 2]
    assert step(Bench(2)) == [2, 3]
    assert made == [Bench(1), Bench(2)]


def test_another_process_reads_what_was_made(tmp_path: Path) -> None:
    first, _ = stepping()
    second, made = stepping()
    with keeping(tmp_path):
        first(Bench(1))
    with keeping(tmp_path):
        assert second(Bench(1)) == [1, 2]
        assert second(Bench(2)) == [2, 3]
    assert made == [Bench(2)]
    found = [json.loads(p.read_text())["found"] for p in tmp_path.glob("*.json")]
    assert sorted(found) == [[1, 2], [2, 3]]


def test_nothing_is_kept_outside(tmp_path: Path) -> None:
    step, _ = stepping()
    with keeping(tmp_path):
        pass
    step(Bench(1))
    assert not [*tmp_path.iterdir()]


def test_other_code_makes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = stepping()
    second, made = stepping()
    with keeping(tmp_path):
        first(Bench(1))
    monkeypatch.setattr(module, "_source", lambda: "another version")
    with keeping(tmp_path):
        second(Bench(1))
    assert made == [Bench(1)]


def test_a_step_that_fails_leaves_nothing(tmp_path: Path) -> None:
    @kept(list, list)
    def step() -> list[int]:
        raise KeyboardInterrupt

    with keeping(tmp_path), pytest.raises(KeyboardInterrupt):
        step()
    assert not [*tmp_path.iterdir()]
