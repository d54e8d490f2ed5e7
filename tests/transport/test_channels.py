import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.transport.channels import Each, channel
from tacit.transport.messages import Reports
from tacit.tree import Tree


def test_direct_hands_reports_over_as_they_are_and_only_when_asked():
    made = []

    def chunks():
        for number in range(3):
            made.append(number)
            yield Reports(Tree.dense(x=np.full(2, number)))

    delivery = channel("direct").carry(chunks())
    assert isinstance(delivery, channel("direct").delivers)
    assert isinstance(delivery, Each)
    assert made == []
    assert [chunk.tree["x"].tolist() for chunk in delivery.chunks] == [
        *([0, 0], [1, 1], [2, 2])
    ]


def test_an_unknown_channel_is_refused_by_name():
    with pytest.raises(BadValue, match="'dirct' is not known; did you mean 'direct'"):
        channel("dirct")
