"""Tests of mechanisms as bytes."""

import json

import numpy as np
import pytest
from safetensors.numpy import save
from serving.worlds import interests, item_space, population

from tacit.errors import BadMessage
from tacit.keys import Key
from tacit.service.basis import read_basis, write_basis
from tacit.serving.query import Mode
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.served_model import ServedModel
from tacit.serving.settings import ServingSettings

SETTINGS = [
    ServingSettings(Mode.KRR, 2.0, interests=4),
    ServingSettings(Mode.DPA, 2.0, interests=4),
    ServingSettings(Mode.DPA, 2.0, interests=4, delta=1e-6, reading="softplus"),
    ServingSettings(Mode.DPA, 2.0, interests=4, padding=0.5),
    ServingSettings(Mode.VDP, 2.0),
    ServingSettings(Mode.VDP, 2.0, axes=2, delta=1e-6),
]


def mechanism(settings):
    return settings.mechanism(item_space(), population(), Key.from_seed(0))


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_what_is_read_is_what_was_written(settings, tmp_path):
    path = tmp_path / "basis"
    path.write_bytes(write_basis(mechanism(settings)))
    found = ServedModel(item_space(), read_basis(path))
    before = ServedModel(item_space(), mechanism(settings))
    assert found.version == before.version  # a digest of settings and numbers
    keys = Key.from_seed(1).each(np.arange(5))
    users = population()[:5]
    assert found.release(users, keys) == before.release(users, keys)


def harmed(change):
    """A basis whose description was changed."""
    made = InterestResponse(2.0, interests())
    fields = {
        name: {"array": name} for name in ("axes", "directions", "means", "shares")
    }
    described = {
        "part": "InterestResponse",
        "fields": {
            "epsilon": {"value": 2.0},
            "interests": {"part": "Interests", "fields": fields},
        },
    }
    arrays = {name: np.ascontiguousarray(a) for name, a in made.arrays().items()}
    change(described, arrays)
    return save(arrays, metadata={"mechanism": json.dumps(described)})


@pytest.mark.parametrize(
    "change",
    [
        lambda d, a: d.update(part="Popen"),
        lambda d, a: d["fields"].update(epsilon={"value": -1.0}),
        lambda d, a: d["fields"].update(epsilon={"value": [1]}),
        lambda d, a: d["fields"].update(more={"value": 1}),
        lambda d, a: d["fields"].pop("epsilon"),
        lambda d, a: d["fields"].update(interests={"array": "nowhere"}),
        lambda d, a: (
            d["fields"].update(d["fields"]["interests"]["fields"]) or d.clear()
        ),
        lambda d, a: a.update(means=np.full((4, 3), np.nan)),
        lambda d, a: a.update(shares=np.full(4, 0.5)),
        lambda d, a: a.update(axes=np.ones((2, 2))),
        lambda d, a: a.update(means=np.ones((4, 3, 2))),
        lambda d, a: d.update(d["fields"]["interests"]),
    ],
)
def test_what_no_server_makes_is_refused(change, tmp_path):
    (tmp_path / "basis").write_bytes(harmed(change))
    with pytest.raises(BadMessage):
        read_basis(tmp_path / "basis")


def test_bytes_that_are_no_basis_are_refused(tmp_path):
    (tmp_path / "basis").write_bytes(b"nothing")
    with pytest.raises(BadMessage):
        read_basis(tmp_path / "basis")
