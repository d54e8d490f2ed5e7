"""A multi-layer network over features of people, situations and items; no ids.

    inputs     features -> rows of one table of embeddings, and numbers
    network    shapes, starting weights, scores; all that serving needs
    batches    what clients learn from, and which of it in a step
    stack      the weights of some clients, and one gradient step of all
    training   many clients at once, many steps
    torch_twin the same network for those who differentiate with torch

numpy throughout, except for the twin: a device adapts and ranks without torch.
"""

from tacit.models.feature_mlp.batches import Examples
from tacit.models.feature_mlp.inputs import Encoded, Fields
from tacit.models.feature_mlp.network import Activation, Network
from tacit.models.feature_mlp.schedule import Schedule
from tacit.models.feature_mlp.training import train

__all__ = [
    "Activation",
    "Encoded",
    "Examples",
    "Fields",
    "Network",
    "Schedule",
    "train",
]
