"""`python -m benchmarks.federation_mutants`: each broken variant is caught by kills.

A variant breaks one promise of `tacit.service.federation`. It is patched in before the
processes are forked, and killed where that shows; `federation_checks` must complain.

    noise drawn late        the seed is drawn when the sum is computed, and not kept
    sum not kept            the seed is in memory alone: started again, it draws another
    noise kept              a closed round still has the seed of its noise on the disk
    ids in their own commit the total is on the disk before the ids of its reports
    answers before commit   clients hear 200 before their batch is on a disk
    batch named early       a batch is chosen though the leader never added it
    ledger line late        a round is opened before the ledger has its line
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.federation_kills import kill_as, memory
from benchmarks.federation_lives import HELD, Kill, World
from benchmarks.federation_place import COORDINATOR, HELPER, LEADER
from tacit.cipher import SECRET_BYTES
from tacit.service.federation import aggregator
from tacit.service.federation.aggregator import Aggregator
from tacit.service.federation.coordinator import Coordinator, RoundState
from tacit.service.federation.public_rounds import OPEN
from tacit.service.federation.store import CLOSED, CLOSING, AggregatorStore
from tacit.service.grouped_work import GroupedWork


@dataclass(frozen=True)
class Mutant:
    """A broken variant, and the kills that show it."""

    name: str
    patch: Callable[[], None]
    kills: tuple[Kill, ...]
    said: str  # a part of the complaint
    enough: int | None = None  # reports with which a round closes


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every variant in a process of its own; 1 if one is not caught."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation_mutants")
    names = [one.name for one in MUTANTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--lives", type=int, default=6, help="at most, of each")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        world, uncaught = World.made_in(Path(folder)), 0
        for one in MUTANTS:
            if one.name in asked.only:
                is_caught, found = caught(one, world, asked.lives)
                uncaught += not is_caught
                print(f"{one.name:24} {found}", flush=True)
    return 1 if uncaught else 0


def caught(mutant: Mutant, world: World, lives: int) -> tuple[bool, str]:
    """Whether the checks complain of it, and what they say.

    They run in a process of their own, where the variant is patched in.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        said, code = "", 1
        try:
            mutant.patch()
            found = kill_as(world, mutant.kills, lives=lives, enough=mutant.enough)
            said = "; ".join(found)
            code = 0
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(writer, said.encode()[:4000])
            os._exit(code)
    os.close(writer)
    with open(reader) as pipe:
        told = pipe.read()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise RuntimeError(f"{mutant.name}: {told}")
    is_caught = mutant.said in told
    return is_caught, f"{'caught' if is_caught else 'NOT CAUGHT'}: {told or 'nothing'}"


# --- Variants ------------------------------------------------------------------------


def _noise_drawn_late() -> None:
    published = aggregator.published  # type: ignore[attr-defined]

    def other(halves: Any, *, sigma: int, seed: bytes) -> Any:
        del seed
        return published(halves, sigma=sigma, seed=os.urandom(SECRET_BYTES))

    aggregator.published = other  # type: ignore[attr-defined]


def _sum_not_kept() -> None:
    """The seed is in memory alone, so a process that starts again draws another."""
    seeds: dict[bytes, bytes] = {}
    published = aggregator.published  # type: ignore[attr-defined]
    close = Aggregator.close

    def noisy(halves: Any, *, sigma: int, seed: bytes) -> Any:
        kept = seeds.setdefault(seed, os.urandom(SECRET_BYTES))
        return published(halves, sigma=sigma, seed=kept)

    def anew(
        self: Aggregator, round_id: bytes, chosen: bytes | None = None
    ) -> bytes | None:
        found = close(self, round_id, chosen)
        return None if found is None else self.compute(round_id)

    aggregator.published = noisy  # type: ignore[attr-defined]
    Aggregator.close = anew  # type: ignore[method-assign]
    _noise_kept()  # else nothing could be computed anew
    AggregatorStore._clear_keys = lambda _: None  # type: ignore[method-assign, assignment]


