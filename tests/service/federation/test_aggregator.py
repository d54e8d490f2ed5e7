"""Leader and helper without HTTP: what they sign, count, choose and publish."""

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from service.federation.rounds import (
    HELPER,
    LEADER,
    LIMIT,
    LIMITS,
    NUMBERS,
    OVERHEARD,
    SIGMA,
    SIGNING,
    Local,
    closed,
    random_reports,
    sealed,
    signed_by,
)
from service.manifests import changed

from tacit.errors import BadValue
from tacit.exact_sum import Noise
from tacit.service.federation.aggregator import (
    Limits,
    Tally,
    Upload,
)
from tacit.service.federation.sealing import Role
from tacit.service.federation.seed_batches import SeedBatch
from tacit.service.federation.store import CLOSED, CLOSING, OPEN, VOID
from tacit.service.federation.tickets import ticket_digest
from tacit.service.http import Failure
from tacit.service.manifest import attach_signatures
from tacit.service.signed_document import signature
from tacit.service.signing import Signer
from tacit.system_errors import DiskError
from tacit.transport.shared_sum import from_bytes, modulo, stream

REPORTS = random_reports(7)
DAY = 86_400


@pytest.fixture
def local(tmp_path):
    made = Local(tmp_path)
    yield made
    made.stop()


def refused(work, status: int, kind: str) -> None:
    with pytest.raises(Failure) as found:
        work()
    assert (found.value.status, found.value.kind) == (status, kind)


def batch_of(*reports) -> bytes:
    return SeedBatch({one.report_id: one.for_helper for one in reports}).body()


# --- What is signed -------------------------------------------------------------------

EXACT = Limits(
    SIGMA / LIMIT**0.5,
    least_reports=10,
    most_reports=100,
    least_window=60,
    most_window=3000,
    most_numbers=NUMBERS,
    free_bytes=0,
)
WITHIN = {"least_reports": 10, "most_reports": 100}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"sigma": SIGMA - 1}, "sigma"),
        ({"limit": LIMIT + 50}, "sigma"),
        ({"least_reports": 9}, "n_min"),
        ({"most_reports": 101}, "n_max"),
        ({"opens": 1000, "closes": 1059}, "the window"),
        ({"opens": 500, "closes": 1052}, "the rest of the window"),
        ({"opens": 3000, "closes": 4001}, "the time until it closes"),
        ({"numbers": NUMBERS + 1}, "d is"),
    ],
)
def test_an_operator_signs_up_to_its_limits_and_no_further(local, changes, name):
    base = changed(local.manifest(**WITHIN), opens=1000, closes=1060)
    EXACT.check(base, now=1000)
    EXACT.check(replace(base, closes=4000), now=1000)
    EXACT.check(replace(base, opens=500, closes=1053), now=1000)
    with pytest.raises(Failure, match=f"does not sign it: .*{name}") as found:
        EXACT.check(changed(base, **changes), now=1000)
    assert (found.value.status, found.value.kind) == (403, "Limits")


def test_all_passed_limits_are_named_at_once(local):
    far = changed(local.manifest(**WITHIN), sigma=1, least_reports=1, most_reports=999)
    with pytest.raises(Failure, match=r"sigma .*; n_min .*; n_max "):
        EXACT.check(far, now=far.opens)


@pytest.mark.parametrize(
    "changes",
    [
        {"least_multiplier": 0.0},
        {"least_reports": 0},
        {"most_reports": 0},
        {"least_window": -1},
        {"free_bytes": -1},
    ],
)
def test_limits_that_cannot_be_are_refused(changes):
    with pytest.raises(BadValue):
        Limits(**{"least_multiplier": 1.0, **changes})


def test_a_signer_is_one_of_two_operators():
    with pytest.raises(BadValue, match="that of none of leader, helper"):
        Signer(bytes([13]) * 32, {"leader": LEADER, "helper": HELPER})
    with pytest.raises(BadValue, match="they are one operator"):
        Signer(SIGNING[Role.LEADER], {"leader": LEADER, "helper": LEADER})


