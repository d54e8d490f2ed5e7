"""A run at a SuperLink, watched from its run directory, stopped and told about.

The rounds are read from the run directory, which is on this machine, and the end of the
run from the SuperLink. A SuperLink that once gives no answer says nothing of the run,
which goes on there, so it is asked again before the watch ends.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tacit.cli import console
from tacit.cli.flower_processes import Flwr
from tacit.documents import read_document, write_document
from tacit.errors import BadRun, Unanswered
from tacit.files import locked
from tacit.text import nth_round

LOOK_SECONDS = 15.0  # between two questions to the SuperLink; each starts a program
RETRY_SECONDS = 3.0  # after a question that got no answer
TRIES = 4  # questions without an answer, until the watch ends
END_SECONDS = 60.0  # for the server of a stopped run to leave its directory


def watched(
    asked: Flwr, number: int, out: Path, *, bar: console.Bar, again: str
) -> dict[str, Any]:
    """What the SuperLink says of a run when it has ended; the bar shows its rounds.

    `again` is the command that goes on with the run.
    """
    known, failed, next_look = 0, 0, time.monotonic() + LOOK_SECONDS
    while True:
        lines = rounds_of(out)
        for line in lines[known:]:
            _tell_round(line, out, bar)
        known = len(lines)
        is_over = (out / "result.json").exists() and not failed
        if is_over or time.monotonic() >= next_look:
            try:
                status = asked.status(number)
            except Unanswered as error:
                failed += 1
                if failed >= TRIES:
                    raise _unheard(asked, number, error, again) from error
                next_look = time.monotonic() + RETRY_SECONDS
            else:
                if str(status["status"]).startswith("finished"):
                    return status
                failed, next_look = 0, time.monotonic() + LOOK_SECONDS
        time.sleep(0.5)


def _tell_round(line: dict[str, Any], out: Path, bar: console.Bar) -> None:
    planned = int(read_document(out / "ledger.json")["rounds_planned"])
    bar.round(line["round"] + 1, planned, line)
    for name, why in line["nodes"]["dropped"].items():
        console.note(f"{nth_round(line['round'])}: {name} did not count: {why}")


def _unheard(asked: Flwr, number: int, error: Unanswered, again: str) -> Unanswered:
    return Unanswered(
        f"the SuperLink at {asked.link.address} gave no answer about run {number}, "
        f"asked {TRIES} times: {error}. If it has ended, start it again with `tacit "
        f"flower up`, and go on from the last checkpoint with: {again}. If it is "
        "there, the run goes on without this command: see `tacit flower status`"
    )


def rounds_of(out: Path) -> list[dict[str, Any]]:
    """The rounds of a run over nodes so far: whole lines of a file that grows."""
    path = out / "metrics.jsonl"
    text = path.read_text("utf-8") if path.exists() else ""
    found: list[dict[str, Any]] = [json.loads(one) for one in text.split("\n")[:-1]]
    if any("nodes" not in line for line in found):
        raise _of_one_machine(out)
    return found


def refuse_other_run(out: Path) -> None:
    """Refuse a run directory that `tacit flower run` did not begin."""
    is_run = (out / "experiment.toml").exists()
    if is_run and not (out / "nodes.json").exists():
        raise _of_one_machine(out)
    rounds_of(out)


def _of_one_machine(out: Path) -> BadRun:
    return BadRun(
        f"{out} is a run on one machine, of `tacit train` or `tacit release`, and no "
        "node has a part in it; give the directory of a run of `tacit flower run`"
    )


def note_started(out: Path, number: int) -> None:
    """Remember the SuperLink's number of the run in this directory."""
    write_document(out / "flower" / "started.json", {"superlink_run": number})


def started(out: Path) -> int:
    """The SuperLink's number of the run in this directory, as it was begun last."""
    path = out / "flower" / "started.json"
    if not path.exists():
        raise BadRun(
            f"{out} has no run that `tacit flower run` has started; give its directory "
            "with --out"
        )
    return int(read_document(path)["superlink_run"])


def stop(asked: Flwr, number: int, out: Path) -> None:
    """Stop a run at its SuperLink, and wait until nobody trains into its directory."""
    asked.stop_run(number)
    ends = time.monotonic() + END_SECONDS
    while time.monotonic() < ends:
        try:
            with locked(out / ".lock"):
                return
        except FileNotFoundError:  # it had not begun to train
            return
        except BlockingIOError:
            time.sleep(0.3)
    raise Unanswered(
        f"run {number} is stopped at {asked.link.address}, and a process still holds "
        f"{out}; wait for it to end before you resume the run"
    )
