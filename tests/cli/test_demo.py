def test_the_whole_story(tacit, tmp_path):
    out = tmp_path / "demo"
    answer = tacit("demo", "--out", out)
    assert answer.code == 0, answer.err
    for part in ("gram", "ease", "popularity", "random", "PROVEN"):
        assert part in answer.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "simulation" in page.lower()


def test_as_json_and_again_in_the_same_place(tacit, tmp_path):
    out = tmp_path / "demo"
    first = tacit("demo", "--out", out, "--json").json
    again = tacit("demo", "--out", out, "--json").json
    simulated = [one["simulation_only"]["metrics"] for one in (first, again)]
    assert simulated[0] == simulated[1]
    assert len(first["items"]) == 10
    means = {n: m["ndcg@100"]["mean"] for n, m in first["comparison"].items()}
    assert means["random"] < means["popularity"] < means["ease"]
    bare = means["the same without privacy"]
    assert means["popularity"] + 0.05 < means["gram"] <= bare + 0.01


def test_the_privacy_statement_holds_and_can_be_read(tacit, tmp_path):
    answer = tacit("demo", "--out", tmp_path / "demo", "--json").json
    lines = [s for s in answer["epsilons"] if s["unit"] == "user"]
    proven = {s["view"]: s["epsilon"] for s in lines if s["standing"] == "PROVEN"}
    assert proven.keys() == {"release", "server"}
    assert all(epsilon <= 4.0 for epsilon in proven.values())


def test_somebody_elses_directory_is_left_alone(tacit, tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("keep me")
    answer = tacit("demo", "--out", tmp_path / "letters")
    assert answer.code == 2
    assert (tmp_path / "letters" / "dear.txt").exists()
