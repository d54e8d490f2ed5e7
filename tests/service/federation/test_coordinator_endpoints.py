"""What everybody may fetch, what an operator may ask, and counts that name nobody."""

import hashlib
import json
import time

import httpx
import pytest
from service.federation.rounds import sealed
from service.federation.services import in_thread
from service.federation.test_coordinator import World as Aggregated
from service.federation.test_coordinator import votes

from tacit.service.federation.coordinator import CoordinatorSchedule
from tacit.service.federation.coordinator_endpoints import floored
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.sealing import SumFields
from tacit.service.federation.services import serve_coordinator
from tacit.service.manifest import read_manifest


class World:
    """A coordinator that waits for its operator's word, over HTTP."""

    def __init__(self, place, urls, run, rotation, public, private) -> None:
        self.place, self.urls, self.run, self.rotation = place, urls, run, rotation
        self.public = httpx.Client(base_url=public, timeout=20)
        secret = place.secret("own").read_text().strip()
        headers = {"authorization": f"Bearer {secret}"}
        self.own = httpx.Client(base_url=private, timeout=20, headers=headers)

    def status(self) -> dict:
        return self.own.get("/v1/status").json()

    def until(self, look):
        end = time.monotonic() + 30
        while not look(self.status()):
            assert time.monotonic() < end, self.status()
            time.sleep(0.02)

    def open(self) -> bytes:
        """The open round's signed manifest."""
        assert self.own.post("/v1/open").status_code == 202
        self.until(
            lambda told: told["rounds"] and told["rounds"][-1]["state"] == "open"
        )
        return self.public.get("/v1/manifest").content

    def manifest(self, sent):
        made = self.run.invitation
        return read_manifest(
            sent, SumFields, {"leader": made.leader, "helper": made.helper}
        )

    def send(self, manifest, n: int) -> list[str]:
        """The ids of so many reports that were counted."""
        made = [sealed(manifest, one) for one in votes(n)]
        url = f"{self.urls.reports}/v1/rounds/{manifest.round_id.hex()}/reports"
        for one in made:
            assert self.public.post(url, content=one.body()).status_code == 200
        return [one.report_id.hex() for one in made]


@pytest.fixture
def world(pair, tmp_path):
    place, urls, rotation = pair.place, pair.urls, tmp_path / "rotations"
    settings = place.coordinator(
        folder=tmp_path / "coordinator",
        leader_url=urls.leader,
        helper_url=urls.helper,
        reports_url=urls.reports,
        rotation=rotation,
        schedule=CoordinatorSchedule(poll=0.02, window=600, by_hand=True),
    )
    run = Aggregated(place, urls, tmp_path).run  # one of its own
    with in_thread(serve_coordinator, settings, run) as own:
        found = World(place, urls, run, rotation, own["public"], own["private"])
        yield found
        for one in (found.public, found.own):
            one.close()


def test_before_a_round_there_is_an_invitation_and_nothing_else(world):
    answer = world.public.get("/v1/invitation")
    assert Invitation.decode(answer.content).digest == world.run.invitation.digest
    tag = answer.headers["etag"]
    again = world.public.get("/v1/invitation", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    for path in ("manifest", "model", "candidates", "rotation", "manifest/" + "0" * 64):
        assert world.public.get(f"/v1/{path}").status_code == 404, path
    assert world.public.get("/v1/broadcast/" + "0" * 64).status_code == 404
    assert "set-cookie" not in answer.headers


def test_new_signing_keys_are_there_once_their_file_is(world):
    world.rotation.write_bytes(b"rotations")
    assert world.public.get("/v1/rotation").content == b"rotations"


def test_an_open_round_is_signed_and_names_what_clients_are_sent(world):
    sent = world.open()
    manifest = world.manifest(sent)
    path = f"/v1/broadcast/{manifest.broadcast.hex()}"
    answer = world.public.get(path)
    assert hashlib.sha256(answer.content).digest() == manifest.broadcast
    assert "immutable" in answer.headers["cache-control"]
    answer = world.public.get("/v1/manifest")
    assert answer.headers["etag"] == f'"{manifest.round_id.hex()}"'
    assert world.public.get(f"/v1/manifest/{manifest.round_id.hex()}").content == sent


def test_only_the_operator_is_answered_and_not_where_clients_come_in(world):
    asked = [("GET", "/v1/status")]
    asked += [("POST", f"/v1/{one}") for one in ("open", "close", "publish", "retire")]
    for method, path in asked:
        for secret in ("none", world.place.secret("leader").read_text().strip()):
            headers = {"authorization": f"Bearer {secret}"}
            answer = world.own.request(method, path, headers=headers)
            assert answer.status_code == 401, path
        headers = dict(world.own.headers)
        answer = world.public.request(method, path, headers=headers)
        assert answer.status_code == 404, path
    assert world.status()["rounds"] == []


def test_by_the_operators_word_a_model_is_published(world):
    """And the status of the run names nobody, and no number of fewer than fifty."""
    manifest = world.manifest(world.open())
    ids = world.send(manifest, 7)
    world.until(lambda told: told["rounds"][-1]["reports"] is not None)
    texts = [json.dumps(world.status())]
    world.own.post("/v1/close")
    world.until(lambda told: told["rounds"][-1]["state"] == "deleted")
    assert world.public.get("/v1/manifest").status_code == 404
    world.own.post("/v1/publish")
    world.until(lambda told: told["is_published"])
    texts.append(json.dumps(world.status()))
    assert world.public.get("/v1/model").status_code == 200
    assert world.public.get("/v1/candidates").status_code == 200
    for text in texts:
        assert json.loads(text)["rounds"][-1]["reports"] == 0  # of seven
        for canary in (*ids, "127.0.0.1", "item 3"):
            assert canary not in text


def test_a_retired_run_says_so_to_clients(world):
    manifest = world.manifest(world.open())
    world.send(manifest, 2)
    assert world.own.post("/v1/retire").status_code == 200
    world.until(lambda told: told["is_over"])
    answer = world.public.get("/v1/manifest")
    assert (answer.status_code, answer.json()["error"]["kind"]) == (410, "Ended")
    assert world.status()["rounds"][-1]["why"] == "the run was retired"


@pytest.mark.parametrize("version", ["0", "2"])
def test_another_protocol_is_told_so(world, version):
    headers = {"tacit-protocol": version}
    answer = world.public.get("/v1/invitation", headers=headers)
    assert answer.status_code == 426
    assert "this server speaks 1" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("count", "least", "shown"),
    [
        (None, 1, None),
        (0, 1, None),
        (49, 1, 0),
        (50, 1, 50),
        (99, 100, None),
        (199, 100, 150),
    ],
)
def test_counts_are_floored_and_hidden_below_the_minimum(count, least, shown):
    assert floored(count, least) == shown
