"""A multi-layer network over features of users, situations and items; no ids.

    item_description  the features of items that a network reads
    inputs            features -> rows of one table of embeddings, and numbers
    network           shapes, starting weights, scores; all that serving needs
    items             the catalog as the network reads it, in every broadcast
    blueprint         a network before its catalog is known
    labels            histories as labelled examples
    cohort            broadcast, profiles, histories -> movement or adapted weights
    examples          what clients learn from
    schedule          passes, mini-batches, learning rate, pull to the start
    plain_pass        one client's gradient steps, in numpy
    compiled_pass     the steps of many clients, by a kernel
    training          many clients, many steps
    maml              gradients through training, by torch
    central           training on everybody's examples at once, by torch
    torch_twin        the same network for those who differentiate with torch

All of it is numpy except for the last three: a client adapts and ranks without torch.
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
