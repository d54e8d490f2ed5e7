"""Who leaves gets out, whatever state the files and the ledger are in."""

import shutil

import pytest
from service.federation.test_client import HISTORIES, PLAN, POPULAR, WORLD, join
from service.federation.two_operators import TwoOperators, invitation_of

from tacit.errors import BadRun, Refused
from tacit.ledger.durable import ClientLedger
from tacit.service.federation import client_folder
from tacit.service.federation.client import FederationClient, Kind
from tacit.service.federation.client_folder import ClientFolder
from tacit.service.federation.leaving import leave

TICKET = bytes(range(16))


@pytest.fixture(scope="module")
def world():
    made = invitation_of("federated_popularity", POPULAR, PLAN, WORLD.catalog)
    with TwoOperators(made).running() as found:
        found.open()
        yield found


@pytest.fixture
def folder(world, tmp_path):
    """A client whose report waits to be sent."""
    found = tmp_path / "client"
    join(found, world, HISTORIES[4], ticket=TICKET)
    with FederationClient(found, spread=1000.0) as client:
        assert client.once().kind is Kind.WAITING
        assert client.show().waiting == 1
    return found


def assert_gone(folder, world) -> None:
    """Nothing private is left: no history, no key, no ticket, no sealed report."""
    assert {one.name for one in folder.iterdir()} <= {"ledger.db", "lock"}
    report = world.rounds[0].manifest.round_id
    for file in folder.iterdir():
        raw = file.read_bytes()
        assert report not in raw
        assert TICKET not in raw
        assert TICKET.hex().encode() not in raw
        for item in HISTORIES[4]:
            assert item.encode() not in raw
    with pytest.raises(BadRun, match="holds no client"):
        FederationClient(folder)


def test_the_account_stays_and_the_run_is_not_answered_again(world, folder):
    left = leave(folder)
    assert (left.n_items, left.never_sent, left.rounds) == (len(HISTORIES[4]), 1, 1)
    assert any(line.epsilon for line in left.spent)
    assert left.problems == []
    assert_gone(folder, world)
    with pytest.raises(Refused, match="has left run"):
        join(folder, world, HISTORIES[4])
    assert world.bodies == []
    with pytest.raises(BadRun, match="holds no client"):
        leave(folder)


def test_a_ledger_that_is_lost_keeps_nobody(world, folder):
    (folder / "ledger.db").unlink()
    with pytest.raises(Refused):
        FederationClient(folder)
    left = leave(folder)
    assert left.n_items == len(HISTORIES[4])
    assert (left.never_sent, left.rounds, left.spent) == (None, None, ())
    [problem] = left.problems
    assert "no such file" in problem
    assert_gone(folder, world)


def test_a_ledger_in_doubt_keeps_nobody(world, folder, tmp_path):
    """It was put back from a backup: its reports are erased, and it stays in doubt."""
    copy = tmp_path / "copy"
    shutil.copy(folder / "ledger.db", copy)
    with ClientLedger(folder / "ledger.db") as ledger:
        ledger.finish(world.invitation.run.hex(), 0, arrived=True)
    shutil.copy(copy, folder / "ledger.db")
    left = leave(folder)
    assert (left.never_sent, left.rounds) == (1, None)
    assert all(line.epsilon is None for line in left.spent)
    [problem] = left.problems
    assert "is in doubt" in problem
    assert_gone(folder, world)
    with ClientLedger(folder / "ledger.db") as ledger:
        assert ledger.doubt is not None


def test_a_ledger_that_is_no_ledger_is_named_with_what_to_do(world, folder):
    (folder / "ledger.db").write_bytes(b"harmed" * 1000)
    left = leave(folder)
    [problem] = left.problems
    assert f"tacit ledger forget {folder / 'ledger.db'}" in problem
    assert_gone(folder, world)


@pytest.mark.parametrize("name", ["client.json", "invitation", "history.json"])
@pytest.mark.parametrize("how", ["harmed", "lost"])
def test_files_that_cannot_be_read_are_erased_unread(world, folder, name, how):
    if how == "lost":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(b"{}")
    left = leave(folder)
    assert left.problems
    assert left.never_sent == 1
    assert (left.n_items is None) == (name == "history.json")
    assert_gone(folder, world)


def test_a_ledger_for_several_runs_loses_no_other_run(world, tmp_path):
    """Of a run that cannot be named nothing is erased there, and that is said."""
    folder, ledger = tmp_path / "client", tmp_path / "mine.db"
    join(folder, world, HISTORIES[4], ledger=ledger)
    (folder / "invitation").write_bytes(b"harmed")
    before = ledger.read_bytes()
    left = leave(folder)
    assert "which run it was could not be read" in left.problems[-1]
    assert ledger.read_bytes() == before
    assert_gone(folder, world)


def test_cut_off_it_goes_on(world, folder, monkeypatch):
    """The history goes first, and what tells that a client is here goes last."""

    def broken(*_):
        raise OSError("no more")

    (folder / "model").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(client_folder, "remove_directory", broken)
        with pytest.raises(OSError, match="no more"):
            leave(folder)
    assert not (folder / "history.json").exists()
    assert ClientFolder(folder).is_joined
    leave(folder)
    assert_gone(folder, world)
