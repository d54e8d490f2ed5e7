"""A round is named by its run and number, or nothing is destroyed."""

import pytest
from service.relay.places import Place
from service.relay.test_relay import World

from tacit.errors import BadRun, BadValue
from tacit.service.relay.destroying import destroy


@pytest.mark.parametrize(("run", "number"), [("000", 0), ("ffff", 0), ("0001", 1)])
def test_what_names_no_round_destroys_nothing(tmp_path, run, number):
    """Three digits are too few, whatever they name; the error lists what there is."""
    place = Place(tmp_path)
    world = World(tmp_path / "relay")
    with pytest.raises(BadValue, match="there are: " + ("00010203" * (number == 0))):
        destroy(place.relay(), run, number)
    assert world.relay.status(world.manifest.round_id).state == "open"
    world.relay.store.close()


def test_a_folder_without_a_relay_is_told_so(tmp_path):
    with pytest.raises(BadRun, match="is it a relay's folder"):
        destroy(Place(tmp_path).relay(), "00010203", 0)
