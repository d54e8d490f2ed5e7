"""What coordinator and leader may ask of an aggregator, over real HTTP."""

import concurrent.futures
import dataclasses
import json
import time

import pytest
from service.federation.rounds import (
    LIMIT,
    NUMBERS,
    SIGMA,
    http_pair,
    random_reports,
    sealed,
    seed_on_disk,
    signed_by,
)
from service.federation.services import Place
from service.manifests import changed

from tacit.service.federation.aggregator import Limits
from tacit.service.federation.seed_batches import MOST_BATCH_BYTES, SeedBatch
from tacit.service.manifest import attach_signatures
from tacit.service.signed_document import SIGNATURE_BYTES

REPORTS = random_reports(6)
RUN = "00" * 16
PATHS = [
    ("PUT", f"/v1/keys/{RUN}/0"),
    ("POST", "/v1/signatures"),
    ("POST", "/v1/rounds"),
    ("GET", "/v1/rounds/{id}"),
    ("DELETE", "/v1/rounds/{id}"),
    ("POST", "/v1/rounds/{id}/close"),
    ("PUT", "/v1/rounds/{id}/batches/" + "00" * 16),
]


def asked(pair, role, method, path, *, secret="own", content=b"", **headers):
    """An answer; `secret` names the pair whose secret is sent, or is one."""
    url = pair.urls.leader if role == "leader" else pair.urls.helper
    name = role if secret == "own" else secret
    token = (
        pair.place.secret(name).read_text().strip()
        if name in ("leader", "helper", "pair")
        else name
    )
    given = {"authorization": f"Bearer {token}"} if token else {}
    return pair.http.request(
        method, url + path, content=content, headers=given | headers
    )


def kind(found) -> str:
    return found.json()["error"]["kind"]


def batch_of(*reports) -> bytes:
    return SeedBatch({one.report_id: one.for_helper for one in reports}).body()


# --- Who may ask ----------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), PATHS)
@pytest.mark.parametrize("secret", ["", "0" * 64, "leader"])
def test_without_the_secret_of_the_pair_nothing_is_told(pair, method, path, secret):
    """None, a wrong one, and that of another pair."""
    answer = asked(pair, "helper", method, path.format(id=RUN * 2), secret=secret)
    assert (answer.status_code, kind(answer)) == (401, "Unauthorized")


@pytest.mark.parametrize(("method", "path"), PATHS[:-1])
def test_the_leader_may_not_ask_what_the_coordinator_may(pair, method, path):
    answer = asked(pair, "helper", method, path.format(id=RUN * 2), secret="pair")
    assert answer.status_code == 401


def test_the_coordinator_may_not_hand_in_batches_and_a_leader_takes_none(pair):
    method, path = PATHS[-1]
    path = path.format(id=RUN * 2)
    assert asked(pair, "helper", method, path).status_code == 401
    assert asked(pair, "leader", method, path, secret="pair").status_code == 404


def test_reports_do_not_come_in_where_operators_do(pair):
    manifest = pair.open()
    path = f"/v1/rounds/{manifest.round_id.hex()}/reports"
    assert asked(pair, "leader", "POST", path, content=b"x").status_code == 404


def test_another_protocol_is_told_so(pair):
    header = {"tacit-protocol": "9"}
    path = f"/v1/keys/{RUN}/0"
    assert asked(pair, "leader", "PUT", path, **header).status_code == 426


# --- Manifests ------------------------------------------------------------------------


def edited(manifest, **changes) -> bytes:
    """The document with other values, in the one form that it may have."""
    made = json.loads(manifest.document())
    made |= changes
    return json.dumps(made, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"modulus": 2**64},
        {"r": 0},
        {"r": 65536.0},
        {"limit": -1},
        {"v": 2},
        {"sigma": 0},
    ],
)
def test_what_no_manifest_can_say_is_not_signed(pair, changes):
    document = edited(pair.manifest(), **changes)
    answer = asked(pair, "helper", "POST", "/v1/signatures", content=document)
    assert (answer.status_code, kind(answer)) == (400, "BadMessage")


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 60_000, b"\xff" * 100])
def test_what_is_no_manifest_is_not_signed(pair, content):
    answer = asked(pair, "helper", "POST", "/v1/signatures", content=content)
    assert answer.status_code == 400


def test_a_manifest_that_is_too_long_is_not_read(pair):
    content = b" " * (64 * 1024 + 1)
    answer = asked(pair, "helper", "POST", "/v1/signatures", content=content)
    assert answer.status_code == 413


