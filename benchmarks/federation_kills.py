"""`python -m benchmarks.federation_kills [--times 1000]`: nothing is lost or doubled.

Leader, helper, coordinator and a client of a real federation are killed with SIGKILL,
at named points and at random moments, several of them in one life of two rounds
(`federation_lives`), and started again. After each life `federation_checks` has what
must hold: among all else, what both aggregators published, without their noises, is in
every number the sum of exactly the reports that were counted.

Every named point of every role that was asked for is hit at least once, or the exit
code is 1. A process that is killed keeps what it has written, so the files are in
memory where that is possible (`/dev/shm`); a power cut is another matter, for which
there is `synchronous = FULL`.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.federation_checks import problems
from benchmarks.federation_lives import POINTS, Kill, Life, World

AT_ONCE = (3, 6)  # kills in a life, at least and at most
LATER = 1.05  # usual lives that a killer waits for at most
MOMENT = "a random moment"
_MEMORY = Path("/dev/shm")
_FUTILE = 40  # lives in a row in which nobody was killed: something is wrong


@dataclass
class Tally:
    """Who was killed where, and what was wrong."""

    lives: int = 0
    kills: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All kills."""
        return self.kills.total()


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill as often as asked, print a table; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation_kills")
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--roles", nargs="+", choices=POINTS, default=[*POINTS])
    asked = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        world = World.made_in(Path(folder))
        tally = kill(world, asked.roles, times=asked.times, seed=asked.seed)
    seconds = time.monotonic() - began
    print(table(tally, asked.roles))
    print(
        f"{tally.total} kills in {tally.lives} lives, {len(tally.wrong)} wrong, "
        f"{seconds:.0f} s"
    )
    missed = unhit(tally, asked.roles)
    for line in (*tally.wrong, *(f"never killed: {one}" for one in missed)):
        print(f"WRONG: {line}")
    return 1 if tally.wrong or missed else 0


def kill(world: World, roles: Sequence[str], *, times: int, seed: int) -> Tally:
    """So many kills in as many lives as it takes."""
    draws, tally = random.Random(seed), Tally()
    usual = _usual(world, draws, tally)
    waiting = [*_drawn(roles, times, draws)]
    futile = 0
    while waiting:
        some = _some(waiting, draws.randint(*AT_ONCE))
        waiting = [*(Counter(waiting) - Counter(some)).elements()]
        life = _played(world, draws, tally, sorted(some, key=_when), usual)
        left = Counter(some) - Counter(life.fired)
        # Those whose turn did not come, in another life and earlier.
        waiting += [replace(k, time=1, share=k.share / 2) for k in left.elements()]
        futile = 0 if life.fired else futile + 1
        if futile == _FUTILE:
            tally.wrong.append(f"{len(waiting)} kills never came to pass")
            break
    return tally


def kill_as(
    world: World, kills: Sequence[Kill], *, lives: int, enough: int | None = None
) -> list[str]:
    """What is wrong with the first life that is not right, of so many with the same."""
    draws, tally = random.Random(0), Tally()
    while tally.lives < lives and not tally.wrong:
        _played(world, draws, tally, [*kills], 1.0, enough)
    return tally.wrong


def _played(
    world: World,
    draws: random.Random,
    tally: Tally,
    kills: list[Kill],
    usual: float,
    enough: int | None = None,
) -> Life:
    """One life and what is wrong with it; its files are deleted."""
    folder = world.folder / f"life-{tally.lives}"
    told = ", ".join(f"{one.role} {one.point or f'{one.share:.2f}'}" for one in kills)
    life = Life(world, folder, draws.randrange(2**32), [*kills], usual, enough)
    life.play()
    tally.lives += 1
    for one in life.fired:
        tally.kills[one.role, one.point or MOMENT] += 1
    tally.wrong += [f"{folder.name} ({told}): {one}" for one in problems(life)]
    shutil.rmtree(folder)
    return life


def _usual(world: World, draws: random.Random, tally: Tally) -> float:
    """Seconds of a life in which nobody is killed."""
    began = time.monotonic()
    _played(world, draws, tally, [], 1.0)
    return time.monotonic() - began


def _drawn(roles: Sequence[str], times: int, draws: random.Random) -> Iterator[Kill]:
    """Every point once, as far as `times` goes, then points and moments by chance."""
    points = [(role, point) for role in roles for point in POINTS[role]]
    draws.shuffle(points)
    for number in range(times):
        if number < len(points):
            yield Kill(*points[number])
        elif draws.random() < 0.5:
            yield Kill(draws.choice(roles), share=LATER * draws.random())
        else:
            yield Kill(*draws.choice(points), time=draws.choice([1, 1, 2]))


def _some(waiting: Sequence[Kill], n: int) -> list[Kill]:
    """The next kills, no two of one role at one point."""
    found: dict[tuple[str, str | None], Kill] = {}
    for one in waiting:
        if len(found) < n:
            found.setdefault((one.role, one.point), one)
    return [*found.values()]


def _when(one: Kill) -> int:
    """Who of a role is killed first: those who are to die at an earlier point."""
    return 0 if one.point is None else 1 + POINTS[one.role].index(one.point)


def unhit(tally: Tally, roles: Sequence[str]) -> list[str]:
    """Points at which nobody was killed, though there were kills enough for all."""
    points = [(role, point) for role in roles for point in POINTS[role]]
    if tally.total < len(points):
        return []
    return [
        f"{role} at {point}" for role, point in points if not tally.kills[role, point]
    ]


def table(tally: Tally, roles: Sequence[str]) -> str:
    """How often each role was killed at each point."""
    rows = [
        f"{role:12} {point:18} {tally.kills[role, point]:5}"
        for role in roles
        for point in (*POINTS[role], MOMENT)
    ]
    return "\n".join([f"{'role':12} {'killed at':18} {'kills':>5}", *rows])


def memory() -> str | None:
    """A folder in memory, if this system has one."""
    return str(_MEMORY) if _MEMORY.is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
