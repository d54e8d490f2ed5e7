"""One device's file: what is kept, what is refused, what is forgotten."""

import os
import sqlite3
import stat
from math import ceil

import pytest
from dp_accounting import GaussianDpEvent
from ledger.small import (
    BARE,
    alike,
    bare,
    each,
    gaussian,
    in_every_round,
    in_turn,
    local,
    response,
    whole,
)

from tacit.accounting.calibration import gaussian_epsilon
from tacit.errors import BadData, Refused
from tacit.ledger.budget import Cap, spent
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import Refusal
from tacit.ledger.terms import Terms
from tacit.release import Unit, View

SERVER = Unit.USER, View.SERVER


@pytest.fixture
def ledger(tmp_path):
    with ClientLedger(tmp_path / "ledger.db") as made:
        made.join("run", gaussian(5.0, most=30), state=b"state 0")
        yield made


def answer(
    ledger, round_, *, run="run", asked=b"broadcast", report=b"report", multiplier=None
):
    """Take part in a round; the bytes to be sent, or None."""
    if not ledger.permits(run, round_, asked=asked, multiplier=multiplier):
        return None
    state = f"after {round_}".encode()
    return ledger.keep(run, round_, report=report, state=state)


def reasons(ledger) -> dict[str, int]:
    return {reason: times for _, reason, times, _ in ledger.refusals()}


# --- Rounds --------------------------------------------------------------------------


def test_the_entry_comes_first_and_then_report_and_state_together(ledger):
    assert ledger.permits("run", 3, asked=b"broadcast")
    assert [entry.round for entry in ledger.entries()] == [3]
    assert ledger.answer("run", 3).report is None
    assert ledger.pending() == []
    ledger.keep("run", 3, report=b"report", state=b"after 3")
    [entry] = ledger.entries()
    assert (entry.run, entry.round, entry.release.what) == ("run", 3, "reports")
    assert entry.release.seen_by == "server"
    said = ledger.answer("run", 3)
    assert (said.report, said.sent) == (b"report", None)
    assert ledger.joined("run").state == b"after 3"
    assert ledger.spent(SERVER, delta=1e-6).value > 0


def fail_half_way(ledger, round_):
    with ledger.transaction():
        assert ledger.permits("run", round_, asked=b"broadcast")
        ledger.keep("run", round_, report=b"report", state=b"torn")
        raise ZeroDivisionError


def test_what_fails_half_way_was_never_said(ledger):
    with pytest.raises(ZeroDivisionError):
        fail_half_way(ledger, 3)
    assert ledger.entries() == []
    assert ledger.answer("run", 3) is None
    assert ledger.joined("run").state == b"state 0"
    assert answer(ledger, 3) == b"report"


def test_the_first_error_is_the_one_that_is_told(ledger):
    """On a full disk SQLite has ended the transaction already."""

    def fail():
        with ledger.transaction():
            ledger._file.execute("ROLLBACK")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert answer(ledger, 0) == b"report"


def test_a_round_is_answered_once(ledger):
    answer(ledger, 0)
    with pytest.raises(Refused, match="round 1 of 'run' was answered before"):
        ledger.permits("run", 0, asked=b"another")
    assert len(ledger.entries()) == 1


def test_the_first_report_of_a_round_is_the_one_that_is_kept(ledger):
    """Two processes may both have computed; one of them has the word."""
    ledger.permits("run", 0, asked=b"broadcast")
    assert (
        ledger.keep("run", 0, report=b"one", state=b"s1", before=b"state 0") == b"one"
    )
    assert (
        ledger.keep("run", 0, report=b"two", state=b"s2", before=b"state 0") == b"one"
    )
    assert ledger.answer("run", 0).report == b"one"
    assert ledger.joined("run").state == b"s1"


def test_state_moves_only_on_from_where_it_was(ledger):
    """Another round may have been kept; a contribution of nothing has none."""
    for round_ in range(3):
        ledger.permits("run", round_, asked=b"broadcast")
    ledger.keep("run", 0, report=b"nothing")
    assert ledger.joined("run").state == b"state 0"
    ledger.keep("run", 1, report=b"one", state=b"s1", before=b"state 0")
    ledger.keep("run", 2, report=b"two", state=b"s2", before=b"state 0")
    assert ledger.joined("run").state == b"s1"