def test_a_round_opens_with_both_signatures_on_these_very_bytes(pair):
    manifest = pair.manifest()
    sent = signed_by(pair.leader, pair.helper, manifest)
    once, rest = sent[:SIGNATURE_BYTES], sent[SIGNATURE_BYTES:]
    hostile = {
        "one signature": bytes(SIGNATURE_BYTES) + rest,
        "the leader's twice": once * 2 + rest[SIGNATURE_BYTES:],
        "swapped": rest[:SIGNATURE_BYTES] + once + rest[SIGNATURE_BYTES:],
        "limit off by one": sent.replace(f"{LIMIT}".encode(), f"{LIMIT + 1}".encode()),
        "other r": sent.replace(b'"r":64', b'"r":63'),
        "less noise": sent.replace(f":{SIGMA}".encode(), f":{SIGMA - 1}".encode()),
        "nothing": b"",
    }
    for name, body in hostile.items():
        answer = asked(pair, "helper", "POST", "/v1/rounds", content=body)
        assert (answer.status_code, kind(answer)) == (403, "Signature"), name
    for _ in range(2):
        answer = asked(pair, "helper", "POST", "/v1/rounds", content=sent)
        assert (answer.status_code, answer.content) == (200, manifest.round_id)


def test_the_coordinator_cannot_show_two_operators_two_rounds(pair):
    """Each has signed one manifest, and neither opens with the other's signature."""
    first = pair.manifest()
    second = changed(first, sigma=SIGMA + 1)
    mine = pair.leader.sign(first.document())
    theirs = pair.helper.sign(second.document())
    for manifest, role in ((first, "helper"), (second, "leader")):
        answer = asked(
            pair, role, "POST", "/v1/signatures", content=manifest.document()
        )
        assert (answer.status_code, kind(answer)) == (403, "Fork")
    for manifest in (first, second):
        sent = attach_signatures(manifest, {"leader": mine, "helper": theirs})
        for role in ("leader", "helper"):
            answer = asked(pair, role, "POST", "/v1/rounds", content=sent)
            assert answer.status_code == 403


def test_limits_of_an_operator_are_told(tmp_path):
    limits = Limits(SIGMA / LIMIT**0.5, least_reports=3, free_bytes=0)
    with http_pair(Place(tmp_path), helper={"limits": limits}) as pair:
        for changes in ({"sigma": SIGMA - 1}, {"least_reports": 2}):
            manifest = pair.manifest(**{"least_reports": 3, **changes})
            pair.leader.sign(manifest.document())  # whose limits are wider
            answer = asked(
                pair, "helper", "POST", "/v1/signatures", content=manifest.document()
            )
            assert (answer.status_code, kind(answer)) == (403, "Limits")
        pair.open(least_reports=3)


# --- Batches --------------------------------------------------------------------------


def put(pair, manifest, body, *, batch="ab" * 16):
    path = f"/v1/rounds/{manifest.round_id.hex()}/batches/{batch}"
    return asked(pair, "helper", "PUT", path, secret="pair", content=body)


def test_a_batch_is_answered_byte_by_byte_and_always_the_same(pair):
    manifest = pair.open()
    good = sealed(manifest, REPORTS[0])
    bad = dataclasses.replace(sealed(manifest, REPORTS[1]), for_helper=bytes(80))
    for _ in range(2):
        assert put(pair, manifest, batch_of(good, bad)).content == b"\x01\x00"
    answer = put(pair, manifest, batch_of(bad, good))
    assert (answer.status_code, kind(answer)) == (409, "OtherBatch")


@pytest.mark.parametrize(
    ("n", "status"),
    [(0, 400), (95, 400), (97, 400), (MOST_BATCH_BYTES + 1, 413)],
)
def test_a_body_that_is_no_batch_is_refused(pair, n, status):
    assert put(pair, pair.open(), bytes(n)).status_code == status


def test_one_id_twice_in_a_batch_is_refused(pair):
    manifest = pair.open()
    body = batch_of(sealed(manifest, REPORTS[0]))
    assert put(pair, manifest, body * 2).status_code == 400


def test_a_seed_of_another_round_does_not_open(pair):
    first, second = pair.open(), pair.open()
    assert put(pair, second, batch_of(sealed(first, REPORTS[0]))).content == b"\x00"


# --- Closing --------------------------------------------------------------------------


def close(pair, manifest, chosen=b"", role="helper"):
    path = f"/v1/rounds/{manifest.round_id.hex()}/close"
    return asked(pair, role, "POST", path, content=chosen)


def closed(pair, manifest, chosen=b"", role="helper"):
    until = time.monotonic() + 20
    while (answer := close(pair, manifest, chosen, role)).status_code == 202:
        assert time.monotonic() < until
        time.sleep(0.01)
    return answer


@pytest.fixture
def batches(pair):
    """A round with three batches; the third has the report of the first again."""
    manifest = pair.open()
    one, two, three = (sealed(manifest, report) for report in REPORTS[:3])
    for i, some in enumerate([[one], [two], [one, three]]):
        put(pair, manifest, batch_of(*some), batch=f"{i:02x}" * 16)
    return manifest


