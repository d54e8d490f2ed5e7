"""Nothing is fetched; light and dark name the same colors, and all are readable."""

import re

import pytest

from tacit.reporting.style import CSS

LIGHT, DARK = (
    dict(re.findall(r"(--[\w-]+): (#\w+)", part))
    for part in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
)


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_nothing_is_fetched():
    assert not re.search(r"url\(|@import|https?:|//", CSS)


def test_dark_has_every_color_of_light_and_all_that_are_used():
    assert LIGHT.keys() == DARK.keys()
    used = {*re.findall(r"var\((--[\w-]+)\)", CSS)}
    assert used <= LIGHT.keys() | {"--series"}  # which is one of them


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_words_and_bars_stand_out(colors):
    """WCAG 2.1 asks 4.5 of text and 3 of graphics."""
    for ground in ("--page", "--card"):
        for ink in ("--ink", "--quiet", "--accent"):
            assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)
    for ink, ground in (("--warn-ink", "--warn"), ("--good-ink", "--good")):
        assert contrast(colors[ink], colors[ground]) >= 4.5, ink
    series = ("--two", "--three", "--four", "--five", "--six")
    for bar in ("--bar", "--open", "--warn-bar", *series):
        assert contrast(colors[bar], colors["--page"]) >= 3, bar


def test_every_brace_is_closed():
    assert CSS.count("{") == CSS.count("}")
