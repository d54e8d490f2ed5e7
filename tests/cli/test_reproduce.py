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


def test_costs_of_fmf_ldp_with_documents(tacit, tmp_path):
    answer = tacit("reproduce", "fmf-ldp", "--table", "5.3", "--out", tmp_path)
    assert answer.code == 0  # what differs says why
    assert "DIFFERS" in answer.out
    assert "envelopes" in answer.out
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"fmf-ldp.json", "fmf-ldp.html"}


def test_an_unknown_scale(tacit):
    answer = tacit("reproduce", "fmf-ldp", "--scale", "tiny")
    assert answer.code == 2
    assert "scale='tiny' is not known" in answer.err
