"""Mult-VAE as the paper writes it: one user at a time, by autograd."""

import numpy as np
import torch


def gradient(network, weights, held, passes, user, *, beta, is_mean=False, rate=0.0):
    """The mean gradient of one user, of `passes` local steps."""
    start = {name: torch.tensor(value) for name, value in weights.items()}
    total = {name: torch.zeros_like(value) for name, value in start.items()}
    for one in passes:
        now = {n: (start[n] - rate * total[n]).requires_grad_() for n in start}
        _loss(network, now, held, one, user, beta, is_mean).backward()
        for name, value in now.items():
            total[name] += value.grad
    return {name: (value / len(passes)).numpy() for name, value in total.items()}


def scores_of(network, weights, x, noise=None):
    """What the decoder says, and the KL divergence of the latent."""
    *inner, last = network.encoder
    for name in inner:
        x = torch.tanh(x @ weights[name][:-1] + weights[name][-1])
    z, kl = x @ weights[last][:-1] + weights[last][-1], torch.tensor(0.0)
    if network.is_variational:
        mean, log_variance = z[..., : network.latent], z[..., network.latent :]
        kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum()
        z = mean if noise is None else mean + noise * (log_variance / 2).exp()
    *inner, last = network.decoder
    for name in inner:
        z = torch.tanh(z @ weights[name][:-1] + weights[name][-1])
    if network.is_tied:
        first = weights[network.encoder[0]][:-1]
        return z @ first.T + weights[last][-1], kl
    return z @ weights[last][:-1] + weights[last][-1], kl


def _loss(network, weights, held, one, user, beta, is_mean):
    x = torch.tensor(held.dense(one.values)[user])
    target = torch.tensor(held.dense(np.ones(len(held.columns)))[user])
    noise = torch.tensor(one.noise[user]) if network.is_variational else None
    scores, kl = scores_of(network, weights, x, noise)
    loss = -(target * torch.log_softmax(scores, 0)).sum() + beta * kl
    n = int(target.sum())
    return loss * (0.0 if n == 0 else 1 / n if is_mean else 1.0)
