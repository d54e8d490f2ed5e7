"""Times as tables have them: seconds, milliseconds, or a date with or without zone."""

import numpy as np
import pytest

from tacit.data.parsing.timestamps import second, seconds

NIGHT = 1_700_000_000  # 2023-11-14 22:13:20 UTC


@pytest.mark.parametrize(
    "text",
    [
        "1700000000",
        "1700000000.9",
        "1700000000999",
        "1.7e9",
        "2023-11-14 22:13:20",
        "2023-11-14T22:13:20Z",
        "2023-11-14T23:13:20+01:00",
        "2023-11-14T22:13:20.999999",
    ],
)
def test_one_moment_in_every_form(text):
    assert second(text) == NIGHT


@pytest.mark.parametrize("text", ["99999999999", "100000000000"])
def test_from_1e11_on_numbers_are_milliseconds(text):
    number = int(text)
    assert second(text) == (number if number < 1e11 else number // 1000)


@pytest.mark.parametrize(
    "text", ["-1", "nan", "inf", "1e14", "1969-12-31", "tomorrow", "2023-13-01", ""]
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match=r".*"):
        second(text)
    with pytest.raises(ValueError, match=r".*"):
        seconds([text, "5"])


@pytest.mark.parametrize(
    "texts",
    [["0", "1700000000", "1700000000999", "86400.9"], ["2023-11-14", "5", "1e9"], []],
)
def test_a_column_is_each_of_its_texts(texts):
    found = seconds(texts)
    assert found.dtype == np.int64
    assert found.tolist() == [second(text) for text in texts]
