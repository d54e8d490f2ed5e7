"""Mult-VAE (Liang et al. 2018): the network, its inputs, and a cohort's gradients.

network       shapes, first weights, and the forward pass a client ranks with (numpy)
inputs        histories as sparse rows, what a training pass drops and draws, priors
gradients     every client's gradient as factors, from one pass for all
counted_head  the most counted items, which the network knows, and the others
"""

from tacit.models.mult_vae.inputs import Held, Pass, Prior
from tacit.models.mult_vae.network import Init, Network

__all__ = ["Held", "Init", "Network", "Pass", "Prior"]
