"""docs/walk.md: the order in which a run enters the code, and how often."""

import re
import sys
from collections import Counter
from pathlib import Path
from types import CodeType

import pytest
import tomli_w
from quick import some_of

import tacit
from tacit.cli.app import main

PAGE = Path(__file__).parents[1] / "docs" / "walk.md"
STEP = re.compile(r"^\| (\d+) \| `(\S+)` `(\S+)` \| (?:the same|`(\S+)` `(\S+)`) \|")
OFTEN = re.compile(r"^\| [a-zA-Z ]+ \| `(\S+)` `(\S+)` \| (\d+) \| (\d+) \|")
ROOT = Path(tacit.__file__).parent

EXPERIMENT = {
    "data": {
        "source": "synthetic",
        "split": "new-users",
        "validation": 20,
        "test": 20,
        "world": {"users": 120, "items": 40, "events_per_user": 8.0},
    },
    "privacy": {
        "mechanism": "central",
        "channel": "secure_sum",
        "target_epsilon": 4.0,
        "delta": 1e-5,
    },
    "run": {"seed": 0, "rounds": 2},
    "evaluate": {"metrics": ["ndcg@10"], "baselines": ["popularity"]},
}
METHODS = {
    "gram": {"name": "gram", "count_rounds": 1},
    "fedvae": {"name": "fedvae", "hidden": [4], "latent": 2},
}


def steps(method: str) -> list[tuple[str, str]]:
    """The functions of the page's table, as (file, qualified name)."""
    found = [m.groups() for m in map(STEP.match, PAGE.read_text().splitlines()) if m]
    assert [int(number) for number, *_ in found] == list(range(1, len(found) + 1))
    own = method == "fedvae"
    return [(c, d) if own and c else (a, b) for _, a, b, c, d in found]


def often(method: str) -> dict[tuple[str, str], int]:
    """How often the page says that a run calls some functions."""
    found = [m.groups() for m in map(OFTEN.match, PAGE.read_text().splitlines()) if m]
    built = {"gram": "Gram", "fedvae": "FedVae"}[method]
    names = {"methods/*.py": f"methods/{method}.py"}
    return {
        (names.get(file, file), f"{built}.{name}" if file in names else name): int(
            times[[*METHODS].index(method)]
        )
        for file, name, *times in found
    }


def entered(method: str, out: Path, monkeypatch) -> Counter[tuple[str, str]]:
    """How often a training enters functions, in the order in which it first does."""
    calls: Counter[CodeType] = Counter()

    def note(frame, event, _):
        if event == "call":
            calls[frame.f_code] += 1

    file = out / "experiment.toml"
    file.write_text(tomli_w.dumps({**EXPERIMENT, "method": METHODS[method]}))
    monkeypatch.setattr(
        sys, "argv", ["tacit", "train", str(file), "--out", f"{out}/run"]
    )
    sys.setprofile(note)
    with pytest.raises(SystemExit) as done:
        main()
    sys.setprofile(None)
    assert not done.value.code
    seen: Counter[tuple[str, str]] = Counter()
    for code, times in calls.items():
        file = Path(code.co_filename)
        if file.is_relative_to(ROOT):
            seen[file.relative_to(ROOT).as_posix(), code.co_qualname] += times
        elif file.parent.name == "tomllib":
            seen["tomllib", code.co_qualname] += times
    return seen


@pytest.mark.parametrize("method", some_of([*METHODS], 1))
def test_a_run_enters_the_functions_of_the_page_in_its_order_and_as_often(
    method, tmp_path, monkeypatch
):
    walk = steps(method)
    seen = entered(method, tmp_path, monkeypatch)
    assert [step for step in walk if step not in seen] == []
    assert [step for step in seen if step in walk] == walk
    told = often(method)
    assert len(told) == 9
    assert {function: seen[function] for function in told} == told


@pytest.mark.parametrize("method", METHODS)
def test_the_walk_is_short(method):
    assert 30 <= len(steps(method)) <= 50
