"""What protects reports: one value per kind of protection, shared by all methods.

    privacy           what a protection is
    unprotected       none: reports leave as they are
    central_gaussian  Gaussian noise on a sum; fixed or moving clip, personal budgets
    local_report      what those share whose epsilon is that of a whole report
    local_priv_unit   every client randomises its whole report
    local_bits        every client votes about a few coordinates
    local_item        every client names one randomised item
    local_flips       every client flips the bits of its history
    local_clicks      every client names an interest and clicks, at random
    sensitive_clicks  the same for sensitive categories alone
    published         the papers' own, for mode = "paper"
    published_personal  the same, where clients add noise for epsilons of their own
    published_news    the same, for PrivateRec and its rival
    budgets           a plan's target -> the noise of each phase
    guarantees        the event of a round -> the six cells of a release

What belongs here: whatever decides a bound, a noise, an event and a printed epsilon.
This is the only package where they meet. What does not: how noise is drawn and a vector
clipped (`mechanisms`), what events cost (`accounting`), what a method sums up.

Before: a method's `phases` and `report_shape`. After: `method.SumMethod` derives the
layout, the noise and the releases of its rounds from the value chosen here.
"""

from tacit.privacy.central_gaussian import CentralGaussian
from tacit.privacy.local_bits import LocalBits
from tacit.privacy.local_clicks import LocalClicks, LocalNoisyClicks
from tacit.privacy.local_flips import LocalFlips
from tacit.privacy.local_item import LocalItem
from tacit.privacy.local_priv_unit import LocalPrivUnit
from tacit.privacy.privacy import Privacy
from tacit.privacy.published import PublishedClippedSum, PublishedVotes
from tacit.privacy.published_news import (
    PublishedAttentionNoise,
    PublishedGradientNoise,
)
from tacit.privacy.published_personal import PublishedPersonalNoise
from tacit.privacy.sensitive_clicks import SensitiveClicks
from tacit.privacy.unprotected import UNPROTECTED, Unprotected

__all__ = [
    "UNPROTECTED",
    "CentralGaussian",
    "LocalBits",
    "LocalClicks",
    "LocalFlips",
    "LocalItem",
    "LocalNoisyClicks",
    "LocalPrivUnit",
    "Privacy",
    "PublishedAttentionNoise",
    "PublishedClippedSum",
    "PublishedGradientNoise",
    "PublishedPersonalNoise",
    "PublishedVotes",
    "SensitiveClicks",
    "Unprotected",
]
