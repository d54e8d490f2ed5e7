"""Pieces of a hostile file in an error are short and show nothing to obey."""

import pytest

from tacit.data.parsing.quote import listed, quoted


@pytest.mark.parametrize(
    ("piece", "shown"),
    [("tea", "'tea'"), (b"tea", "'tea'"), ("\x1b[5m", r"'\x1b[5m'"), ("", "''")],
)
def test_a_piece_is_quoted_and_escaped(piece, shown):
    assert quoted(piece) == shown


@pytest.mark.parametrize("kind", [str, bytes])
@pytest.mark.parametrize("length", [60, 61, 10_000])
def test_a_long_piece_is_cut_and_says_so(kind, length):
    shown = quoted("x" * length if kind is str else b"x" * length)
    assert shown.endswith("…'") == (length > 60)
    assert len(shown) <= 62


def test_a_list_shows_twenty_and_says_how_many_there_are():
    names = [f"item {i}" for i in range(21)]
    assert listed(names[:20]).count("item") == 20
    assert "…" not in listed(names[:20])
    assert listed(names).endswith("'item 19', … (21 in all)")
