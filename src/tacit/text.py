r"""Text from data and from file names, made safe for where it is shown.

A title can hold whatever its author wrote: an escape sequence that renames the window,
a line end that fakes a line of ours, a mark that turns the rest of a line around, a
formula for a spreadsheet. What is shown goes through one of these functions:

    shown     one line on a terminal, in a plot, in a table
    lines     a message of several lines, of which only the first is at the margin
    in_html   one line as the content of an element or an attribute
    in_csv    a field of a table that a spreadsheet may open
    in_json   a whole JSON document: exact, and nothing in it that a terminal obeys

>>> shown("Up\x1b[2J and \u202eaway\n")
'Up\\x1b[2J and \\u202eaway\\n'
"""

from __future__ import annotations

import html
import unicodedata

LONGEST = 200  # characters of one text on one line
LONGEST_MESSAGE = 10_000

# Controls, invisible marks (those of direction among them), halves of characters,
# private and unassigned ones, and separators of lines and paragraphs.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_FORMULA = ("=", "+", "-", "@")


def shown(text: str, *, longest: int | None = LONGEST) -> str:
    """The text on one line: what cannot be seen is written as an escape, and cut."""
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"  # before escaping: it may be a whole file
    if text.isprintable():
        return text
    return "".join(_escaped(c) if _is_unseen(c) else c for c in text)


def lines(text: str, *, longest: int = LONGEST_MESSAGE) -> str:
    """A message whose lines after the first are indented: none can pass for another."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    first, *others = text.split("\n")
    rest = (
        line if line.startswith("  ") or not line else f"  {line}" for line in others
    )
    return "\n".join(shown(line, longest=None) for line in (first, *rest))


def nth_round(number: int) -> str:
    """A round as people read it: they count from 1; the wire and files, from 0.

    >>> nth_round(0)
    'round 1'
    """
    return f"round {number + 1}"


def in_html(text: str) -> str:
    """The text as content of an element or a quoted attribute."""
    return html.escape(shown(text, longest=None), quote=True)


def in_csv(text: str) -> str:
    """A field; a quotation mark stands before what a spreadsheet would compute.

    >>> in_csv("=1+1"), in_csv("-0.5"), in_csv("@x")
    ("'=1+1", '-0.5', "'@x")
    """
    safe = shown(text, longest=None)
    is_formula = safe.lstrip().startswith(_FORMULA) and not _is_number(safe)
    return f"'{safe}" if is_formula else safe


def in_json(document: str) -> str:
    """A JSON document with an escape for whatever cannot be seen; its value stays."""
    if document.isascii():
        return document  # json escapes controls itself
    return "".join(
        _json_escape(c) if c != "\n" and _is_unseen(c) else c for c in document
    )


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