def test_what_was_forgotten_meanwhile_is_not_kept(ledger):
    ledger.permits("run", 0, asked=b"broadcast")
    ledger.forget(keep_ledger=True)
    assert ledger.keep("run", 0, report=b"report", state=b"s") is None
    assert ledger.answer("run", 0).report is None


def test_questions_are_told_apart(ledger):
    answer(ledger, 0, asked=b"one")
    answer(ledger, 1, asked=b"one")
    answer(ledger, 2, asked=b"two")
    first, again, other = (ledger.answer("run", r).asked for r in range(3))
    assert first == again != other


def test_what_has_not_arrived_is_pending(ledger):
    answer(ledger, 0, report=b"zero")
    answer(ledger, 1, report=b"one")
    ledger.delivered("run", 0)
    assert [(a.round, a.report) for a in ledger.pending()] == [(1, b"one")]
    arrived = ledger.answer("run", 0).sent
    ledger.delivered("run", 0)
    assert ledger.answer("run", 0).sent == arrived
    with pytest.raises(Refused, match="nothing was said in round 8 of run"):
        ledger.delivered("run", 7)


def test_every_release_of_a_participation_is_an_entry(tmp_path):
    releases = (alike("a", each(GaussianDpEvent(9.0))), alike("b", BARE))
    with ClientLedger(tmp_path / "x") as ledger:
        ledger.join("run", Terms(releases), state=b"")
        answer(ledger, 0)
        assert [entry.release.what for entry in ledger.entries()] == ["a", "b"]


def test_a_release_is_an_entry_in_the_rounds_that_have_it(tmp_path):
    with ClientLedger(tmp_path / "x") as ledger:
        ledger.join("run", in_turn(2, 9), state=b"")
        for round_ in (1, 2, 5):
            answer(ledger, round_)
        assert [(e.round, e.release.what) for e in ledger.entries()] == [
            *((1, "counts"), (2, "updates"), (5, "updates")),
        ]
        expected = spent([(in_turn(2, 9), [1, 2, 5])], SERVER, delta=1e-6)
        assert ledger.spent(SERVER, delta=1e-6) == expected


def test_a_run_that_was_joined_before_rounds_were_told_is_counted_as_agreed(tmp_path):
    old = in_every_round(in_turn(2, 9))
    with ClientLedger(tmp_path / "x") as ledger:
        ledger.join("run", old, state=b"")
        answer(ledger, 5)
    with ClientLedger(tmp_path / "x") as ledger:
        assert [entry.release.what for entry in ledger.entries()] == [
            *("counts", "updates"),
        ]
        both = gaussian_epsilon((1 / 2.0**2 + 1 / 3.0**2) ** -0.5, delta=1e-6)
        assert ledger.spent(SERVER, delta=1e-6).value == pytest.approx(both, rel=1e-6)


def test_it_is_all_there_after_opening_again(ledger):
    ledger.set_cap(Cap(4.0))
    answer(ledger, 0)
    with ClientLedger(ledger.path, create=False) as again:
        assert again.entries() == ledger.entries()
        assert again.taken() == [(gaussian(5.0, most=30), [0])]
        assert again.caps() == [Cap(4.0)]
        assert again.joined("run") == ledger.joined("run")
        assert again.runs() == {"run": gaussian(5.0, most=30)}