@pytest.mark.parametrize("role", ["leader", "helper"])
def test_a_round_with_a_key_that_is_not_its_own_is_not_signed(local, role):
    manifest = changed(local.manifest(), **{f"{role}_key": bytes([7]) * 32})
    refused(lambda: getattr(local, role).sign(manifest.document()), 403, "Key")


def test_a_signed_round_that_nobody_opened_is_planned_anew_after_its_window(local):
    first = local.manifest()
    sent = signed_by(local.leader, local.helper, first)
    local.now = first.closes + 1
    second = replace(first, opens=int(local.now), closes=int(local.now) + 600)
    both = signed_by(local.leader, local.helper, second)
    refused(lambda: local.helper.open(sent), 403, "Unsigned")
    assert local.helper.open(both) == second.round_id
    local.now = second.closes + 1
    third = replace(second, closes=second.closes + 1000)
    refused(lambda: local.helper.sign(third.document()), 403, "Fork")


@pytest.mark.parametrize(
    "keys", [(Role.LEADER, Role.LEADER), (Role.HELPER, Role.HELPER)]
)
def test_one_signature_opens_nothing(local, keys):
    manifest = local.manifest()
    for one in (local.leader, local.helper):
        one.sign(manifest.document())
    leader, helper = (signature(manifest, SIGNING[role]) for role in keys)
    sent = attach_signatures(manifest, {"leader": leader, "helper": helper})
    for one in (local.leader, local.helper):
        refused(lambda one=one: one.open(sent), 403, "Signature")


def test_a_round_that_this_operator_has_not_signed_is_not_opened(local):
    """Even with its signature, which an earlier disk may have given."""
    manifest = local.manifest()
    parts = {
        name: signature(manifest, SIGNING[role])
        for name, role in (("leader", Role.LEADER), ("helper", Role.HELPER))
    }
    refused(
        lambda: local.helper.open(attach_signatures(manifest, parts)), 403, "Unsigned"
    )


# --- What is counted ------------------------------------------------------------------


def test_a_report_that_was_counted_is_acknowledged_again(local):
    manifest = local.open()
    reports = [sealed(manifest, one) for one in REPORTS]
    assert local.admit(manifest, *reports) == [200] * 7
    assert local.admit(manifest, *reports[:3]) == [200] * 3
    local.start()
    assert local.admit(manifest, *reports) == [200] * 7
    assert local.leader.status(manifest.round_id) == (OPEN, 7)
    assert (local.plain_sum(manifest) == REPORTS.sum(axis=0)).all()


def test_one_id_twice_in_a_batch_counts_once_and_both_hear_the_same(local):
    manifest = local.open()
    first = sealed(manifest, REPORTS[0])
    again = sealed(manifest, REPORTS[1], report_id=first.report_id)
    assert local.admit(manifest, first, again, first) == [200] * 3
    assert (local.plain_sum(manifest) == REPORTS[0]).all()
    broken = replace(sealed(manifest, REPORTS[0]), for_helper=bytes(80))
    other = local.open()
    assert local.admit(other, broken, broken) == [400, 400]


@pytest.mark.parametrize("half", ["for_leader", "for_helper"])
@pytest.mark.parametrize("content", ["zeros", "ones", "flipped"])
def test_a_broken_half_is_refused_alone(local, half, content):
    """A point of small order, too, must not spoil the batch of everybody else."""
    manifest = local.open()
    whole = sealed(manifest, REPORTS[0])
    sent = getattr(whole, half)
    broken = {
        "zeros": bytes(len(sent)),
        "ones": b"\x01" + bytes(len(sent) - 1),
        "flipped": sent[:-1] + bytes([sent[-1] ^ 1]),
    }[content]
    bad = replace(sealed(manifest, REPORTS[1]), **{half: broken})
    assert local.admit(manifest, whole, bad) == [200, 400]
    assert (local.plain_sum(manifest) == REPORTS[0]).all()


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_reports_are_counted_than_the_sum_can_hold(local, most):
    manifest = local.open(most_reports=most)
    reports = [sealed(manifest, one) for one in REPORTS[:4]]
    assert local.admit(manifest, *reports) == [200] * most + [409] * (4 - most)
    assert local.admit(manifest, reports[0], reports[-1]) == [200, 409]
    assert (local.plain_sum(manifest) == REPORTS[:most].sum(axis=0)).all()


