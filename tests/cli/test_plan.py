KEYS = {
    "what",
    "seen_by",
    "group",
    "unit",
    "adjacency",
    "view",
    "delta",
    "horizon",
    "accountant",
    "standing",
    "assumes",
    "epsilon",
}


def test_every_line_has_every_field(tacit, experiment):
    document = tacit("plan", experiment, "--json").json
    assert document["releases"]
    assert document["totals"]
    for line in document["releases"] + document["totals"]:
        assert line.keys() >= KEYS
        assert line["standing"] == "NONE"
        assert line["epsilon"] is None
        assert line["reason"]


def test_the_cost_is_what_a_run_sends(tacit, experiment, tmp_path):
    cost = tacit("plan", experiment, "--json").json["cost"]
    result = tacit("train", experiment, "--out", tmp_path / "run", "--json").json
    assert cost["rounds_a_device_at_most"] == 1
    assert result["bytes_up"] == cost["bytes_up_a_round"] * cost["population"]
    assert result["bytes_down"] == cost["bytes_down_a_round"] * cost["population"]


def test_people_are_told_that_nothing_is_promised(tacit, experiment):
    answer = tacit("plan", experiment)
    assert "NONE" in answer.out
    assert "no mechanism protects them" in answer.out


def test_nothing_is_written(tacit, experiment, tmp_path):
    before = sorted(p for p in tmp_path.iterdir() if p.name != "cache")
    tacit("plan", experiment)
    assert sorted(p for p in tmp_path.iterdir() if p.name != "cache") == before


def test_all_problems_at_once(tacit, experiment):
    answer = tacit(
        "plan", experiment, "--set", "run.rounds=0", "--set", "method.max_vote=1"
    )
    assert answer.code == 2
    assert "2 problems" in answer.err
    assert "did you mean 'max_votes'" in answer.err
