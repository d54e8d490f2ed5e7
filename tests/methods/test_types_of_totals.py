"""The type of a noisy total follows from the layout, whoever contributed or not."""

import numpy as np
import pytest
from methods.privrec.worlds import described

from tacit.errors import Refused
from tacit.experiment.registry import method_class, method_names
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone, FixedSize
from tacit.testing.contract import mixed_world
from tacit.transport.channels import Each, Sum, channel

WORLD = described(mixed_world())
USERS = len(WORLD.shards)
SMALL = {  # few rounds of every phase; precision as it is by default
    "dpvae": {"head": 5, "latent": 2},
    "fedvae": {"hidden": (4,), "latent": 2, "count_rounds": 1},
    "gram": {"head": 5, "count_rounds": 1},
    "privaterec": {"content": ("title",), "dimensions": 4},
    "privaterec_local": {"content": ("title",), "dimensions": 4},
    "privrec": {"embedding": 3, "widths": (5,), "count_rounds": 1},
    "fmf_ldp": {"factors": 2},
}


class Some:
    """A ledger that lets some clients answer."""

    def __init__(self, permitted) -> None:
        self.permitted = permitted

    def permits(self, clients, *, round, multipliers=None):
        return self.permitted[clients]


class Tapped:
    """A channel that notes the types of what it delivers."""

    def __init__(self, name: str) -> None:
        self.inner, self.seen = channel(name), []
        self.name, self.delivers = name, self.inner.delivers

    def carry(self, chunks, context):
        delivery = self.inner.carry(chunks, context)
        if isinstance(delivery, Sum):
            self.seen.append({k: v.dtype.name for k, v in delivery.total.items()})
        return delivery


def simulations(name: str, mechanism: str, through: str, sampler):
    kind = method_class(name)
    plan = Plan(
        USERS,
        rounds=3,
        sampler=sampler,
        channel=through,
        delta=1e-6,
        target_epsilon=None if mechanism == "none" else 5.0,
    )
    settings = SMALL.get(name, {})
    if mechanism == "published":
        left = ("count_rounds", "head")  # what papers lack
        settings = {k: v for k, v in settings.items() if k not in left}
        settings["mode"] = "paper"
    protection = kind.mechanisms[mechanism]()
    method: Method = kind(**settings, privacy=protection).calibrated(plan)
    for permitted in (np.ones(USERS, bool), np.arange(USERS) == 4, np.zeros(USERS)):
        yield Simulation(
            *(method, plan, WORLD.catalog, WORLD.profiles, WORLD.shards),
            Key.from_seed(3),
            ledger=Some(permitted.astype(bool)),
            channel=Tapped(through),
        )


def kinds(arrays):
    return {name: (value.dtype.name, value.shape) for name, value in arrays.items()}


DEAR = ("fofl", "nn_self", "privrec")  # ten seconds of torch, or of a compiler
EVERY = [
    (name, mechanism)
    for name in method_names()
    for mechanism in method_class(name).mechanisms
]


@pytest.mark.parametrize("through", ["direct", "secure_sum"])
@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        pytest.param(*one, marks=pytest.mark.slow if one[0] in DEAR else ())
        for one in EVERY
    ],
)
def test_nobody_one_and_all_give_the_same_types(name, mechanism, through):
    sampler = FixedSize(USERS) if mechanism == "published" else Everyone()
    try:
        worlds = [*simulations(name, mechanism, through, sampler)]
    except (Refused, ValueError) as reason:
        pytest.skip(str(reason))
    found = []
    for simulation in worlds:
        states = [state for state, _ in simulation.run(simulation.start())]
        servers = [(kinds(s.server.weights), kinds(s.server.memory)) for s in states]
        found.append((servers, simulation.channel.seen))
    assert found[0] == found[1] == found[2]
    assert bool(found[0][1]) is (simulation.channel.delivers is not Each)
