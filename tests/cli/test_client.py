"""`tacit client`: join, answer, look, rank and leave, over real HTTP."""

import hashlib
import json
import re

import pytest
from service.federation.two_operators import TwoOperators, invitation_of
from service.worlds import trained

from tacit.data.catalog import Catalog
from tacit.method import CentralGaussian
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.service.federation.new_items import write_new_items
from tacit.service.run_offer import run_offer
from tacit.serving.new_items import NewItem

PLAN = Plan(
    40,
    rounds=2,
    channel="two_servers",
    delta=1e-6,
    target_epsilon=4.0,
    min_contributors=3,
)
ITEMS = [f"item {n}" for n in range(15)]


@pytest.fixture
def world():
    method = FederatedPopularity(privacy=CentralGaussian())
    catalog = Catalog.of_ids(ITEMS)
    made = invitation_of("federated_popularity", method, PLAN, catalog)
    with TwoOperators(made).running() as found:
        yield found


@pytest.fixture
def history(tmp_path):
    file = tmp_path / "watched.csv"
    file.write_text("when,film\n1,item 3\n2,item 5\n3,an old film\n")
    return file


@pytest.fixture
def call(tacit, world, history, tmp_path):
    """A command of a client that has joined."""
    folder = tmp_path / "client"
    joining = ("client", "join", world.url, "--history", history, "--item", "film")
    assert tacit(*joining, "--folder", folder).code == 0

    def run(command, *arguments):
        return tacit("client", command, "--folder", folder, *arguments)

    return run


def test_who_joins_is_told_what_was_agreed(tacit, world, history, tmp_path):
    digest = hashlib.sha256(world.invitation.encode()).hexdigest()
    answer = tacit(
        *("client", "join", world.url, "--history", history, "--item", "film"),
        *("--folder", tmp_path / "client", "--expect", digest),
    )
    assert answer.code == 0
    assert "has 2 items" in answer.out
    assert "1 item is not in the catalog and left out: an old film" in answer.out
    assert digest in answer.out
    assert "fewer than 3 reports" in answer.out
    assert "no promise" in answer.out  # of both together
    assert world.bodies == []


def test_a_floor_of_ones_own_is_kept_shown_and_refuses(tacit, world, history, tmp_path):
    folder = tmp_path / "client"
    answer = tacit(
        *("client", "join", world.url, "--history", history, "--item", "film"),
        *("--folder", folder, "--least-uploads", 4),
    )
    assert answer.code == 0
    said = " ".join(answer.out.split())
    assert "no round of fewer than 4 reports is answered" in said
    assert "the plan allows rounds of 3, and those are refused" in said
    world.open()
    refused = tacit("client", "once", "--now", "--folder", folder)
    assert refused.code == 1
    assert "joined with --least-uploads 4" in " ".join(refused.out.split())
    told = tacit("client", "show", "--folder", folder, "--json").json
    assert (told["least_reports"], told["least_uploads"]) == (3, 4)
    assert (told["releases"], world.bodies) == ([], [])
    world.rounds.clear()
    world.open(least_reports=4)
    assert tacit("client", "once", "--now", "--folder", folder).out.startswith("sent:")


def test_the_wrong_file_is_said_here_and_shows_nowhere_else(tacit, world, tmp_path):
    """What is asked of the coordinator is the same, and the round is answered."""
    file, folder = tmp_path / "wrong.txt", tmp_path / "client"
    file.write_text("not an item\n")
    answer = tacit(
        *("client", "join", world.url, "--history", file, "--folder", folder)
    )
    assert answer.code == 0
    assert "WARNING: 1 item is not in the catalog" in answer.err
    assert "has 0 items" in answer.out
    asked = ["/v1/invitation", "/v1/manifest", "/v1/model"]  # whether it is over
    assert [path for _, path, _ in world.requests] == asked
    world.open()
    assert tacit("client", "once", "--now", "--folder", folder).out.startswith("sent:")
    [body] = world.bodies
    assert len(body) == 176 + 4 * len(ITEMS)


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_file_that_cannot_be_read_is_refused_before_anybody_is_asked(
    tacit, world, tmp_path, content
):
    file = tmp_path / "wrong.txt"
    if content is not None:
        file.write_bytes(content)
    assert tacit("client", "join", world.url, "--history", file).code == 2
    assert world.requests == []


