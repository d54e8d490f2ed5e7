from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from quick import some_or_all

from tacit.data import cache
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Categories, Category, Numeric, Text
from tacit.data.interactions import Interactions
from tacit.data.sources.table import EventsTable
from tacit.data.splits import leave_one_out, new_users
from tacit.data.strings import Strings
from tacit.data.synthetic.world import World
from tacit.errors import BadValue
from tacit.keys import Key


def small(*, with_times: bool = True) -> Dataset:
    """Every kind of feature, unknown values, empty rows, text outside ASCII."""
    log = Interactions.of_columns(
        [0, 0, 2, 2],
        [1, 1, 0, 2],
        values=[1.5, -2.0, 3.0, 4.0],
        times=[5, 6, 7, 8] if with_times else None,
        n_users=3,
        n_items=3,
    )
    features = {
        "kind": Category.of(["b", "", "a"]),
        "labels": Categories.of([["x", "y"], [], ["x"]]),
        "a/b c": Numeric(np.array([1.0, np.nan, -0.0], np.float32)),
        "text": Text(Strings.of(["", "née", "日本"])),
        "nothing": Categories.of([[], [], []]),
    }
    catalog = Catalog(Strings.of("xyz"), Strings.of(["Ä", "", "C"]), features)
    return Dataset("small", log, catalog, Profiles(Strings.of("uvw")))


def arrays(value: object, path: str = "") -> dict[str, np.ndarray]:
    """Every array in a data set, by where it stands."""
    if isinstance(value, np.ndarray):
        return {path: value}
    if isinstance(value, Mapping):
        inner = {str(k): v for k, v in value.items()}
    elif dataclasses.is_dataclass(value):
        inner = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    else:
        return {path: np.array([repr(value)])}
    found: dict[str, np.ndarray] = {}
    for name, part in inner.items():
        found |= arrays(part, f"{path}.{name}")
    return found


def assert_same(a: Dataset, b: Dataset) -> None:
    left, right = arrays(a), arrays(b)
    assert list(left) == list(right)
    for path, column in left.items():
        assert column.dtype == right[path].dtype, path
        assert column.shape == right[path].shape, path
        assert column.tobytes() == right[path].tobytes(), path


@pytest.mark.parametrize("with_times", [True, False])
def test_every_kind_of_column_comes_back_exactly(tmp_path, with_times):
    dataset = small(with_times=with_times)
    cache.write(dataset, tmp_path / "small", stamp={})
    kept = cache.read(tmp_path / "small")
    assert_same(dataset, kept)
    assert isinstance(kept.catalog.features["text"], Text)


def test_an_array_that_stands_twice_is_written_once(tmp_path):
    dataset = small()
    twice = dataclasses.replace(dataset, listed=dataset.catalog)
    cache.write(dataset, tmp_path / "once", stamp={})
    cache.write(twice, tmp_path / "twice", stamp={})
    files = [len(os.listdir(tmp_path / name)) for name in ("once", "twice")]
    assert files[0] == files[1]
    assert_same(cache.read(tmp_path / "twice"), twice)


def test_what_is_read_is_mapped_and_cannot_be_changed(tmp_path):
    cache.write(small(), tmp_path / "small", stamp={})
    items = cache.read(tmp_path / "small").interactions.items
    assert type(items) is np.ndarray
    assert isinstance(items.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        items[0] = 0


def test_a_mapped_data_set_works_as_any_other(tmp_path):
    made = World(users=40, items=30, events_per_user=8).dataset()
    cache.write(made, tmp_path / "world", stamp={})
    kept = cache.read(tmp_path / "world")
    for change in (
        lambda d: d.filtered(min_value=3, min_interactions=2),
        lambda d: d.interactions.distinct(),
        lambda d: d.interactions.matrix().toarray(),
        lambda d: leave_one_out(d, which="latest", key=Key.from_seed(1)),
        lambda d: new_users(d, n_validation=5, n_test=5, key=Key.from_seed(1)),
    ):
        assert_same(change(made), change(kept))
    assert kept.profiles.index("u07") == 7


def test_it_is_built_once_for_a_stamp(tmp_path):
    built = []

    def build() -> Dataset:
        built.append(1)
        return small()

    for stamp in ({"size": 1}, {"size": 1}, {"size": 2}, {"size": 2}):
        cache.through(
            tmp_path / "deep" / "small", stamp=partial(dict, stamp), build=build
        )
    assert len(built) == 2
    assert os.listdir(tmp_path / "deep") == ["small"]


def flip_a_bit(place: Path) -> None:
    """In a rating, where any number would do: only a checksum can tell."""
    columns = json.loads((place / "manifest.json").read_text())["columns"]
    file = place / columns["dataset.interactions.values"]["file"]
    raw = bytearray(file.read_bytes())
    raw[-4] ^= 1
    file.write_bytes(raw)


def truncate(place: Path) -> None:
    file = place / "0001.npy"
    file.write_bytes(file.read_bytes()[:-2])


def empty(place: Path) -> None:
    (place / "0000.npy").write_bytes(b"")


def other_type(place: Path) -> None:
    column = np.load(place / "0000.npy")
    np.save(place / "0000.npy", column.view(np.uint64))  # same bytes, same digest


def lose(place: Path) -> None:
    (place / "0001.npy").unlink()


def no_json(place: Path) -> None:
    (place / "manifest.json").write_text('{"format": 1')


def list_instead(place: Path) -> None:
    (place / "manifest.json").write_text("[]")


def other_format(place: Path) -> None:
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps({**manifest, "format": 0}))