@pytest.mark.parametrize(
    ("seconds", "status"), [(-DAY, 200), (-1, 200), (0, 409), (1, 409), (DAY, 409)]
)
def test_the_window_ends_by_the_leaders_clock(local, seconds, status):
    manifest = local.open()
    counted, late = (sealed(manifest, one) for one in REPORTS[:2])
    assert local.admit(manifest, counted) == [200]
    local.now = manifest.closes + seconds
    assert local.admit(manifest, counted, late) == [200, status]


def test_after_closing_the_counted_are_acknowledged_and_the_late_are_not(local):
    manifest = local.open()
    counted, late = (sealed(manifest, one) for one in REPORTS[:2])
    local.admit(manifest, counted)
    assert local.leader.close(manifest.round_id) is None  # closing
    assert local.admit(manifest, counted, late) == [200, 409]
    assert (local.plain_sum(manifest) == REPORTS[0]).all()
    assert local.admit(manifest, counted, late) == [200, 409]
    local.leader.delete(manifest.round_id)
    assert local.admit(manifest, counted, late) == [410, 410]


def test_while_the_helper_is_away_nothing_is_counted_and_the_same_bytes_count_later(
    local,
):
    manifest = local.open(opens=int(local.now) - 10, closes=int(local.now) + 8000)
    reports = [sealed(manifest, one) for one in REPORTS]
    local.is_helper_away = True
    for _ in range(60):  # an hour, a batch every minute
        assert local.admit(manifest, *reports) == [503] * 7
        local.now += 60
    assert local.leader.status(manifest.round_id) == (OPEN, 0)
    local.is_helper_away = False
    assert local.admit(manifest, *reports) == [200] * 7
    assert (local.plain_sum(manifest) == REPORTS.sum(axis=0)).all()


def test_an_orphan_batch_at_the_helper_is_never_in_the_sum(local, monkeypatch):
    """The leader dies after the helper has the batch and before its own commit."""
    manifest = local.open()
    reports = [sealed(manifest, one) for one in REPORTS]

    def dies(point):
        if point == "before_commit":
            raise KeyboardInterrupt

    monkeypatch.setattr(local.leader, "passing", dies)
    with pytest.raises(KeyboardInterrupt):
        local.admit(manifest, *reports)
    assert local.helper.status(manifest.round_id) == (OPEN, 7)
    local.start()
    assert local.leader.status(manifest.round_id) == (OPEN, 0)
    assert local.admit(manifest, *reports) == [200] * 7
    assert (local.plain_sum(manifest) == REPORTS.sum(axis=0)).all()


@pytest.mark.parametrize("role", ["leader", "helper"])
def test_on_a_full_disk_nothing_is_half_kept(local, role):
    manifest = local.open()
    reports = [sealed(manifest, one) for one in random_reports(120)]
    file = getattr(local, role).store.file
    [(pages,)] = file.execute("PRAGMA page_count")
    file.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskError):
        local.admit(manifest, *reports)
    assert local.leader.status(manifest.round_id) == (OPEN, 0)
    file.execute("PRAGMA max_page_count = 1000000")
    assert local.admit(manifest, *reports) == [200] * 120
    expected = random_reports(120).sum(axis=0)
    assert (local.plain_sum(manifest) == expected).all()


def test_a_disk_that_is_nearly_full_is_told_before_anything_is_passed_on(local):
    manifest = local.open()
    local.leader.limits = replace(LIMITS, free_bytes=2**62)
    assert local.admit(manifest, sealed(manifest, REPORTS[0])) == [503]
    assert local.helper.status(manifest.round_id) == (OPEN, 0)
    local.helper.limits = replace(LIMITS, free_bytes=2**62)
    body = batch_of(sealed(manifest, REPORTS[0]))
    refused(lambda: local.helper.take(manifest.round_id, bytes(16), body), 503, "Disk")