def test_impressions_are_refused_where_nothing_is_learnt_from_them(
    tacit, world, history, tmp_path
):
    shown = tmp_path / "shown.csv"
    shown.write_text("impression,film,clicked\n1,item 3,1\n1,item 4,0\n")
    files = ("--history", history, "--impressions", shown, "--item", "film")
    answer = tacit("client", "join", world.url, *files, "--folder", tmp_path / "c")
    assert answer.code == 2
    assert "leave --impressions out" in answer.err
    assert not (tmp_path / "c").exists()


def test_the_default_folder_is_the_systems(tacit, world, history):
    """Which is the test's own: `TACIT_STATE`."""
    joined = tacit(
        *("client", "join", world.url, "--history", history, "--item", "film"),
        "--json",
    )
    assert joined.json["left_out"] == ["an old film"]
    assert tacit("client", "show", "--json").json["run"] == world.invitation.run.hex()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--expect", "0" * 64), "is expected"),
        (("--ticket", "12"), "32 hexadecimal digits"),
        (("--item", "none"), "name it with --item"),
        (("--group", "old"), "group 'old'"),
    ],
)
def test_what_does_not_fit_is_refused(tacit, world, history, tmp_path, options, said):
    answer = tacit(
        *("client", "join", world.url, "--history", history, "--item", "film"),
        *("--folder", tmp_path / "client", *options),
    )
    assert answer.code == 2
    assert said in answer.err
    assert not (tmp_path / "client" / "client.json").exists()


def test_a_round_is_sent_and_shown(world, call):
    assert call("once").out.startswith("waiting: no round is open yet")
    world.open()
    assert call("once").out.startswith("waiting: the report of round 1 is sent in")
    assert call("show", "--json").json["waiting"] == 1
    sent = call("once", "--now", "--json").json
    assert (sent["kind"], sent["round"]) == ("sent", 0)
    told = call("show").out
    assert "What left this device" in told
    document = call("show", "--json").json
    assert document["waiting"] == 0
    assert [one["round"] for one in document["releases"]] == [0]
    assert document["releases"][0]["sent"]
    [spent] = [
        line
        for line in document["spent"]
        if (line["unit"], line["view"]) == ("user", "server")
    ]
    assert spent["standing"] == "PROVEN"
    assert 0 < spent["epsilon"] < PLAN.target_epsilon
    assert call("once").out.startswith("nothing to do: round 1 is answered")


def test_a_refusal_has_a_code_of_its_own(world, call):
    world.open(sigma=1)
    answer = call("once", "--now")
    assert answer.code == 1
    assert answer.out.startswith("refused: the noise of one operator")


def test_a_cap_of_ones_own_is_set_shown_and_refuses_with_its_figures(world, call):
    assert "no cap is set" in call("cap").out
    limits = call("cap", "--epsilon", 0.5, "--json").json
    [cap] = limits["caps"]
    assert (cap["epsilon"], cap["unit"], cap["view"]) == (0.5, "user", "server")
    assert (limits["rounds"], limits["rounds_left"]) == (2, 0)
    told = call("cap").out
    assert "no round of at most 2 may be answered" in told
    figures = re.search(r"this run counts (\S+) in the server's view; your", told)
    assert 0.5 < float(figures[1]) < PLAN.target_epsilon
    world.open()
    refused = call("once", "--now")
    assert refused.code == 1
    assert f"{figures[0]} cap is 0.5" in " ".join(refused.out.split())
    assert figures[0] in " ".join(call("show").out.split())
    assert world.bodies == []
    once = call("cap", "--epsilon", figures[1], "--json").json
    assert once["rounds_left"] == 1
    assert f"your cap is {float(figures[1]):g}" in once["next_refusal"]
    world.close()  # a round that was refused is not answered later
    world.open()
    assert call("once", "--now").out.startswith("sent:")
    more = call("cap", "--remove", "--json").json
    assert (more["caps"], more["rounds_left"], more["next_refusal"]) == ([], 0, None)


