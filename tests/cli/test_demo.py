import pytest


def test_the_whole_story(tacit, tmp_path):
    out = tmp_path / "demo"
    answer = tacit("demo", "--out", out)
    assert answer.code == 0, answer.err
    assert answer.out.startswith("simulation: ")
    for part in ("gram", "ease", "popularity", "random", "PROVEN"):
        assert part in answer.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "simulation" in page.lower()


@pytest.mark.slow
def test_again_in_the_same_place(tacit, tmp_path):
    answers = [tacit("demo", "--out", tmp_path, "--json").json for _ in range(2)]
    first, again = (one["simulation_only"]["metrics"] for one in answers)
    assert first == again


def test_as_json_its_ranking_and_its_privacy_statement_hold(tacit, tmp_path):
    answer = tacit("demo", "--out", tmp_path / "demo", "--json").json
    assert len(answer["items"]) == 10
    means = {n: m["ndcg@100"]["mean"] for n, m in answer["comparison"].items()}
    assert means["random"] < means["popularity"] < means["ease"]
    bare = means["gram, no privacy"]
    assert means["popularity"] + 0.05 < means["gram"] <= bare + 0.01
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
