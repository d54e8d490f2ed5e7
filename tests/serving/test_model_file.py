import json
from dataclasses import replace

import numpy as np
import pytest
from quick import some_or_all

from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category, Numeric, Text
from tacit.data.strings import Strings
from tacit.documents import read_document, write_document
from tacit.errors import BadRun, Damaged
from tacit.serving.model_file import Model, load_model, save_model
from tacit.transport.messages import Broadcast


@pytest.fixture
def model() -> Model:
    catalog = Catalog(
        Strings.of(["1", "zwei"]),
        Strings.of(["Ünë", "Two"]),
        {
            "kind": Category.of(["x", ""]),
            "genres": Categories.of([["a", "b"], []]),
            "year": Numeric(np.array([1999, np.nan], np.float32)),
            "text": Text(Strings.of(["long", ""])),
        },
    )
    weights = {"V": np.arange(6.0).reshape(2, 3), "b": np.array([1, 2], np.int64)}
    broadcast = Broadcast(7, bytes(range(16)), weights)
    privacy = {"mechanism": "central", "noise_multiplier": {"votes": 1.5}}
    return Model({"name": "x", "rank": 3}, privacy, broadcast, catalog)


def test_a_model_comes_back_as_it_was(model, tmp_path):
    files = tmp_path / "model.safetensors", tmp_path / "model.json"
    save_model(model, *files)
    loaded = load_model(*files)
    assert loaded.method == model.method
    assert loaded.privacy == model.privacy
    assert (loaded.broadcast.round, loaded.broadcast.agreement) == (7, bytes(range(16)))
    for name, value in model.broadcast.weights.items():
        assert loaded.broadcast.weights[name].dtype == value.dtype
        np.testing.assert_array_equal(loaded.broadcast.weights[name], value)
    assert list(loaded.catalog.titles) == ["Ünë", "Two"]
    for name, feature in model.catalog.features.items():
        for row in range(2):
            np.testing.assert_equal(loaded.catalog.features[name][row], feature[row])


def test_a_model_of_the_first_format_is_read(model, tmp_path):
    """Its protection stands among the fields of the method."""
    files = tmp_path / "model.safetensors", tmp_path / "model.json"
    save_model(model, *files)
    document = json.loads(files[1].read_text())
    assert document.pop("format") == 3
    for later in ("privacy", "arrays", "digest", "checksum"):
        del document[later]
    old = document | {"format": 1, "method": {"name": "x", "privacy": "central"}}
    files[1].write_text(json.dumps(old))
    loaded = load_model(*files)
    assert loaded.method == {"name": "x", "privacy": "central"}
    assert loaded.privacy is None
    np.testing.assert_array_equal(
        loaded.broadcast.weights["V"], model.broadcast.weights["V"]
    )


def test_the_same_model_gives_the_same_bytes(model, tmp_path):
    for name in ("a", "b"):
        save_model(model, tmp_path / f"{name}.safetensors", tmp_path / f"{name}.json")
    for suffix in ("safetensors", "json"):
        pair = [(tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b")]
        assert pair[0] == pair[1]


@pytest.mark.parametrize("damage", ["weights", "facts", "format", "catalog", "absent"])
def test_a_damaged_model_is_refused_with_a_reason(model, tmp_path, damage):
    weights, facts = tmp_path / "model.safetensors", tmp_path / "model.json"
    save_model(model, weights, facts)
    document = json.loads(facts.read_text())
    if damage == "weights":
        weights.write_bytes(weights.read_bytes()[:-3])
    elif damage == "facts":
        facts.write_text("{")
    elif damage == "format":
        facts.write_text(json.dumps(document | {"format": 99}))
    elif damage == "catalog":
        facts.write_text(json.dumps(document | {"catalog": {"part": "Catalog"}}))
    else:
        weights.unlink()
    with pytest.raises(BadRun, match=r"model"):
        load_model(weights, facts)


@pytest.mark.parametrize(
    "changed",
    [
        *({"method": {}}, {"method": ["x"]}, {"method": {"name": 3}}),
        *({"privacy": ["central"]}, {"privacy": "central"}),
    ],
)
def test_a_method_without_a_name_or_a_protection_that_is_no_table(
    model, tmp_path, changed
):
    weights, facts = tmp_path / "model.safetensors", tmp_path / "model.json"
    save_model(model, weights, facts)
    write_document(facts, read_document(facts) | changed)
    with pytest.raises(BadRun, match="does not describe a model"):
        load_model(weights, facts)


@pytest.fixture
def files(model, tmp_path):
    found = tmp_path / "model.safetensors", tmp_path / "model.json"
    save_model(model, *found)
    return found


def test_unknown_keys_are_refused_and_the_known_ones_named(files):
    write_document(files[1], read_document(files[1]) | {"temperature": 2})
    said = r"unknown keys \['temperature'\]; .* arrays, catalog, digest, format, items"
    with pytest.raises(BadRun, match=said):
        load_model(*files)
    lacking = {k: v for k, v in read_document(files[1]).items() if k != "plan"}
    write_document(files[1], lacking)
    with pytest.raises(BadRun, match=r"lacks \['plan'\]"):
        load_model(*files)


def test_a_key_of_today_is_unknown_to_the_first_format(files):
    document = read_document(files[1])
    files[1].write_text(json.dumps(document | {"format": 1}))
    with pytest.raises(BadRun, match="unknown keys"):
        load_model(*files)


@pytest.mark.parametrize("which", [0, 1])
@some_or_all("stride", 71, 7)
def test_no_flipped_bit_of_either_file_is_taken_for_the_model(files, which, stride):
    whole = files[which].read_bytes()
    for place in range(0, 8 * len(whole), stride):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        files[which].write_bytes(changed)
        with pytest.raises(BadRun):
            load_model(*files)


def test_weights_of_another_run_are_refused(model, files, tmp_path):
    """Of the same layout, whole in themselves, and not those declared."""
    weights = {n: v + 1 for n, v in model.broadcast.weights.items()}
    other = replace(model, broadcast=Broadcast(7, bytes(range(16)), weights))
    save_model(other, files[0], tmp_path / "other.json")
    with pytest.raises(Damaged, match=r"model\.safetensors is damaged: its checksum"):
        load_model(*files)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(model, tmp_path, value):
    weights = {"V": np.array([[1.0, value]])}
    files = tmp_path / "model.safetensors", tmp_path / "model.json"
    save_model(replace(model, broadcast=Broadcast(7, bytes(16), weights)), *files)
    with pytest.raises(BadRun, match="'V' has numbers that are not finite"):
        load_model(*files)


@pytest.mark.parametrize(
    "changed",
    [
        *({"items": 3}, {"items": 10**11}, {"round": -1}, {"round": "7"}),
        *({"round": True}, {"plan": "xyz"}, {"plan": 3}, {"catalog": []}),
        *({"arrays": []}, {"arrays": {"a": 1}}, {"arrays": {}}, {"digest": 3}),
    ],
)
def test_facts_that_do_not_fit_the_arrays(files, changed):
    write_document(files[1], read_document(files[1]) | changed)
    with pytest.raises(BadRun):
        load_model(*files)
