"""A multi-layer network over features of users, situations and items; no ids.

    describing what is there to know of items
    inputs     features -> rows of one table of embeddings, and numbers
    network    shapes, starting weights, scores; all that serving needs
    items      the catalog as the network reads it, a part of every broadcast
    blueprint  a network before its catalog is known
    labels     histories as labelled examples
    clients    a broadcast, profiles and histories in; movement or adapted weights out
    examples   what clients learn from
    client     one client's gradient step
    compiled   the steps of many, by a kernel
    training   many clients, many steps
    maml       gradients through training, by torch
    central    all data in one place, by torch
    torch_twin the same network for those who differentiate with torch

numpy throughout, except for the last three: a client adapts and ranks without torch.
"""

from tacit.models.feature_mlp.blueprint import Blueprint
from tacit.models.feature_mlp.cohort import Cohort
from tacit.models.feature_mlp.examples import Examples
from tacit.models.feature_mlp.inputs import Encoded, Fields
from tacit.models.feature_mlp.labels import Dislikes, Labelling
from tacit.models.feature_mlp.network import Activation, Network
from tacit.models.feature_mlp.schedule import Schedule
from tacit.models.feature_mlp.training import train

__all__ = [
    "Activation",
    "Blueprint",
    "Cohort",
    "Dislikes",
    "Encoded",
    "Examples",
    "Fields",
    "Labelling",
    "Network",
    "Schedule",
    "train",
]
