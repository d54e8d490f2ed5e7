"""Events to epsilon. Knows what was released, never who released it.

    events.py         our words beside dp-accounting's: pure, padded, shuffled, Skellam
    decomposition.py  events taken apart into elementary releases and their counts
    epsilon.py        epsilon of an event, and of several releases together
    pld.py            an elementary release -> its privacy loss distribution
    profiles.py       Gaussians that saw a user with some probability
    lattice.py        losses composed on a lattice of their own
    shuffling.py      the clones bound
    rdp.py            Rényi divergence: the cross-check, and Skellam noise
    views.py          participations, for those who see the cohorts
    calibration.py    the noise that meets a target
    ftrl.py           banded noise for training without sampling
    published.py      bounds of the papers, to reproduce their tables

dp-accounting (pinned) does the arithmetic of composition; what is here chooses, wraps
its traps (T1 to T4, docs/privacy.md), and adds what it lacks. Every figure is an upper
bound. The library takes a second to import, so only `events` imports it at once.
"""
