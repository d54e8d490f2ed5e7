def test_published_reproduced_and_provable(tacit):
    answer = tacit("reproduce", "privrec", "--table", 4, "--json")
    assert answer.code == 0
    (table,) = answer.json["tables"]
    assert len(table["rows"]) == 18
    for row in table["rows"]:
        assert row.keys() >= {"label", "published", "paper", "sound", "ok"}
        assert row["ok"]
    assert answer.json["claims"][0].keys() >= {"text", "ok", "evidence"}


def test_for_people(tacit):
    answer = tacit("reproduce", "privrec", "--table", 4)
    assert "same" in answer.out
    assert "holds" in answer.out


def test_an_unknown_paper(tacit):
    answer = tacit("reproduce", "privreck")
    assert answer.code == 2
    assert "did you mean 'privrec'" in answer.err
