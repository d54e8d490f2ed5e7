"""Whatever torch trains has the same bytes again, on two threads."""

import ast
from pathlib import Path

import numpy as np
import pytest
from models.feature_mlp.small import examples, keys, network
from models.news_encoders.small import N_NEWS, catalog

import tacit
from tacit.keys import Key
from tacit.models.deterministic_torch import deterministic
from tacit.models.feature_mlp.central import CentralTraining
from tacit.models.feature_mlp.maml import InnerLoop, meta_gradients
from tacit.models.news_encoders import Batch, Naml, Nrms, Vocabulary

torch = pytest.importorskip("torch")
SOURCES = Path(tacit.__file__).parent
HOME = SOURCES / "models" / "deterministic_torch.py"


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def wide():
    """So large that torch divides the work, and that two threads share a client."""
    net = network(embedding=64, widths=(16,), dtype="float32")
    return net, net.start(Key.from_seed(0)), examples(net, (200,) * 7)


def nn_self():
    """Two rounds of MAML, the second from where the first ended."""
    net, weights, every = wide()
    inner = InnerLoop(steps=1, batch=100, rate=0.1)
    for _ in range(2):
        found = meta_gradients(net, weights, every, inner=inner, keys=keys(7))
        weights = {n: value - found[n].mean(axis=0) for n, value in weights.items()}
    return weights


def privrec_in_one_place():
    net, start, every = wide()
    central = CentralTraining(epochs=2, batch=1400, rate=0.01)
    return central.learnt(net, start, every, key=Key.from_seed(1))


def of_clients(model):
    """The gradients of ten clients who read the same few words over and over."""
    draws, inputs = np.random.default_rng(0), model.inputs(catalog())
    own = Batch(
        draws.integers(0, N_NEWS, (10, 50)),
        draws.integers(0, N_NEWS, (10, 4, 5)),
        np.zeros((10, 4), np.int64),
    )
    weights = model.start(Key.from_seed(0), inputs, dtype="float32")
    tree = model.gradients(weights, inputs, own)
    total = model.total(weights, inputs, own)
    parts = {f"{n}{s}": p for n, v in tree.leaves.items() for s, p in v.parts.items()}
    return {**parts, **{f"total {name}": value for name, value in total.items()}}


TRAININGS = {
    "nn_self": nn_self,
    "privrec_central": privrec_in_one_place,
    "nrms": lambda: of_clients(Nrms(Vocabulary(None, 50, True))),
    "naml": lambda: of_clients(Naml(Vocabulary(None, 50, True))),
}


class Watching(torch.overrides.TorchFunctionMode):
    """Notes in which mode torch computes anything."""

    def __init__(self):
        super().__init__()
        self.modes = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.modes.add(torch.get_deterministic_debug_mode())
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", TRAININGS)
def test_nothing_is_computed_in_another_mode(name):
    """Other programs may keep the second core: then equal bytes show nothing."""
    with Watching() as watching:
        TRAININGS[name]()
    assert watching.modes == {2}


@pytest.mark.parametrize("name", TRAININGS)
def test_the_same_again_to_the_last_bit(name):
    once, again = (TRAININGS[name]() for _ in range(2))
    for part, value in once.items():
        assert value.tobytes() == again[part].tobytes(), part


def imports_torch(path):
    """Whether a module imports torch when it runs; for types alone does not count."""
    text = path.read_text()
    if "import torch" not in text and "from torch" not in text:
        return False
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    names = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    names += [
        node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    ]
    return any(name.partition(".")[0] == "torch" for name in names)


def test_torch_is_imported_in_one_place():
    assert [path for path in SOURCES.rglob("*.py") if imports_torch(path)] == [HOME]


def test_the_setting_of_the_program_around_us_comes_back():
    before = torch.get_deterministic_debug_mode()
    with deterministic():
        assert torch.get_deterministic_debug_mode() == 2
    assert torch.get_deterministic_debug_mode() == before
