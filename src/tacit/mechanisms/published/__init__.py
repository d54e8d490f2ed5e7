"""The papers' own mechanisms, for `mode="paper"` only. None of them is recommended.

    here                 paper               what it really gives
    classic_sigma        DP-VAE, PrivateRec  (eps, delta) for eps < 1 only; for large
                                             eps the noise is too small
    PublishedAttention   PrivateRec, Alg. 2  the event of its actual noise: weights can
                                             be sqrt(2) theta apart, not theta
    PublishedLabels      PrivateRec, Alg. 3  nothing: the click is always a candidate
    PublishedGradient    DP-FedRec           eps sqrt(d) for d numbers at delta 0; with
                                             a delta eps² / 2-zCDP, at the user level
    PublishedVector      PrivateRec, VDP     the same, of a user vector to be served
    PublishedClipping    DP-PrivRec, Alg. 2  a bit that is always 1, a bound that falls
                                             whatever happens, noise that the step size
                                             does not scale
    PublishedSum         DP-PrivRec, Alg. 2  the same, as a round's mechanism of sums
    PublishedBits        FMF-LDP, Alg. 1     count · eps for a report, as claimed; the
                                             estimate is count times too large
    optimal_clip         DP-VAE, Alg. 2      nothing: bound and noise tell how large the
                                             gradients are
    noisy_prior          DP-VAE, Eq. 11      eps for one number, while 2 K leave;
                                             variances come out negative

The *Guarantee* of each says what can be proven, which is what its event holds. What a
sound run uses instead stands one level up, under the same idea's name.
"""

from tacit.mechanisms.published.classic import classic_sigma
from tacit.mechanisms.published.dpvae import (
    bisected,
    clip_error,
    noise_decides,
    noisy_prior,
    optimal_clip,
)
from tacit.mechanisms.published.fmf_ldp import PublishedBits
from tacit.mechanisms.published.privaterec import (
    PublishedAttention,
    PublishedGradient,
    PublishedLabels,
    PublishedVector,
)
from tacit.mechanisms.published.privrec import PublishedClipping, PublishedSum

__all__ = [
    "PublishedAttention",
    "PublishedBits",
    "PublishedClipping",
    "PublishedGradient",
    "PublishedLabels",
    "PublishedSum",
    "PublishedVector",
    "bisected",
    "classic_sigma",
    "clip_error",
    "noise_decides",
    "noisy_prior",
    "optimal_clip",
]
