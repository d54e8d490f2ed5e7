"""Whoever asks is told to come again, and not why."""

import pytest

from tacit.errors import Refused
from tacit.service.http import Failure
from tacit.service.own_trouble import own_trouble
from tacit.system_errors import DiskError


@pytest.mark.parametrize("error", [DiskError(28, "canary"), Refused("canary")])
def test_a_machines_own_trouble_is_answered_with_503_and_not_told(error):
    with pytest.raises(Failure) as caught, own_trouble():
        raise error
    assert caught.value.status == 503
    assert caught.value.headers == {"retry-after": "30"}
    assert "canary" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_whatever_else_fails_stays_what_it_is():
    with pytest.raises(ZeroDivisionError), own_trouble():
        raise ZeroDivisionError
    with pytest.raises(Failure, match="gone") as caught, own_trouble():
        raise Failure(410, "Gone", "gone")
    assert caught.value.status == 410