def test_another_process_waits_for_the_transaction(ledger):
    other = sqlite3.connect(ledger.path, timeout=0.05, isolation_level=None)
    with (
        ledger.transaction(),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE")
    other.close()


# --- Refusals ------------------------------------------------------------------------


def test_it_refuses_before_the_cap_is_passed(ledger):
    ledger.set_cap(Cap(4.0, 1e-6))
    said = [answer(ledger, r) for r in range(20)]
    assert [one is not None for one in said] == [True] * 17 + [False] * 3
    assert ledger.spent(SERVER, delta=1e-6).value <= 4.0
    assert reasons(ledger) == {Refusal.CAP: 3}
    assert len(ledger.entries()) == 17


def test_runs_share_the_cap(ledger):
    ledger.join("other", gaussian(5.0, most=30), state=b"")
    ledger.set_cap(Cap(4.0, 1e-6))
    said = [answer(ledger, r // 2, run=("run", "other")[r % 2]) for r in range(20)]
    assert sum(one is not None for one in said) == 17
    passed = ledger.excess("run", [9])
    assert passed.this_run < 4.0 < passed.all_runs
    assert str(passed).startswith(f"all runs count {ceil(passed.all_runs * 100) / 100}")
    assert ledger.allowance("run") == (0, passed)


def test_what_a_cap_leaves_and_what_comes_next_is_what_happens(ledger):
    for epsilon in (0.5, 4.0):
        ledger.set_cap(Cap(epsilon, 1e-6))
        left, passed = ledger.allowance("run")
        first = len(ledger.entries())
        said = [answer(ledger, r) for r in range(first, first + left + 1)]
        assert [one is not None for one in said] == [True] * left + [False]
        assert passed == ledger.excess("run", [first + left])
        assert passed.all_runs == passed.this_run > epsilon
    assert ledger.allowance("run", target=[Cap(0.1)])[1].is_target
    ledger.remove_cap(SERVER)
    assert ledger.allowance("run") == (30 - 17, None)


def test_what_nothing_bounds_has_no_figure(ledger):
    ledger.join("bare", bare(), state=b"")
    ledger.set_cap(Cap(4.0))
    assert "nothing bounds what is said in the server's view; your cap is 4" in str(
        ledger.excess("bare", [0])
    )


def test_a_cap_that_was_passed_already_lets_nothing_out(ledger):
    answer(ledger, 0)
    ledger.set_cap(Cap(0.01))
    assert answer(ledger, 1) is None
    ledger.set_cap(Cap(100.0))  # the owner may change their mind
    assert answer(ledger, 1) is not None
    assert ledger.remove_cap(SERVER)
    assert not ledger.remove_cap(SERVER)


def test_it_takes_part_as_often_as_agreed(tmp_path):
    """One report a run, however often the server asks."""
    terms = Terms(local(GaussianDpEvent(5.0)).releases, rounds=10, most=1)
    with ClientLedger(tmp_path / "x") as ledger:
        ledger.join("run", terms, state=b"")
        assert [answer(ledger, r) is None for r in range(3)] == [False, True, True]
        assert reasons(ledger) == {Refusal.TOO_OFTEN: 2}


@pytest.mark.parametrize("round_", [30, 31, 2**62])
def test_a_round_after_the_last_is_refused(ledger, round_):
    """The account of what is published covers the rounds planned and no more."""
    assert answer(ledger, round_) is None
    assert reasons(ledger) == {Refusal.TOO_LATE: 1}


def test_a_refusal_costs_nothing_and_cannot_fill_the_disk(ledger):
    for round_ in range(100, 130):
        answer(ledger, round_)
    assert len(ledger.refusals()) == 1
    assert ledger.entries() == []


def test_a_run_that_was_never_joined(ledger):
    with pytest.raises(Refused, match="run 'x' was never joined"), ledger.transaction():
        ledger.permits("x", 0, asked=b"")


def chosen(total=1.0, *, rounds=9) -> Terms:
    """A run whose noise is chosen as it goes; it amounts to one release of `total`."""
    release = alike("sums", whole(GaussianDpEvent(total)))
    return Terms((release,), rounds, rounds, total_multiplier=total)


def test_a_run_of_chosen_noise_is_answered_until_its_budget_is_spent(tmp_path):
    """1 / z² adds up to 1: a half, a quarter, then another half does not fit."""
    with ClientLedger(tmp_path / "x") as ledger:
        ledger.join("run", chosen(), state=b"")
        half, quarter = 2.0**0.5, 2.0
        noises = [half, quarter, half, quarter, 99.0]
        said = [answer(ledger, r, multiplier=z) for r, z in enumerate(noises)]
        assert [one is not None for one in said] == [True, True, False, True, False]
        assert reasons(ledger) == {Refusal.BUDGET: 2}
        assert ledger.answer("run", 1).multiplier == quarter
        one = gaussian_epsilon(1.0, delta=1e-6)
        assert ledger.spent(SERVER, delta=1e-6).value == pytest.approx(one)
    with ClientLedger(tmp_path / "x") as again:
        assert answer(again, 5, multiplier=99.0) is None


def test_a_round_of_unknown_noise_is_refused_where_noise_is_chosen(tmp_path):
    with ClientLedger(tmp_path / "x") as ledger:
        ledger.join("run", chosen(), state=b"")
        assert answer(ledger, 0) is None
        assert reasons(ledger) == {Refusal.BUDGET: 1}
        assert answer(ledger, 0, multiplier=9.0) is not None


# --- Forgetting ----------------------------------------------------------------------


SECRET = b"a private state that must not stay"


def holds(path, secret: bytes) -> bool:
    return any(secret in p.read_bytes() for p in path.parent.iterdir())


def test_forgetting_keeps_the_account_and_erases_the_rest(ledger):
    ledger.set_cap(Cap(9.0))
    answer(ledger, 0, report=SECRET)
    before = ledger.spent(SERVER, delta=1e-6)
    assert holds(ledger.path, SECRET)
    assert holds(ledger.path, b"after 0")
    ledger.forget(keep_ledger=True)
    assert not holds(ledger.path, SECRET)
    assert not holds(ledger.path, b"after 0")
    assert ledger.spent(SERVER, delta=1e-6) == before
    assert ledger.caps() == [Cap(9.0)]
    assert ledger.pending() == []
    assert answer(ledger, 1) is None
    assert reasons(ledger) == {Refusal.LEFT: 1}
    assert len(ledger.entries()) == 1


def test_forgetting_everything_leaves_nothing(ledger):
    answer(ledger, 0, report=SECRET)
    ledger.set_cap(Cap(9.0))
    answer(ledger, 99)
    ledger.forget(keep_ledger=False)
    assert not holds(ledger.path, SECRET)
    assert not holds(ledger.path, b"reports")  # the terms are gone too
    assert ledger.entries() == ledger.caps() == ledger.refusals() == []
    assert ledger.runs() == {}


# --- The file ------------------------------------------------------------------------


def test_it_is_for_its_owner_alone(ledger):
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_a_commit_is_on_the_disk(ledger):
    """EXTRA also waits for the directory, so the journal is gone for good."""
    settings = {
        name: ledger._file.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("synchronous", "journal_mode", "secure_delete", "foreign_keys")
    }
    assert settings == {
        "synchronous": 3,
        "journal_mode": "delete",
        "secure_delete": 1,
        "foreign_keys": 1,
    }


def test_a_file_that_is_not_there_is_made_only_if_wanted(tmp_path):
    with pytest.raises(BadData, match=r"none\.db: no such file"):
        ClientLedger(tmp_path / "none.db", create=False)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("create", [True, False])
def test_another_file_is_refused_and_left_as_it_is(tmp_path, create):
    text, database = tmp_path / "text", tmp_path / "database"
    text.write_text("a letter to a friend, longer than a header" * 9)
    other = sqlite3.connect(database)
    other.execute("CREATE TABLE letters (text)")
    other.close()
    for path in (text, database):
        before = path.read_bytes()
        with pytest.raises(BadData, match="not a client's ledger"):
            ClientLedger(path, create=create)
        assert path.read_bytes() == before


def test_another_format_is_refused(ledger):
    ledger._file.execute("PRAGMA user_version = 9")
    with pytest.raises(BadData, match="has format 9; this program reads 3"):
        ClientLedger(ledger.path)


def test_two_that_make_it_at_once_make_one(tmp_path):
    """Both see an empty file; the second finds the tables there."""
    children = []
    for _ in range(4):
        child = os.fork()
        if not child:
            ClientLedger(tmp_path / "x").close()
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4


def test_no_guarantee_is_no_figure(tmp_path):
    with ClientLedger(tmp_path / "x") as ledger:
        ledger.join("run", bare(), state=b"")
        ledger.join("more", response(), state=b"")
        answer(ledger, 0, run="more")
        assert ledger.spent(SERVER, delta=1e-6).value < 0.11
        answer(ledger, 0)
        assert ledger.spent(SERVER, delta=1e-6).value is None