def _noise_kept() -> None:
    def finish(self: Aggregator, round_id: bytes, result: bytes) -> bytes:
        row = self._row(round_id)
        if row.state == CLOSING:
            self.passing("computed")
            with self.store.changing() as file:
                file.execute(
                    "UPDATE rounds SET state = ?, result = ? WHERE id = ?",
                    (CLOSED, result, round_id),
                )
        return result if row.result is None else row.result

    Aggregator.finish = finish  # type: ignore[method-assign]


def _ids_in_their_own_commit() -> None:
    changing = AggregatorStore.changing

    def split(self: AggregatorStore) -> Any:
        return _Split(self, changing(self))

    AggregatorStore.changing = split  # type: ignore[method-assign, assignment]


class _Split:
    """A transaction that leaves rows of `seen` for later."""

    def __init__(self, store: AggregatorStore, whole: Any) -> None:
        self.store, self.whole = store, whole
        self.later: list[tuple[str, list[Any]]] = []

    def __enter__(self) -> Any:
        self.file = self.whole.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        found = self.whole.__exit__(*error)
        if self.later and error[0] is None:
            _die_once()
            with self.store.writing() as file:
                for query, rows in self.later:
                    file.executemany(query, rows)
        return found

    def execute(self, *args: Any) -> Any:
        return self.file.execute(*args)

    def executemany(self, query: str, rows: Any) -> Any:
        if "seen" in query:
            self.later.append((query, [*rows]))
            return None
        return self.file.executemany(query, rows)


def _die_once() -> None:
    """The point between both transactions, where a leader is killed once."""
    path = Path(os.environ["TACIT_STATE"]).parent / "died-between"
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _answers_before_commit() -> None:
    answers, doing = GroupedWork._answers, set()

    async def hasty(self: GroupedWork[Any, Any], group: Any) -> Any:
        task = asyncio.get_running_loop().create_task(answers(self, group))
        doing.add(task)
        task.add_done_callback(doing.discard)
        return [None] * len(group)

    GroupedWork._answers = hasty  # type: ignore[method-assign]


def _batch_named_early() -> None:
    passed_on = Aggregator._passed_on

    def named(self: Aggregator, round_id: bytes, batch_id: bytes, *args: Any) -> Any:
        with self.store.writing() as file:
            file.execute(
                "INSERT INTO batches VALUES (?, ?, ?, ?)",
                (round_id, batch_id, 1, sha256(batch_id).digest()),
            )
        found = passed_on(self, round_id, batch_id, *args)
        with self.store.writing() as file:
            file.execute("DELETE FROM batches WHERE batch = ?", (batch_id,))
        return found

    Aggregator._passed_on = named  # type: ignore[method-assign, assignment]


def _ledger_line_late() -> None:
    def opened(self: Coordinator, row: RoundState) -> float:
        assert row.signed is not None
        for one in (self.leader, self.helper):
            one.open(row.signed)
        self._change(row, OPEN)
        self.run.spend(self.published_run, row.number)
        self.passing("ledger_line")
        return 0.0

    Coordinator._open = opened  # type: ignore[method-assign, assignment]


MUTANTS = (
    Mutant(
        "noise drawn late",
        _noise_drawn_late,
        (Kill(LEADER, "computed"), Kill(HELPER, "computed")),
        "the sum without its noises",
    ),
    Mutant("sum not kept", _sum_not_kept, (Kill(HELPER, HELD),), "ways"),
    Mutant("noise kept", _noise_kept, (Kill(LEADER, "computed"),), "still on the disk"),
    Mutant(
        "ids in their own commit",
        _ids_in_their_own_commit,
        (Kill(LEADER, "between both", time=0),),  # by the variant itself
        "a report is in two of the batches",
    ),
    Mutant(
        "answers before commit",
        _answers_before_commit,
        (Kill(LEADER, "before_put"), Kill(LEADER, "before_commit")),
        "acknowledged and is lost",
        enough=2,
    ),
    Mutant(
        "batch named early",
        _batch_named_early,
        (Kill(LEADER, "after_put"),),
        "a report is in two of the batches",
    ),
    Mutant(
        "ledger line late",
        _ledger_line_late,
        (Kill(COORDINATOR, "ledger_line"),),
        "before its line",
    ),
)

if __name__ == "__main__":
    sys.exit(main())
