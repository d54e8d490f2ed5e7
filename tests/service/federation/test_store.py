"""What an aggregator keeps: keys of one round, rows in no order, nothing of a copy."""

import shutil
import sqlite3
import stat
from contextlib import closing

import pytest
from service.federation.rounds import OVERHEARD, Local, random_reports, sealed

from tacit.errors import Refused
from tacit.service.federation.aggregator import Limits
from tacit.service.federation.store import DELETED, OPEN, VOID, AggregatorStore
from tacit.service.http import Failure

RUN = bytes(range(16))
REPORTS = random_reports(8)


@pytest.fixture
def local(tmp_path):
    made = Local(tmp_path)
    yield made
    made.stop()


def key_files(folder) -> list:
    return sorted(folder.rglob("*.key"))


def send(local, manifest, reports=REPORTS) -> list:
    made = [sealed(manifest, one) for one in reports]
    assert local.admit(manifest, *made) == [200] * len(made)
    return made


# --- Keys -----------------------------------------------------------------------------


def test_a_key_is_a_file_of_its_owner_and_lives_as_long_as_its_round(local, tmp_path):
    manifest = local.open()
    files = key_files(tmp_path)
    assert len(files) == 2
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    names = {one.stem for one in files}
    assert names == {manifest.keys["leader"].hex(), manifest.keys["helper"].hex()}
    send(local, manifest)
    local.close(manifest)
    for one in (local.leader, local.helper):
        one.delete(manifest.round_id)
    assert key_files(tmp_path) == []


def test_a_key_is_the_same_until_its_round_is_over(local):
    first = local.leader.round_key(RUN, 0)
    assert local.leader.round_key(RUN, 0) == first
    assert local.leader.round_key(RUN, 1) != first
    local.start()
    assert local.leader.round_key(RUN, 0) == first


def test_a_round_without_its_key_does_not_open(local, tmp_path):
    manifest = local.manifest()
    for one in (local.leader, local.helper):
        one.sign(manifest.document())
    for path in key_files(tmp_path):
        path.unlink()
    with pytest.raises(Refused, match="key of round 1 is not in"):
        local.leader.store.private_key(manifest.run, 0)
    with pytest.raises(Refused):
        local.leader.store.private_key(bytes(16), 7)


def test_a_service_whose_key_is_lost_starts_and_the_round_is_void(local, tmp_path):
    """An open round without its key cannot be saved; others can."""
    lost, other = local.open(), local.open()
    for one in (local.leader, local.helper):
        (
            tmp_path / one.role.name.lower() / "keys" / f"{own_key(one, lost)}.key"
        ).unlink()
    local.start()
    assert local.leader.status(lost.round_id) == (VOID, 0)
    with pytest.raises(Failure, match="it is void"):
        local.leader.known(lost.round_id)
    send(local, other)
    assert (local.plain_sum(other) == REPORTS.sum(axis=0)).all()


def own_key(aggregator, manifest) -> str:
    keys = {"LEADER": manifest.keys["leader"], "HELPER": manifest.keys["helper"]}
    return keys[aggregator.role.name].hex()


# --- What stays and what goes ---------------------------------------------------------


def test_of_a_deleted_round_a_digest_stays(local):
    manifest = local.open()
    send(local, manifest)
    local.close(manifest)
    local.leader.delete(manifest.round_id)
    row = local.leader.store.round(manifest.round_id)
    assert row.state == DELETED
    assert (row.chosen, row.noise) == (None, None)
    assert len(row.result) == 32
    for table in ("seen", "totals", "batches", "seeds", "used"):
        found = local.leader.store.file.execute(f"SELECT count(*) FROM {table}")
        assert found.fetchone() == (0,), table


@pytest.mark.parametrize("role", ["leader", "helper"])
def test_ids_of_a_deleted_round_are_on_no_disk(local, tmp_path, role):
    manifest = local.open()
    reports = send(local, manifest)
    local.close(manifest)
    canaries = [one.report_id for one in reports]
    before = on_disk(tmp_path / role)
    assert all(one in before for one in canaries)
    getattr(local, role).delete(manifest.round_id)
    after = on_disk(tmp_path / role)
    assert not any(one in after for one in canaries)


@pytest.mark.parametrize("role", ["leader", "helper"])
def test_nothing_on_the_disk_of_a_closed_round_takes_its_noise_off(
    local, tmp_path, role
):
    """Neither seed, halves nor key: a coordinator need not come back to delete them."""
    manifest = local.open()
    reports = send(local, manifest)
    aggregator = getattr(local, role)
    key = aggregator.store.private_key(manifest.run, manifest.round)
    canaries = {"key": key}
    if role == "leader":
        [(canaries["halves"],)] = aggregator.store.file.execute(
            "SELECT halves FROM totals"
        )
    else:
        canaries |= {f"seed {n}": one.for_helper for n, one in enumerate(reports)}
    before = on_disk(tmp_path / role)
    assert all(one in before for one in canaries.values())
    leader, helper = local.close(manifest)
    canaries["noise"] = OVERHEARD[leader.published if role == "leader" else helper]
    after = on_disk(tmp_path / role)
    assert [name for name, one in canaries.items() if one in after] == []
    # What was counted is known still, so that nobody hears another answer.
    assert local.admit(manifest, *reports) == [200] * len(reports)
    assert local.close(manifest) == (leader, helper)


@pytest.mark.parametrize("role", ["leader", "helper"])
def test_a_key_that_a_closed_round_has_again_is_deleted_at_the_start(
    local, tmp_path, role
):
    """A disk may lose a deletion, and a backup has what was deleted."""
    manifest = local.open()
    send(local, manifest)
    [path] = (tmp_path / role / "keys").glob("*.key")
    content = path.read_bytes()
    local.close(manifest)
    assert not path.exists()
    path.write_bytes(content)
    local.start()
    assert not path.exists()


