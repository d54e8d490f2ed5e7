"""`tacit ledger`; also `tacit.cli.caps`, which `tacit client cap` shares."""

import io
import os
import re

import pytest
from ledger.small import gaussian

from tacit.ledger.budget import Cap
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import Doubt, Refusal
from tacit.storage import anchor

SECRET = b"nobody else's business"


@pytest.fixture
def file(tmp_path):
    """The ledger of a device that took part twice; one report did not arrive yet."""
    path = tmp_path / "device.db"
    with ClientLedger(path) as ledger:
        ledger.join("monday", gaussian(5.0), state=SECRET)
        for round_ in range(2):
            ledger.permits("monday", round_, asked=b"broadcast")
            ledger.keep("monday", round_, report=b"report", state=SECRET)
        ledger.delivered("monday", 0)
    return path


def test_show(tacit, file):
    answer = tacit("ledger", "show", file)
    assert answer.code == 0
    assert "What left this device" in answer.out
    assert "monday" in answer.out
    assert "Gaussian 5" in answer.out
    assert "an observer's belief" in " ".join(answer.out.split())
    assert "PROVEN" in answer.out


def test_show_as_json(tacit, file):
    document = tacit("ledger", "show", file, "--json").json
    first, second = document["releases"]
    assert (first["run"], first["round"], first["what"]) == ("monday", 0, "reports")
    assert first["sent"]
    assert second["sent"] is None
    once = {"GaussianDpEvent": {"noise_multiplier": 5.0}}
    cell = first["cells"][0]
    assert cell["each"] == once
    assert cell["event"] == {"SelfComposedDpEvent": {"event": once, "count": 1000}}
    assert document["waiting"] == 1
    assert document["caps"] == document["refusals"] == []
    [server] = [
        s for s in document["totals"] if (s["unit"], s["view"]) == ("user", "server")
    ]
    assert 1.1 < server["epsilon"] < 1.3
    assert server["horizon"] == "for 2 messages in 1 run, of at most 1000 agreed"
    assert len(document["words"]) == 3


def test_show_a_page(tacit, file, tmp_path):
    out = tmp_path / "pages" / "mine.html"
    document = tacit("ledger", "show", file, "--html", out, "--json").json
    assert document["html"] == str(out)
    assert "how much it says about me" in out.read_text()
    assert str(out) in tacit("ledger", "show", file, "--html", out).out


def test_long_lists_are_cut_on_a_terminal_only(tacit, file):
    with ClientLedger(file) as ledger:
        for round_ in range(2, 30):
            ledger.permits("monday", round_, asked=b"")
    assert "10 older releases are not shown" in tacit("ledger", "show", file).out
    assert len(tacit("ledger", "show", file, "--json").json["releases"]) == 30


def test_a_cap_is_set_changed_shown_and_removed(tacit, file):
    assert "epsilon 4 " in tacit("ledger", "cap", file, "--epsilon", 4).out
    options = ("--epsilon", 2, "--delta", 0, "--view", "release", "--unit", "item")
    caps = tacit("ledger", "cap", file, *options, "--json").json["caps"]
    assert caps == [
        {"epsilon": 2.0, "delta": 0.0, "unit": "item", "view": "release"},
        {"epsilon": 4.0, "delta": 1e-6, "unit": "user", "view": "server"},
    ]
    assert "Caps" in tacit("ledger", "show", file).out
    assert len(tacit("ledger", "cap", file, "--remove", "--json").json["caps"]) == 1
    again = tacit("ledger", "cap", file, "--remove")
    assert again.code == 2
    assert "there is no cap for unit 'user' and view 'server'" in again.err


def test_caps_are_shown_and_nothing_is_changed_without_options(tacit, file):
    assert "no cap is set" in tacit("ledger", "cap", file).out
    tacit("ledger", "cap", file, "--epsilon", 4)
    before = file.read_bytes()
    assert "epsilon 4 " in tacit("ledger", "cap", file).out
    assert file.read_bytes() == before


@pytest.mark.parametrize("options", [("--epsilon", 1), ("--remove",), ()])
def test_a_mistyped_ledger_is_refused_and_not_made(tacit, tmp_path, options):
    path = tmp_path / "legder.db"
    answer = tacit("ledger", "cap", path, *options)
    assert answer.code == 2
    assert str(path) in answer.err
    assert "cap: epsilon" not in answer.out
    assert "tacit client show" in answer.err  # which says where the ledger is
    assert not path.exists()


def test_a_cap_may_come_before_the_first_run(tacit, tmp_path):
    path = tmp_path / "new.db"
    assert tacit("ledger", "cap", path, "--epsilon", 1, "--new").code == 0
    assert len(tacit("ledger", "show", path, "--json").json["caps"]) == 1
    again = tacit("ledger", "cap", path, "--epsilon", 2, "--new")
    assert again.code == 2
    assert "leave --new out" in again.err


