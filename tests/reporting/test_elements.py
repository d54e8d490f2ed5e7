from __future__ import annotations

from tacit.reporting import elements

HOSTILE = "<script>alert(1)</script>"


def test_every_text_is_escaped() -> None:
    parts = (
        elements.page(HOSTILE, ""),
        elements.head(HOSTILE, facts=((HOSTILE, HOSTILE),), notes=(HOSTILE,)),
        elements.section("one", HOSTILE, ""),
        elements.notice(HOSTILE),
        elements.paragraph(HOSTILE),
        elements.listing([HOSTILE]),
        elements.figure("<svg></svg>", HOSTILE),
    )
    for part in parts:
        assert HOSTILE not in part
        assert "&lt;script&gt;" in part


def test_a_head_without_facts_has_no_box() -> None:
    assert "<dl" not in elements.head("title")
    assert "simulation" not in elements.head("title")
    assert "simulation" in elements.head("title", simulation=True)


def test_quiet_is_a_class() -> None:
    assert elements.paragraph("x") == "<p>x</p>\n"
    assert elements.paragraph("x", quiet=True) == '<p class="quiet">x</p>\n'