def test_a_cap_of_nobody_is_refused(tacit, tmp_path):
    answer = tacit("client", "cap", "--folder", tmp_path, "--epsilon", 2)
    assert answer.code == 2
    assert "holds no client" in answer.err


def test_a_mistyped_ledger_is_not_joined_with(tacit, world, history, tmp_path):
    """The caps of the one that was meant would not hold."""
    joining = ("client", "join", world.url, "--history", history, "--item", "film")
    options = ("--folder", tmp_path / "client", "--ledger", tmp_path / "legder.db")
    answer = tacit(*joining, *options)
    assert answer.code == 2
    assert "legder.db" in answer.err
    assert world.requests == []
    assert not (tmp_path / "legder.db").exists()


def test_wait_goes_on_until_the_run_is_over(world, call):
    world.open()
    call("once", "--now")
    world.close()
    world.open()
    answer = call("once", "--wait", "--now")
    assert answer.out.startswith("over: the last round is answered")
    assert "round 2: the report was sent" in answer.err
    assert len(world.bodies) == 2


def test_the_published_model_ranks_here(world, call, tmp_path):
    assert "once the run is over" in call("recommend").err
    offer = run_offer(trained(tmp_path, "federated_popularity", rounds=1))
    world.files |= {
        "/v1/model": offer.model.content,
        f"/v1/candidates/{offer.candidates.digest}": offer.candidates.content,
    }
    before = len(world.requests)
    items = call("recommend", "-k", 3, "--json").json["items"]
    assert len(items) == 3
    assert not {"item 3", "item 5"} & {one["id"] for one in items}
    assert {how for how, *_ in world.requests[before:]} == {"GET"}
    for _, _, headers in world.requests[before:]:
        assert headers["tacit-protocol"] == "1"
        assert "cookie" not in headers
    assert "ranked on this device" in call("recommend").out
    new = NewItem("a new film", "A New Film"), NewItem("item 3", "one that is held")
    world.files["/v1/new_items"] = write_new_items(new)
    every = call("recommend", "-k", 99, "--json").json["items"]
    assert [one["id"] for one in every[:3]] == [one["id"] for one in items]
    assert every[-1]["id"] == "a new film"  # without content: in the tail
    assert "item 3" not in {one["id"] for one in every}


def test_who_leaves_is_told_what_stays(world, call, tmp_path):
    world.open()
    call("once", "--now")
    answer = call("leave", "--yes")
    assert "erased: a history of 2 items" in answer.out
    assert "reports of 1 round are" in answer.out
    assert {one.name for one in (tmp_path / "client").iterdir()} == {
        "ledger.db",
        "lock",
    }
    assert "holds no client" in call("show").err


def test_who_leaves_without_a_ledger_is_told_what_is_not_known(world, call, tmp_path):
    (tmp_path / "client" / "ledger.db").unlink()
    answer = call("leave", "--yes")
    assert answer.code == 0
    assert "erased: a history of 2 items" in answer.out
    assert "not as it should be: the ledger could not be read" in answer.out
    assert "reports of yours may be in sums" in answer.out
    assert {one.name for one in (tmp_path / "client").iterdir()} == {"lock"}


def test_leaving_can_be_answered_as_json(call):
    document = call("leave", "--yes", "--json").json
    assert (document["rounds"], document["never_sent"]) == (0, 0)
    json.dumps(document)