def test_a_batch_of_a_full_disk_is_there_whole_or_not_at_all_after_a_restart(local):
    manifest = local.open()
    report = sealed(manifest, REPORTS[0])
    local.admit(manifest, report)
    local.start()
    query = "SELECT halves, reports FROM totals"
    [(halves, n)] = local.leader.store.file.execute(query)
    assert n == 1
    seed = report.opened(Role.HELPER, private(local.helper, manifest))
    own = from_bytes(halves, NUMBERS) + stream(seed, NUMBERS)
    assert (own.view(np.int32) == REPORTS[0]).all()


def private(aggregator, manifest) -> bytes:
    return aggregator.store.private_key(manifest.run, manifest.round)


# --- Tickets --------------------------------------------------------------------------


@pytest.fixture
def ticketed(local):
    local.limits = replace(LIMITS, needs_tickets=True)
    local.start()
    with local.leader.store.writing() as file:
        rows = [(ticket_digest(one),) for one in (b"aa" * 16, b"bb" * 16)]
        file.executemany("INSERT INTO tickets VALUES (?)", rows)
    return local


def test_a_report_needs_a_ticket_of_this_operator(ticketed):
    manifest = ticketed.open()
    report = sealed(manifest, REPORTS[0])
    assert ticketed.admit(manifest, report) == [401]
    assert ticketed.admit(manifest, report, ticket=b"cc" * 16) == [401]
    assert ticketed.admit(manifest, report, ticket=b"AA" * 16) == [200]
    assert ticketed.admit(manifest, report) == [200]  # counted already


def test_a_ticket_reports_once_in_a_round_and_again_in_the_next(ticketed):
    ticket = b"aa" * 16
    first, second = ticketed.open(), ticketed.open()
    reports = [sealed(first, one) for one in REPORTS[:3]]
    assert ticketed.admit(first, *reports, ticket=ticket) == [200, 403, 403]
    ticketed.start()
    assert ticketed.admit(first, *reports, ticket=ticket) == [200, 403, 403]
    assert ticketed.admit(first, reports[1], ticket=b"bb" * 16) == [200]
    assert ticketed.admit(second, sealed(second, REPORTS[0]), ticket=ticket) == [200]


def test_a_ticket_is_not_used_up_by_a_report_that_was_not_counted(ticketed):
    manifest, ticket = ticketed.open(), b"aa" * 16
    report = sealed(manifest, REPORTS[0])
    ticketed.is_helper_away = True
    assert ticketed.admit(manifest, report, ticket=ticket) == [503]
    ticketed.is_helper_away = False
    broken = replace(sealed(manifest, REPORTS[1]), for_helper=bytes(80))
    assert ticketed.admit(manifest, broken, ticket=ticket) == [400]
    assert ticketed.admit(manifest, report, ticket=ticket) == [200]


# --- What the helper takes ------------------------------------------------------------


def test_a_batch_sent_again_gets_the_same_answer_and_another_one_none(local):
    manifest = local.open()
    good, other = (sealed(manifest, one) for one in REPORTS[:2])
    bad = replace(sealed(manifest, REPORTS[2]), for_helper=bytes(80))
    take, batch = local.helper.take, b"b" * 16
    assert take(manifest.round_id, batch, batch_of(good, bad)) == b"\x01\x00"
    assert take(manifest.round_id, batch, batch_of(good, bad)) == b"\x01\x00"
    local.start()
    take = local.helper.take
    assert take(manifest.round_id, batch, batch_of(good, bad)) == b"\x01\x00"
    for body in (batch_of(good, other), batch_of(bad, good), batch_of(good)):
        refused(lambda b=body: take(manifest.round_id, batch, b), 409, "OtherBatch")


@pytest.mark.parametrize("body", [b"", bytes(95), bytes(97), bytes(96 * 513)])
def test_what_is_no_batch_is_refused(local, body):
    manifest = local.open()
    take = local.helper.take
    refused(lambda: take(manifest.round_id, bytes(16), body), 400, "BadMessage")


def test_one_id_twice_in_a_batch_is_no_batch(local):
    manifest = local.open()
    one = batch_of(sealed(manifest, REPORTS[0]))
    take = local.helper.take
    refused(lambda: take(manifest.round_id, bytes(16), one * 2), 400, "BadMessage")