def ids(*numbers: int) -> bytes:
    return b"".join(bytes([n]) * 16 for n in numbers)


@pytest.mark.parametrize(
    ("chosen", "kind_"),
    [
        (ids(0, 0), "BadSet"),
        (ids(1, 0), "BadSet"),
        (ids(0) + b"x", "BadSet"),
        (ids(0, 9), "UnknownBatch"),
        (ids(0, 2), "Twice"),
    ],
)
def test_a_set_of_batches_that_cannot_be_is_refused(pair, batches, chosen, kind_):
    answer = close(pair, batches, chosen)
    assert (answer.status_code, kind(answer)) == (409, kind_)


def test_a_round_is_published_once_with_one_set(pair, batches):
    first = closed(pair, batches, ids(0, 1))
    assert (first.status_code, len(first.content)) == (200, 4 * NUMBERS)
    for other in (ids(0), ids(1, 2), b""):
        answer = close(pair, batches, other)
        assert (answer.status_code, kind(answer)) == (409, "OtherSet")
    assert close(pair, batches, ids(0, 1)).content == first.content
    pair.helper.delete(batches.round_id)
    assert close(pair, batches, ids(0, 1)).status_code == 410


def test_nothing_is_published_of_too_few(pair):
    manifest = pair.open(least_reports=2)
    put(pair, manifest, batch_of(sealed(manifest, REPORTS[0])), batch="00" * 16)
    for chosen in (b"", ids(0)):
        answer = close(pair, manifest, chosen)
        assert (answer.status_code, kind(answer)) == (412, "TooFew")
    assert close(pair, manifest, role="leader").status_code == 412


def test_two_closes_at_once_have_one_noise(pair, batches):
    """Of two sets, one wins and the other is refused; of one set, all are equal."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        sets = [ids(0), ids(1)] * 4
        found = [*pool.map(lambda chosen: close(pair, batches, chosen), sets)]
    statuses = [one.status_code for one in found]
    won = {
        chosen for chosen, status in zip(sets, statuses, strict=True) if status != 409
    }
    assert len(won) == 1
    assert statuses.count(409) == 4
    [chosen] = won
    first = closed(pair, batches, chosen).content
    assert closed(pair, batches, chosen).content == first
    assert seed_on_disk(pair.place.folder / "helper", batches.round_id) is None


def test_closing_and_deleting_at_once_end_in_one_of_the_two(pair):
    """What was published before the deletion is one array, and afterwards none."""
    for _ in range(3):
        manifest = pair.open()
        assert pair.post(manifest, sealed(manifest, REPORTS[0])).status_code == 200
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            closings = [
                pool.submit(closed, pair, manifest, role="leader") for _ in range(3)
            ]
            deletion = pool.submit(pair.leader.delete, manifest.round_id)
            deletion.result()
            answers = [one.result() for one in closings]
        assert {one.status_code for one in answers} <= {200, 410}
        assert len({one.content for one in answers if one.status_code == 200}) <= 1
        assert close(pair, manifest, role="leader").status_code == 410
        assert seed_on_disk(pair.place.folder / "leader", manifest.round_id) is None


def test_reports_and_a_closing_at_once_all_hear_the_truth(pair):
    """Whoever hears 200 is in the sum, whoever hears 409 is not."""
    manifest = pair.open()
    reports = random_reports(30, seed=3)
    made = [sealed(manifest, one) for one in reports]
    assert pair.post(manifest, made[0]).status_code == 200
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        sent = [pool.submit(pair.post, manifest, one) for one in made]
        closing = pool.submit(closed, pair, manifest, role="leader")
        assert closing.result().status_code == 200
        statuses = [one.result().status_code for one in sent]
    assert {*statuses} <= {200, 409}
    counted = [i for i, status in enumerate(statuses) if status == 200]
    assert (pair.plain_sum(manifest) == reports[counted].sum(axis=0)).all()


def test_what_is_not_known_is_told_so(pair):
    for method, path in (
        ("GET", "/v1/rounds/{id}"),
        ("DELETE", "/v1/rounds/{id}"),
        ("POST", "/v1/rounds/{id}/close"),
    ):
        answer = asked(pair, "leader", method, path.format(id=RUN * 2))
        assert (answer.status_code, kind(answer)) == (404, "UnknownRound")
    for path in ("/", "/v1/keys/xx/0", f"/v1/keys/{RUN}/-1", f"/v1/keys/{RUN}/{10**9}"):
        assert asked(pair, "leader", "PUT", path).status_code == 404


def test_a_status_has_a_state_and_a_count(pair):
    manifest = pair.open()
    pair.post(manifest, sealed(manifest, REPORTS[0]))
    for role in ("leader", "helper"):
        answer = asked(pair, role, "GET", f"/v1/rounds/{manifest.round_id.hex()}")
        assert answer.json() == {"state": "open", "reports": 1}
