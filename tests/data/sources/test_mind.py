from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.dataset import Dataset
from tacit.data.news_split import by_part, by_time
from tacit.data.sources import load, source
from tacit.data.sources.mind import read
from tacit.data.sources.mind_tables import written_time
from tacit.errors import BadData

Files = dict[str, bytes]

TRAIN: Files = {
    "news.tsv": (
        "N1\tsports\tgolf\tA Café\tAbstract one\thttps://x\t[]\t[]\n"
        "N2\tnews\t\tPlain\t\t\t[]\t[]\n"
        'N3\tnews\tworld\t"Quoted"\tMore\t\t[{"Label": "x"}]\t[]\n'
        "N4\tnews\tworld\tNever shown\t\t\t[]\t[]\n"
    ).encode(),
    "behaviors.tsv": (
        b"7\tU2\t11/12/2019 2:14:46 PM\tN1 N3 N1\tN2-0 N3-1\n"
        b"3\tU1\t11/9/2019 12:00:01 AM\t\tN1-1\n"
        b"5\tU2\t11/11/2019 12:59:59 PM\tN1 N3 N1\tN3-0 N1-1 N2-1\n"
    ),
}
DEV: Files = {
    "news.tsv": b"N2\tother\t\tAnother title\t\t\t\t\nN9\tnews\t\tNew\t\t\t\t\n",
    "behaviors.tsv": (
        b"7\tU2\t11/15/2019 8:00:00 AM\tN1 N3 N1\tN9-1 N2-0\n"
        b"8\tU3\t11/15/2019 9:00:00 AM\tN2\tN9-0 N1-1\n"
    ),
}


def write(place: Path, files: Files, *, packed: bool = True, inner: str = "") -> Path:
    """An archive, or a folder of the same name without `.zip`."""
    if not packed:
        folder = place.with_suffix("") / inner
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_bytes(text)
        return folder
    with zipfile.ZipFile(place, "a") as out:
        for name, text in files.items():
            out.writestr(f"{inner}/{name}" if inner else name, text)
    return place


def opened(name: str, place: Path) -> Dataset:
    return load(name, where=place, cache=place / "cache")


def told(dataset: Dataset) -> list[tuple[str, str, list[str]]]:
    """User, history and candidates of each impression, by the ids of the tables."""
    impressions = dataset.impressions
    slates, news = impressions.slates, dataset.catalog.ids
    clicked = impressions.clicked.tolist()
    out = []
    for row, user in enumerate(slates.users):
        history = " ".join(news[i] for i in slates.histories[slates.history_of[row]])
        start, end = slates.shown.offsets[row : row + 2]
        shown = [
            f"{news[slates.shown.values[i]]}-{clicked[i]:d}" for i in range(start, end)
        ]
        out.append((dataset.profiles.ids[user], history, " ".join(shown)))
    return out


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("inner", ["", "MINDsmall_train"])
def test_impressions_are_by_user_in_order_of_time(packed, inner, tmp_path):
    write(tmp_path / "MINDsmall_train.zip", TRAIN, packed=packed, inner=inner)
    found = opened("mind-small", tmp_path)
    assert told(found) == [
        ("U2", "N1 N3 N1", "N3-0 N1-1 N2-1"),
        ("U2", "N1 N3 N1", "N2-0 N3-1"),
        ("U1", "", "N1-1"),
    ]
    times = [1573477199, 1573568086, 1573257601]  # read as UTC
    assert found.impressions.slates.times.tolist() == times
    assert len(found.impressions.slates.histories) == 2
    assert found.impressions.parts is None


def test_the_log_is_history_and_clicks(tmp_path):
    write(tmp_path / "MINDsmall_train.zip", TRAIN)
    found = opened("mind-small", tmp_path)
    log, news = found.interactions, found.catalog.ids
    assert [news[i] for i in log.items] == ["N1", "N3", "N1", "N1", "N2", "N3", "N1"]
    assert log.offsets.tolist() == [0, 6, 7]
    assert log.times[:3].tolist() == [-3, -2, -1]  # nobody knows when
    assert log.times[3:].tolist() == [1573477199, 1573477199, 1573568086, 1573257601]


def test_the_catalog_lists_all_news(tmp_path):
    write(tmp_path / "MINDsmall_train.zip", TRAIN)
    catalog = opened("mind-small", tmp_path).catalog
    assert list(catalog.ids) == ["N1", "N2", "N3", "N4"]
    assert list(catalog.titles) == ["A Café", "Plain", '"Quoted"', "Never shown"]
    features = catalog.features
    assert [features["category"][i] for i in range(3)] == ["sports", "news", "news"]
    assert [features["subcategory"][i] for i in range(3)] == ["golf", "", "world"]
    assert [features["abstract"][i] for i in range(3)] == ["Abstract one", "", "More"]