HARMS = [flip_a_bit, truncate, empty, other_type, lose, no_json, list_instead]


@pytest.mark.parametrize("harm", [*HARMS, other_format])
def test_a_damaged_entry_is_made_anew_with_one_line(tmp_path, harm, caplog):
    place = tmp_path / "small"
    cache.write(small(), place, stamp={})
    harm(place)
    assert cache.read(place) is None
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert f"cache entry {place} is damaged" in told[0]
    assert_same(cache.through(place, stamp=dict, build=small), small())
    assert cache.read(place) is not None


@some_or_all("stride", 19, 1)
def test_no_flipped_bit_is_fatal_or_read(stride, tmp_path):
    """Of any file of an entry: the entry counts as absent, whatever the bit was."""
    place = tmp_path / "small"
    cache.write(small(), place, stamp={})
    for file in sorted(place.iterdir()):
        whole = file.read_bytes()
        step = stride * (11 if file.suffix == ".json" else 37)
        for at in range(0, 8 * len(whole), step):
            changed = bytearray(whole)
            changed[at // 8] ^= 1 << at % 8
            file.write_bytes(changed)
            kept = cache.read(place)
            assert kept is None or changed[: at // 8] == whole[: at // 8], (file, at)
            if kept is not None:  # in the padding of a column's header, which is blank
                assert_same(kept, small())
        file.write_bytes(whole)


def test_an_entry_of_an_earlier_version_is_made_anew_in_silence(tmp_path, caplog):
    place = tmp_path / "small"
    cache.write(small(), place, stamp={})
    manifest = json.loads((place / "manifest.json").read_text())
    del manifest["checksum"]
    (place / "manifest.json").write_text(json.dumps({**manifest, "format": 2}))
    assert cache.read(place) is None
    assert not caplog.records


def test_what_changes_while_it_is_read_is_not_kept(tmp_path):
    place, table = tmp_path / "small", iter(["before", "after", "later", "later"])
    stamp = lambda: {"content": next(table)}  # noqa: E731
    assert_same(cache.through(place, stamp=stamp, build=small), small())
    assert cache.read(place) is None
    cache.through(place, stamp=stamp, build=small)
    assert cache.read(place) is not None


def test_a_table_of_the_same_size_and_time_is_read_again(tmp_path):
    """What an editor, `cp -p` or a version control may leave."""
    path = tmp_path / "table.csv"
    table = EventsTable(path, user="who", item="what")
    for item in "ab":
        path.write_text(f"who,what\nann,{item}\n")
        os.utime(path, ns=(1, 1))
        found = table.load(cache=tmp_path / "cache")
        assert list(found.catalog.ids) == [item]


def test_an_entry_is_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        cache.write(small(), tmp_path / "small", stamp={})
    finally:
        os.umask(before)
    assert (tmp_path / "small").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "small").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


def test_what_a_killed_writer_left_is_swept(tmp_path):
    left = tmp_path / ".tacit-draft-0123456789abcdef"
    left.mkdir()
    (left / "0000.npy").write_bytes(b"half")
    cache.write(small(), tmp_path / "small", stamp={})
    assert os.listdir(tmp_path) == ["small"]


def test_a_build_that_fails_leaves_the_old_entry_alone(tmp_path):
    place = tmp_path / "small"
    cache.write(small(), place, stamp={"size": 1})
    with pytest.raises(ZeroDivisionError):
        cache.through(place, stamp=lambda: {"size": 2}, build=lambda: 1 // 0)
    assert cache.read(place, stamp={"size": 1}) is not None


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("calls", [0, 3])
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, error, calls):
    saved, save = [], np.save

    def fail(*arguments, **options):
        if len(saved) == calls:
            raise error
        saved.append(save(*arguments, **options))

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(error):
        cache.write(small(), tmp_path / "small", stamp={})
    assert os.listdir(tmp_path) == []


def test_many_writers_and_readers_at_once(tmp_path):
    """Each reader sees a whole entry; nothing is left over."""
    place, wrong = tmp_path / "small", []

    def work(number: int) -> None:
        for turn in range(5):
            stamp = {"size": (number + turn) % 3}
            found = cache.through(place, stamp=partial(dict, stamp), build=small)
            if list(found.catalog.titles) != ["Ä", "", "C"]:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert os.listdir(tmp_path) == ["small"]
    assert cache.read(place) is not None


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadValue, match="TACIT_CACHE"):
        cache.through(tmp_path / "file" / "small", stamp=dict, build=small)


def test_where_the_cache_is(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", "/from/environment")
    assert cache.folder(tmp_path) == tmp_path
    assert cache.folder() == Path("/from/environment")
    monkeypatch.delenv("TACIT_CACHE")
    assert cache.folder().name == "tacit"
