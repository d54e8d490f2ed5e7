"""Mult-VAE as the paper writes it: one user at a time, by autograd."""

import numpy as np
import torch


def gradient(
    network, weights, held, passes, user, *, beta, is_mean=False, rate=0.0, prior=None
):
    """The mean gradient of one user, of `passes` local steps."""
    start = {name: torch.tensor(value) for name, value in weights.items()}
    total = {name: torch.zeros_like(value) for name, value in start.items()}
    for one in passes:
        now = {n: (start[n] - rate * total[n]).requires_grad_() for n in start}
        target = held.dense(np.ones(len(held.columns)))[user]
        loss = _loss(network, now, held, one, user, target, beta, prior)
        n = int(target.sum())
        (loss * (0.0 if n == 0 else 1 / n if is_mean else 1.0)).backward()
        for name, value in now.items():
            total[name] += value.grad
    return {name: (value / len(passes)).numpy() for name, value in total.items()}


def example_gradient(network, weights, held, one, user, column, *, beta, prior=None):
    """The gradient of the loss of one user's one item; the input is the history."""
    now = {n: torch.tensor(value, requires_grad=True) for n, value in weights.items()}
    target = np.arange(held.n_items) == column
    loss = _loss(network, now, held, one, user, target, beta, prior)
    loss.backward()
    return {name: value.grad.numpy() for name, value in now.items()}


def scores_of(network, weights, x, noise=None, prior=None):
    """What the decoder says, and the KL divergence of the latent from its prior."""
    *inner, last = network.encoder
    for name in inner:
        x = torch.tanh(x @ weights[name][:-1] + weights[name][-1])
    z, kl = x @ weights[last][:-1] + weights[last][-1], torch.tensor(0.0)
    if network.is_variational:
        mean, log_variance = z[..., : network.latent], z[..., network.latent :]
        kl = _divergence(mean, log_variance, prior)
        z = mean if noise is None else mean + noise * (log_variance / 2).exp()
    *inner, last = network.decoder
    for name in inner:
        z = torch.tanh(z @ weights[name][:-1] + weights[name][-1])
    if network.is_tied:
        first = weights[network.encoder[0]][:-1]
        return z @ first.T + weights[last][-1], kl
    return z @ weights[last][:-1] + weights[last][-1], kl


def _divergence(mean, log_variance, prior):
    from torch.distributions import Normal, kl_divergence

    if prior is None:
        return 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum()
    to = Normal(torch.tensor(prior[0]), torch.tensor(prior[1]).sqrt())
    return kl_divergence(Normal(mean, (log_variance / 2).exp()), to).sum()


def _loss(network, weights, held, one, user, target, beta, prior):
    x = torch.tensor(held.dense(one.values)[user])
    noise = torch.tensor(one.noise[user]) if network.is_variational else None
    own = None if prior is None else (prior.mean[user], prior.variance[user])
    scores, kl = scores_of(network, weights, x, noise, own)
    return -(torch.tensor(target) * torch.log_softmax(scores, 0)).sum() + beta * kl