@pytest.mark.parametrize("packed", [True, False])
def test_a_dev_part_beside_it_is_read_too_even_if_it_comes_later(packed, tmp_path):
    write(tmp_path / "MINDsmall_train.zip", TRAIN)
    assert len(opened("mind-small", tmp_path).impressions) == 3
    write(tmp_path / "MINDsmall_dev.zip", DEV, packed=packed)
    found = opened("mind-small", tmp_path)
    assert len(found.impressions) == 5
    assert list(found.catalog.ids) == ["N1", "N2", "N3", "N4", "N9"]
    assert found.catalog.titles[1] == "Plain"  # the first table counts
    assert told(found)[2] == ("U2", "N1 N3 N1", "N9-1 N2-0")
    parts = found.impressions.parts
    assert [parts[i] for i in range(5)] == ["train", "train", "dev", "train", "dev"]
    split = by_time(found, validation_from="2019-11-12", test_from="2019-11-15")
    assert len(found.impressions.slates.histories) == 3  # U2's serves both parts
    sizes = [len(p) for p in (split.train.impressions, split.validation, split.test)]
    assert sizes == [2, 1, 2]


ADRESSA: dict[str, Files] = {
    part: {
        "news.tsv": b"1\t\t\tEn\t\t\t\t\n2\t\t\tTo\t\t\t\t\n3\t\t\tTre\t\t\t\t\n",
        "behaviors.tsv": behaviors,
    }
    for part, behaviors in {
        "train": b"null\t0\tnull\t3\t1-1 2-0\n",
        "valid": b"null\t0\tnull\t3 1\t2-1 3-0\n",
        "test": b"null\t4\tnull\t\t1-0 2-1\nnull\t0\tnull\t3 1\t2-1 1-0\n",
    }.items()
}


@pytest.mark.parametrize("packed", [True, False])
def test_adressa_in_three_parts_without_times(packed, tmp_path):
    for part, files in ADRESSA.items():
        write(tmp_path / "adressa.zip", files, packed=packed, inner=part)
    found = opened("adressa", tmp_path)
    assert told(found) == [
        ("0", "3", "1-1 2-0"),
        ("0", "3 1", "2-1 3-0"),
        ("0", "3 1", "2-1 1-0"),
        ("4", "", "1-0 2-1"),
    ]
    log = found.interactions
    assert log.times is None
    assert log.items.tolist() == [2, 0, 1, 1, 1]  # what train clicked is not told twice
    split = by_part(found, validation="valid", test="test")
    assert [len(split.train.impressions), len(split.validation), len(split.test)] == [
        1,
        1,
        2,
    ]
    assert split.train.items.tolist() == [2, 0]


def test_adressa_in_one_part(tmp_path):
    write(tmp_path / "adressa.zip", ADRESSA["train"])
    assert len(opened("adressa", tmp_path).impressions) == 1


def edit(member: str, old: bytes, new: bytes) -> Files:
    assert old in TRAIN[member]
    return TRAIN | {member: TRAIN[member].replace(old, new, 1)}


@pytest.mark.parametrize(
    ("member", "old", "new", "line", "problem"),
    [
        ("behaviors.tsv", b"N2-0", b"N2-2", 1, "'N2-2' must end with its label"),
        ("behaviors.tsv", b"N2-0", b"N2", 1, "'N2' must end with its label, -0 or -1"),
        ("behaviors.tsv", b"N2-0", b"N8-0", 1, "news 'N8' is not in news.tsv"),
        ("behaviors.tsv", b"N1 N3 N1", b"N1 X N1", 1, "news 'X' is not in news.tsv"),
        ("behaviors.tsv", b"\tN1-1", b"\t", 2, "shows no news"),
        ("behaviors.tsv", b"3\tU1", b"7\tU1", 2, "impression 7 occurs twice"),
        ("behaviors.tsv", b"3\tU1", b"x\tU1", 2, "impression 'x' must be a whole"),
        ("behaviors.tsv", b"3\tU1", b"3\t", 2, "user '' is blank"),
        ("behaviors.tsv", b"3\tU1", b"3\tU 1", 2, "user 'U 1' is blank or has a"),
        ("behaviors.tsv", b"\tN1-1", b"N1-1", 2, "4 fields separated by tabs"),
        ("behaviors.tsv", b"12:00:01 AM", b"13:00:01 AM", 2, "must be like '11/15"),
        ("behaviors.tsv", b"12:00:01 AM", b"0:00:01 AM", 2, "must be like '11/15"),
        ("behaviors.tsv", b"12:00:01 AM", b"12:60:01 AM", 2, "must be like '11/15"),
        ("behaviors.tsv", b"11/9/2019", b"2019-11-09", 2, "must be like '11/15"),
        ("behaviors.tsv", b"11/9/2019", b"13/9/2019", 2, "no day '13/9/2019' (month"),
        ("behaviors.tsv", b"11/9/2019", b"11/9/1969", 2, "is before 1970"),
        ("behaviors.tsv", b"11/9/2019 12:00:01 AM", b"null", 2, "'null' in all lines"),
        ("news.tsv", b"N2", b"N1", 2, "news 'N1' is listed twice"),
        ("news.tsv", b"N2", b"N 2", 2, "news id 'N 2' is blank or has a space"),
        ("news.tsv", b"N2", b"", 2, "news id '' is blank"),
        ("news.tsv", b"\tgolf", b"", 1, "7 fields separated by tabs, expected 8"),
        ("news.tsv", "é".encode(), b"\xe9", 1, "is not utf-8"),
    ],
)
def test_odd_input_is_named(member, old, new, line, problem, tmp_path):
    place = write(tmp_path / "odd.zip", edit(member, old, new))
    with pytest.raises(BadData) as caught:
        read(place)
    assert problem in str(caught.value)
    assert member in caught.value.file
    assert caught.value.line == line


