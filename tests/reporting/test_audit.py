"""The figures of an audit, as tables and lines."""

from tacit.reporting.audit import _shown, _up, check_tables, notes, scope, summary

CHECK = {
    "subject": "toy",
    "name": "noise",
    "claimed": 1.0,
    "measured": 0.5,
    "ok": True,
    "detail": "",
}
DOCUMENT = {
    "checks": [CHECK, {**CHECK, "ok": False, "detail": "too little"}],
    "monitoring": [],
    "not_audited": [{"subject": "toy", "what": "the metric"}],
}


def test_chances_are_shown_in_two_digits():
    assert [_up(3.21e-9), _shown(3.21e-9)] == ["3.3e-9", "3.2e-9"]
    assert [_up(0.0), _shown(0.0), _up(1e-4)] == ["0.0000", "0.0000", "0.0001"]


def test_a_claim_stands_beside_what_was_measured():
    [table] = check_tables(DOCUMENT)
    assert table.rows[0] == ("noise", "1.0000", "0.5000", "holds")
    assert notes(DOCUMENT) == ["not audited: toy: the metric"]


def test_a_failure_is_named():
    assert summary(DOCUMENT) == "FAILED: toy: noise: too little"
    assert summary({**DOCUMENT, "checks": [CHECK]}).startswith("all 1 checks hold")
    assert summary({**DOCUMENT, "checks": []}).startswith("nothing is promised")


def aspect(subject, kind, name):
    return {"subject": subject, "kind": kind, "name": name}


SEEN = [aspect("toy, central", "channel", "secure_sum")]
LACKING = [
    aspect("toy, central", "channel", "direct"),
    aspect("toy, central", "groups", "over direct"),
    aspect("toy, central", "channel", "two_servers"),
]


def test_what_was_looked_at_and_what_not_is_a_line_for_each_subject():
    document = {"looked_at": SEEN, "not_looked_at": LACKING}
    assert scope(document) == [
        "looked at: toy, central: channel: secure_sum",
        "not looked at: toy, central: channel: direct, two_servers; groups: over "
        "direct",
        "add --all to look at these as well",
    ]
    assert notes(DOCUMENT | document)[-3:] == scope(document)


def test_a_papers_mechanism_needs_a_run_and_nothing_more_is_asked_for():
    papers = [aspect("toy", "mechanism", "published")]
    assert scope({"not_looked_at": papers})[1:] == [
        "a paper's own mechanism has its own plan: audit a run of it"
    ]
    assert scope({"looked_at": SEEN, "not_looked_at": []}) == [
        "looked at: toy, central: channel: secure_sum"
    ]


def test_an_audit_of_an_earlier_version_says_nothing_of_it():
    assert scope({}) == []