def test_a_live_copy_that_was_put_back_voids_what_is_open(local, tmp_path):
    """Also one that was made while the round was open: it lacks counted reports."""
    manifest = local.open()
    send(local, manifest, REPORTS[:1])
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(copy)) as file:
        local.leader.store.file.backup(file)
    send(local, manifest, REPORTS[1:2])
    local.leader.store.close()
    for path in (tmp_path / "leader").glob("aggregator.db*"):
        path.unlink()
    copy.rename(tmp_path / "leader" / "aggregator.db")
    local.start()
    assert local.leader.status(manifest.round_id) == (VOID, 0)


def test_a_round_that_nobody_asks_for_is_void_a_month_after_its_window(local, tmp_path):
    manifest = local.open()
    send(local, manifest)
    local.now = manifest.closes + Limits(1.0).most_wait
    for one in (local.leader, local.helper):
        one.expire()
        assert one.status(manifest.round_id)[0] == OPEN
    local.now += 1
    for one in (local.leader, local.helper):
        one.expire()
        assert one.status(manifest.round_id) == (VOID, 0)
    assert not [*tmp_path.glob("*/keys/*.key")]


def on_disk(folder) -> bytes:
    return b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file())


@pytest.mark.parametrize(
    ("role", "table"), [("leader", "seen"), ("helper", "seeds"), ("leader", "batches")]
)
def test_rows_lie_in_the_order_of_random_ids(local, role, table):
    """So the order on the disk does not tell who came first."""
    manifest = local.open()
    arrived = []
    for one in REPORTS:
        [report] = send(local, manifest, [one])
        arrived.append(report.report_id)
    store = getattr(local, role).store
    [(made,)] = store.file.execute(
        "SELECT sql FROM sqlite_master WHERE name = ?", (table,)
    )
    assert "WITHOUT ROWID" in made
    # Ids of batches are as random as those of reports.
    columns = {"seen": "report", "seeds": "batch, report", "batches": "batch"}[table]
    found = store.file.execute(f"SELECT {columns} FROM {table}").fetchall()
    assert found == sorted(found)
    if table != "batches":
        assert sorted(row[-1] for row in found) == sorted(arrived)


def test_the_seeds_of_a_batch_are_found_without_a_look_at_all_others(tmp_path):
    """With 50,000 reports in 800 batches, half a minute of a processor otherwise."""
    store = AggregatorStore(tmp_path / "own", "helper")
    query = "SELECT report, sealed FROM seeds WHERE round = ? AND batch = ?"
    plan = store.file.execute(f"EXPLAIN QUERY PLAN {query}", (b"", b"")).fetchall()
    store.close()
    assert "(round=? AND batch=?)" in plan[0][-1]


def test_no_table_has_a_time_or_an_address(local):
    known = {"id", "run", "number", "document", "state", "chosen", "noise", "result"}
    known |= {"public", "round", "report", "halves", "reports", "batch", "digest"}
    known |= {"sealed", "ticket", "role", "starts", "head", "total", "link"}
    file = local.leader.store.file
    for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        columns = {row[1] for row in file.execute(f"PRAGMA table_info({table})")}
        assert columns <= known, table


# --- Copies ---------------------------------------------------------------------------


def test_a_restored_copy_voids_what_is_not_deleted(local):
    done, open_ = local.open(), local.open()
    send(local, done)
    local.close(done)
    local.leader.delete(done.round_id)
    local.start(leader=True)
    assert local.leader.status(done.round_id)[0] == DELETED
    assert local.leader.status(open_.round_id) == (VOID, 0)
    local.start()
    assert local.leader.status(open_.round_id) == (VOID, 0)


def test_killed_before_it_has_voided_a_copy_voids_at_the_next_start(
    local, tmp_path, monkeypatch
):
    manifest = local.open()
    local.stop()

    def killed(self, file, known):
        raise KeyboardInterrupt

    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "another machine"))
    with monkeypatch.context() as patch:
        patch.setattr(AggregatorStore, "void", killed)
        with pytest.raises(KeyboardInterrupt):
            AggregatorStore(tmp_path / "helper", "helper")
    local.start()
    assert local.helper.status(manifest.round_id) == (VOID, 0)


@pytest.mark.parametrize("when", ["key", "signed", "open", "closing"])
def test_a_helper_put_back_from_any_backup_never_draws_a_second_noise(
    local, tmp_path, when
):
    """The leader has kept all sealed seeds and asks for another sum of them."""
    helper = tmp_path / "helper"
    manifest = local.manifest()

    def kept(point):
        if point == when:
            local.stop()
            shutil.copytree(helper, tmp_path / "backup")
            local.start()

    kept("key")
    document = manifest.document()
    signatures = [one.sign(document) for one in (local.leader, local.helper)]
    kept("signed")
    sent = b"".join(signatures) + document
    for role in ("leader", "helper"):
        getattr(local, role).open(sent)
    kept("open")
    reports = send(local, manifest)
    kept("closing")
    first = local.close(manifest)
    assert first[1] == local.close(manifest)[1]
    local.stop()
    shutil.rmtree(helper)
    shutil.copytree(tmp_path / "backup", helper)
    local.start()
    helper, body = local.helper, b"".join(r.report_id + r.for_helper for r in reports)
    attempts = [
        lambda: helper.sign(document),
        lambda: helper.open(sent),
        lambda: helper.take(manifest.round_id, bytes(16), body),
        lambda: helper.close(manifest.round_id, bytes(16)),
    ]
    for attempt in attempts:
        with pytest.raises(Failure) as found:
            attempt()
        assert found.value.status in (403, 404, 410)
    assert helper.round_key(manifest.run, 0) != manifest.keys["helper"]
