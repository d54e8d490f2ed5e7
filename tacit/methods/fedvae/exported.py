"""FedVAE as a formula: `represent`, then `score`, for devices without Python."""

from __future__ import annotations

from tacit.models.formula import HISTORIES, Formula
from tacit.models.mult_vae import Network
from tacit.models.relations import places_by_count
from tacit.tree import Arrays


def formula(network: Network, weights: Arrays) -> Formula:
    """Scores of the head from histories; the other items follow, by their counts."""
    head = weights["head"]
    found = _scores(network, weights, HISTORIES.held().columns(head).unit(least=0.5))
    if "counts" not in weights:
        return found
    n_items = len(weights["counts"])
    places = places_by_count(weights["counts"])
    after = found.smallest() + (-1 - places / n_items)
    return found.placed(head, among=after, n_items=n_items)


def _scores(network: Network, weights: Arrays, x: Formula) -> Formula:
    """The network on histories of length 1: means in the middle, nothing drawn."""
    layers = {name: weights[name] for name in (*network.encoder, *network.decoder)}
    last = network.encoder[-1]
    layers[last] = layers[last][:, : network.latent]  # the means
    matrices = {n: Formula.constant(layer[:-1]) for n, layer in layers.items()}
    if network.is_tied:
        matrices[network.decoder[-1]] = matrices[network.encoder[0]].transposed()
    linear = (last, network.decoder[-1])
    for name, layer in layers.items():
        x = x @ matrices[name] + layer[-1]
        x = x if name in linear else x.tanh()
    return x