def test_after_closing_the_helper_takes_no_batch(local):
    manifest = local.open()
    local.admit(manifest, sealed(manifest, REPORTS[0]))
    local.close(manifest)
    body = batch_of(sealed(manifest, REPORTS[1]))
    take = local.helper.take
    refused(lambda: take(manifest.round_id, bytes(16), body), 409, "Closed")
    local.helper.delete(manifest.round_id)
    refused(lambda: take(manifest.round_id, bytes(16), body), 410, "Gone")


# --- What is chosen -------------------------------------------------------------------


@pytest.fixture
def chosen(local):
    """A round with three batches, the third with a report of the first one again."""
    manifest = local.open()
    reports = [sealed(manifest, one) for one in REPORTS[:3]]
    bodies = [batch_of(reports[0]), batch_of(reports[1]), batch_of(*reports[::2])]
    for i, body in enumerate(bodies):
        local.helper.take(manifest.round_id, bytes([i]) * 16, body)
    return manifest


def ids(*numbers: int) -> bytes:
    return b"".join(bytes([n]) * 16 for n in numbers)


@pytest.mark.parametrize(
    ("batches", "kind"),
    [
        (ids(0, 0), "BadSet"),
        (ids(1, 0), "BadSet"),
        (ids(0)[:-1], "BadSet"),
        (ids(0, 9), "UnknownBatch"),
        (ids(0, 2), "Twice"),
        (ids(0, 1, 2), "Twice"),
    ],
)
def test_a_set_that_would_count_twice_or_is_unknown_is_refused(
    local, chosen, batches, kind
):
    refused(lambda: local.helper.close(chosen.round_id, batches), 409, kind)
    assert local.helper.status(chosen.round_id)[0] == OPEN


def test_another_set_than_the_first_is_refused_for_ever(local, chosen):
    first = closed(local.helper, chosen.round_id, ids(0, 1))
    for other in (ids(0), ids(1, 2), ids(), ids(1, 0)):
        refused(lambda o=other: local.helper.close(chosen.round_id, o), 409, "OtherSet")
    local.start()
    refused(lambda: local.helper.close(chosen.round_id, ids(0)), 409, "OtherSet")
    assert local.helper.close(chosen.round_id, ids(0, 1)) == first


@pytest.mark.parametrize("least", [3, 4])
def test_fewer_reports_than_the_minimum_are_not_published(local, least):
    manifest = local.open(least_reports=least)
    local.admit(manifest, *(sealed(manifest, one) for one in REPORTS[:3]))
    if least == 3:
        local.close(manifest)
        return
    batches = b"".join(
        one for (one,) in local.helper.store.file.execute("SELECT batch FROM batches")
    )
    refused(lambda: local.leader.close(manifest.round_id), 412, "TooFew")
    refused(lambda: local.helper.close(manifest.round_id, batches), 412, "TooFew")
    refused(lambda: local.helper.close(manifest.round_id, b""), 412, "TooFew")
    for one in (local.leader, local.helper):
        assert one.store.round(manifest.round_id).noise is None


def test_a_round_that_is_not_open_cannot_be_closed(local):
    manifest = local.manifest()
    local.leader.sign(manifest.document())
    refused(lambda: local.leader.close(manifest.round_id), 409, "NotOpen")
    refused(lambda: local.leader.close(bytes(32)), 404, "UnknownRound")


# --- What is published ----------------------------------------------------------------


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), n=st.integers(1, 20))
def test_neither_order_nor_grouping_of_batches_matters(local, data, n):
    """What is published less the noises is the plain sum, in every number."""
    manifest = local.open()  # a run of its own
    reports = random_reports(n, seed=n)
    made = [sealed(manifest, one) for one in reports]
    order = data.draw(st.permutations(range(n)))
    cuts = sorted(data.draw(st.sets(st.integers(0, n), max_size=4)) | {0, n})
    for start, end in pairwise(cuts):
        some = [made[i] for i in order[start:end]]
        assert local.admit(manifest, *some, *some[:2]) == [200] * (
            len(some) + len(some[:2])
        )
    assert (local.plain_sum(manifest) == reports.sum(axis=0)).all()


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31)])
def test_numbers_wrap_around_and_nothing_else_happens(local, value):
    manifest = local.open()
    reports = np.full((2, NUMBERS), value, np.int64)
    local.admit(manifest, *(sealed(manifest, one) for one in reports))
    expected = reports.sum(axis=0).astype(np.uint32).view(np.int32)
    assert (local.plain_sum(manifest) == expected).all()