def test_times_are_known_in_all_lines_or_in_none(tmp_path):
    first = b"7\tU2\t11/12/2019 2:14:46 PM"
    place = write(tmp_path / "odd.zip", edit("behaviors.tsv", first, b"null\tU2\tnull"))
    with pytest.raises(BadData, match="line 2: time '11/9/2019 12:00:01 AM' must be"):
        read(place)


@pytest.mark.parametrize("name", ["mind-small-sample", "mind-small", "adressa"])
def test_empty_missing_and_broken_files_are_named(name, tmp_path):
    archive = tmp_path / source(name).archives[0]
    for member in TRAIN:
        write(archive, TRAIN | {member: b""})
        with pytest.raises(BadData, match=f"{member}.* is empty"):
            opened(name, tmp_path)
        archive.unlink()
        write(archive, {other: t for other, t in TRAIN.items() if other != member})
        with pytest.raises(BadData, match=f"has no .*{member}"):
            opened(name, tmp_path)
        archive.unlink()
    archive.write_bytes(b"PK not a zip")
    with pytest.raises(BadData, match="is not a sound zip file"):
        opened(name, tmp_path)


def outcome(place: Path) -> Dataset | BadData:
    try:
        return read(place)
    except BadData as error:
        return error


@given(
    member=st.sampled_from(sorted(TRAIN)),
    place=st.integers(0, 400),
    length=st.integers(0, 30),
    new=st.binary(max_size=6) | st.sampled_from([b"\t", b"\n", b" ", b"-1", b"null"]),
)
def test_damaged_bytes_give_a_data_set_or_a_named_line(member, place, length, new):
    text = TRAIN[member]
    damaged = text[:place] + new + text[place + length :]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "odd", TRAIN | {member: damaged}, packed=False)
        found = outcome(Path(folder) / "odd")
    if isinstance(found, BadData):
        assert "tsv" in found.file
        assert found.line is not None or "is empty" in found.problem


def test_a_line_without_end_is_refused(tmp_path):
    endless = TRAIN["behaviors.tsv"] + b"9\tU1\tnull\t" + b"N1 " * 4_000_000
    place = write(tmp_path / "odd", TRAIN | {"behaviors.tsv": endless}, packed=False)
    with pytest.raises(BadData, match="line 4: longer than 1,048,576 bytes"):
        read(place)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1573257600, "11/9/2019 12:00:00 AM"),
        (1573257600 + 12 * 3600, "11/9/2019 12:00:00 PM"),
        (1573257600 + 13 * 3600 + 61, "11/9/2019 1:01:01 PM"),
    ],
)
def test_midnight_and_noon(seconds, text):
    assert written_time(seconds) == text


@pytest.mark.data
def test_the_real_sample(real_data, tmp_path):
    archive = source("mind-small-sample").archives[0]
    if not (real_data / archive).exists():
        pytest.skip(f"{archive} is not in {real_data}")
    found = load("mind-small-sample", where=real_data, cache=tmp_path)
    log, impressions = found.interactions, found.impressions
    slates = impressions.slates
    assert (log.n_users, log.n_items, len(impressions)) == (4637, 51282, 5000)
    assert len(log.distinct()) == 144_455
    assert (log.per_item > 0).sum() == 17_628
    assert impressions.named_items().sum() == 22_592
    assert (len(impressions.clicked), impressions.clicked.sum()) == (189_359, 7_542)
    assert len(slates.histories) == 4637  # one a user
    assert slates.history_lengths.mean() == pytest.approx(32.0, abs=0.05)
    assert (slates.history_lengths == 0).sum() == 107
    days = np.unique(slates.times // 86_400, return_counts=True)[1]
    assert days.tolist() == [439, 490, 1109, 1020, 974, 968]
    split = by_time(found, validation_from="2019-11-13", test_from="2019-11-14")
    sizes = [len(p) for p in (split.train.impressions, split.validation, split.test)]
    assert sizes == [3058, 974, 968]