def test_a_refusal_for_a_cap_has_its_figures_while_it_refuses(tacit, file):
    with ClientLedger(file) as ledger:
        ledger.set_cap(Cap(1.3, 1e-6))
        assert not ledger.permits("monday", 2, asked=b"")
    [row] = tacit("ledger", "show", file, "--json").json["refusals"]
    figure = re.search(r"this run counts (\S+) in the server's view", row["reason"])
    assert 1.3 < float(figure[1]) < 1.8  # the third round
    assert "your cap is 1.3" in row["reason"]
    assert figure[0] in " ".join(tacit("ledger", "show", file).out.split())
    tacit("ledger", "cap", file, "--epsilon", 9)
    [row] = tacit("ledger", "show", file, "--json").json["refusals"]
    assert row["reason"] == str(Refusal.CAP)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--epsilon", 1, "--remove"), "give --epsilon to set a cap, or --remove"),
        (("--epsilon", -1), "epsilon=-1.0 must be > 0"),
        (("--epsilon", 1, "--delta", 0.1), "not called a guarantee"),
        (("--epsilon", 1, "--view", "sever"), "did you mean 'server'"),
    ],
)
def test_a_bad_cap(tacit, file, options, complaint):
    answer = tacit("ledger", "cap", file, *options)
    assert answer.code == 2
    assert complaint in answer.err


def test_forget_and_keep_the_ledger(tacit, file):
    before = tacit("ledger", "show", file, "--json").json
    answer = tacit("ledger", "forget", file, "--keep-ledger", "--json").json
    assert answer == {"kept_ledger": True, "never_sent": 1}
    after = tacit("ledger", "show", file, "--json").json
    assert after["totals"] == before["totals"]
    assert after["releases"] == before["releases"]
    assert after["waiting"] == 0
    assert SECRET not in file.read_bytes()


def test_forget_everything(tacit, file):
    assert "the ledger too" in tacit("ledger", "forget", file).out
    assert not file.exists()


@pytest.mark.parametrize("command", ["show", "forget"])
@pytest.mark.parametrize("content", [None, "", "a letter" * 99])
def test_another_file_is_refused(tacit, tmp_path, command, content):
    path = tmp_path / "letter"
    if content is not None:
        path.write_text(content)
    answer = tacit("ledger", command, path, "--json")
    assert answer.code == 2
    assert str(path) in answer.json["error"]["message"]
    assert path.exists() == (content is not None)


def lose_anchors():
    for path in (anchor.state_folder() / "ledgers").iterdir():
        path.unlink()


def test_a_ledger_in_doubt_says_so_first_and_proves_nothing(tacit, file, tmp_path):
    assert tacit("ledger", "show", file, "--json").json["chain"] == {
        "is_verified": True,
        "doubt": None,
    }
    lose_anchors()
    out, page = tacit("ledger", "show", file).out, tmp_path / "page.html"
    assert out.startswith("This ledger is not relied on: its anchor is not on this")
    assert "PROVEN" not in out
    document = tacit("ledger", "show", file, "--html", page, "--json").json
    assert document["chain"] == {"is_verified": False, "doubt": Doubt.NO_ANCHOR}
    assert {one["epsilon"] for one in document["totals"]} == {None}
    assert {one["standing"] for one in document["totals"]} == {"NONE"}
    assert "This ledger is not relied on" in page.read_text()
    refused = tacit("ledger", "cap", file, "--epsilon", 4)
    assert refused.code == 2
    assert "tacit ledger accept" in refused.err


def test_accept(tacit, file, monkeypatch):
    lose_anchors()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert tacit("ledger", "accept", file).code == 1  # the owner said no
    assert not tacit("ledger", "show", file, "--json").json["chain"]["is_verified"]
    answer = tacit("ledger", "accept", file, "--yes", "--as-written", "--json").json
    assert answer == {
        "doubt": Doubt.NO_ANCHOR,
        "closed": ["monday"],
        "is_as_written": True,
    }
    document = tacit("ledger", "show", file, "--json").json
    assert document["chain"]["is_verified"]
    assert "owner's word" in document["totals"][0]["assumes"]
    lose_anchors()
    assert "counted in full" in tacit("ledger", "accept", file, "--yes").out
    assert "nothing to decide" in tacit("ledger", "accept", file, "--yes").err


def test_a_ledger_that_does_not_decode_says_what_to_do(tacit, file):
    content = bytearray(file.read_bytes())
    content[4096 : 4096 + 200] = bytes(200)
    file.write_bytes(content)
    for command in (("show",), ("accept", "--yes"), ("cap", "--epsilon", 1)):
        answer = tacit("ledger", command[0], file, *command[1:])
        assert answer.code == 2
        assert "run `tacit ledger accept`" in answer.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_cannot_be_written_is_told_in_one_sentence(tacit, tmp_path):
    tmp_path.chmod(0o500)
    answer = tacit("ledger", "cap", tmp_path / "new.db", "--epsilon", 1, "--new")
    assert answer.code == 2
    assert "Permission denied" in answer.err


def test_terms_that_are_damaged_name_the_file(tacit, file):
    with ClientLedger(file) as ledger:
        ledger._file.execute("UPDATE runs SET terms = '{}'")
    answer = tacit("ledger", "show", file)
    assert answer.code == 2
    assert f"{file}: the terms of a run cannot be read" in answer.err


def test_the_ledger_of_a_run_is_shown_too(tacit, experiment, tmp_path):
    run = tmp_path / "run"
    assert tacit("train", experiment, "--out", run).code == 0
    for place in (run, run / "ledger.json"):
        answer = tacit("ledger", "show", place)
        assert answer.code == 0, answer.err
        assert "3 of 3 rounds have begun" in answer.out
        assert "no promise" in answer.out
    document = tacit("ledger", "show", run / "ledger.json", "--json").json
    assert document["rounds_begun"] == 3
    page = tmp_path / "page.html"
    answer = tacit("ledger", "show", run / "ledger.json", "--html", page)
    assert answer.code == 2
    assert "privacy-card.html" in answer.err