@pytest.mark.parametrize("state", [CLOSING, CLOSED])
def test_after_a_restart_the_same_is_published(local, state):
    manifest = local.open()
    local.admit(manifest, *(sealed(manifest, one) for one in REPORTS))
    assert local.leader.close(manifest.round_id) is None
    first = local.leader.compute(manifest.round_id)
    if state == CLOSED:
        local.leader.finish(manifest.round_id, first)
    local.start()
    assert local.leader.status(manifest.round_id) == (state, 7)
    assert closed(local.leader, manifest.round_id) == first
    assert local.leader.finish(manifest.round_id, b"another") == first


def test_noise_of_two_rounds_and_two_operators_is_never_the_same(local):
    seeds = set()
    for _ in range(3):
        manifest = local.open()
        local.admit(manifest, sealed(manifest, REPORTS[0]))
        leader, helper = local.close(manifest)
        seeds |= {OVERHEARD[leader.published], OVERHEARD[helper]}
    assert len(seeds) == 6


@pytest.mark.parametrize("state", [OPEN, CLOSING])
def test_deleted_before_it_was_closed_a_round_is_void_for_ever(local, state):
    """Also if its sum was being computed when it was deleted."""
    manifest = local.open()
    local.admit(manifest, sealed(manifest, REPORTS[0]))
    leader = local.leader
    if state == CLOSING:
        leader.close(manifest.round_id)
        made = leader.compute(manifest.round_id)
    leader.delete(manifest.round_id)
    leader.delete(manifest.round_id)
    assert leader.status(manifest.round_id) == (VOID, 0)
    if state == CLOSING:
        refused(lambda: leader.finish(manifest.round_id, made), 410, "Gone")
    refused(lambda: leader.close(manifest.round_id), 410, "Gone")
    refused(lambda: leader.known(manifest.round_id), 410, "Gone")
    sent = signed_by_both(manifest)
    refused(lambda: leader.open(sent), 410, "Gone")


def signed_by_both(manifest) -> bytes:
    leader, helper = (signature(manifest, SIGNING[role]) for role in Role)
    return attach_signatures(manifest, {"leader": leader, "helper": helper})


def test_a_round_that_was_void_is_not_signed_again_with_other_numbers(local):
    manifest = local.open()
    local.leader.delete(manifest.round_id)
    local.now = manifest.closes + 1
    other = replace(manifest, opens=int(local.now), closes=int(local.now) + 60)
    refused(lambda: local.leader.sign(other.document()), 403, "Fork")


def test_a_sum_is_computed_beside_batches_of_another_round(local):
    first, second = local.open(), local.open()
    for manifest in (first, second):
        local.admit(manifest, *(sealed(manifest, one) for one in REPORTS))
    local.leader.close(first.round_id)
    made = []
    thread = threading.Thread(
        target=lambda: made.append(local.leader.compute(first.round_id))
    )
    thread.start()
    local.admit(second, sealed(second, REPORTS[0]))
    thread.join()
    assert local.leader.finish(first.round_id, made[0]) == made[0]


# --- A malicious peer -----------------------------------------------------------------


def test_whoever_picks_one_victim_sees_the_report_and_one_full_noise(tmp_path):
    """The leader and all other clients against one user, for the honest helper's sum.

    The leader knows every half but the victim's seed's stream, so it is left with the
    victim's numbers and the helper's noise. False alarm 1e-9 if drawn anew; a deviation
    5% too small is seen with probability 0.9999 (chi-square of 20,000 numbers).
    """
    numbers, sigma, rounds = 5000, 50, 4
    local = Local(tmp_path, limits=Limits(0.01, free_bytes=0))
    seen = []
    for _ in range(rounds):
        manifest = local.open(numbers=numbers, sigma=sigma)
        victim = random_reports(1, numbers=numbers, seed=5)[0]
        report = sealed(manifest, victim)
        own = report.opened(Role.LEADER, private(local.leader, manifest))
        local.helper.take(manifest.round_id, b"v" * 16, batch_of(report))
        sent = closed(local.helper, manifest.round_id, b"v" * 16)
        found = from_bytes(sent, numbers) + from_bytes(own, numbers)
        seen.append(found.view(np.int32).astype(np.int64) - victim)
    local.stop()
    noise = np.concatenate(seen)
    n, statistic = len(noise), float((noise**2).sum()) / (sigma**2 + 1 / 12)
    low, high = chi2.ppf([0.5e-9, 1 - 0.5e-9], n)
    assert low < statistic < high
    assert chi2.cdf(low / 0.95**2, n) > 0.9999  # the power that the docstring states
    assert abs(noise.mean()) < 6.2 * sigma / n**0.5


def test_the_same_victim_again_sees_no_second_noise(local):
    """Two sets with the victim, or one set twice: the second noise is never drawn."""
    manifest = local.open()
    report = sealed(manifest, REPORTS[0])
    others = [sealed(manifest, one) for one in REPORTS[1:3]]
    for name, some in ((b"a", [report]), (b"b", [report, *others]), (b"c", others)):
        local.helper.take(manifest.round_id, name * 16, batch_of(*some))
    first = closed(local.helper, manifest.round_id, b"a" * 16)
    for name in (b"b" * 16, b"a" * 16 + b"c" * 16):
        refused(
            lambda s=name: local.helper.close(manifest.round_id, s), 409, "OtherSet"
        )
    assert {local.helper.close(manifest.round_id, b"a" * 16) for _ in range(3)} == {
        first
    }


def test_both_together_open_every_report(local):
    """The standing of the two operators in collusion is NONE, and this is why."""
    manifest = local.open()
    report = sealed(manifest, REPORTS[0])
    half = report.opened(Role.LEADER, private(local.leader, manifest))
    seed = report.opened(Role.HELPER, private(local.helper, manifest))
    whole = from_bytes(half, NUMBERS) + stream(seed, NUMBERS)
    assert (whole.view(np.int32) == REPORTS[0]).all()


def test_a_half_is_never_on_the_leaders_disk(local, tmp_path):
    """What lies there is a sum; of one report alone it would be the half itself."""
    manifest = local.open(numbers=64)
    reports = [sealed(manifest, one) for one in random_reports(5, numbers=64)]
    local.admit(manifest, *reports)
    key = private(local.leader, manifest)
    files = [one for one in (tmp_path / "leader").rglob("*") if one.is_file()]
    disk = b"".join(one.read_bytes() for one in files)
    for one in reports:
        half = one.opened(Role.LEADER, key)
        assert half not in disk
        assert half[:16] not in disk
        assert one.for_leader not in disk
        assert one.for_leader[32:64] not in disk
        assert one.for_helper not in disk


# --- Details --------------------------------------------------------------------------


def test_the_noise_of_a_round_is_that_of_its_stored_seed(local):
    manifest = local.open()
    local.admit(manifest, *(sealed(manifest, one) for one in REPORTS))
    [(halves,)] = local.leader.store.file.execute("SELECT halves FROM totals")
    local.leader.close(manifest.round_id)
    seed = local.leader.store.round(manifest.round_id).noise
    leader, _ = local.close(manifest)
    noise = modulo(Noise(seed).draw(SIGMA**2, NUMBERS))
    found = from_bytes(leader.published, NUMBERS)
    assert (found == from_bytes(halves, NUMBERS) + noise).all()


def test_a_tally_keeps_the_last_commits_and_no_more():
    tally = Tally()
    for _ in range(300):
        tally.commit(0.0, 1.0)
    assert (len(tally.commits), tally.batches) == (256, 300)


def test_an_upload_shows_neither_report_nor_ticket_in_its_text(local):
    report = sealed(local.manifest(), REPORTS[0])
    assert report.report_id.hex() not in repr(Upload(report))
    assert "for_leader" not in repr(Upload(report))
