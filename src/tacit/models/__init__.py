"""Mathematics that methods share: arrays in, arrays out, no users and no messages.

Belongs here: what two methods could use, such as a decomposition, a gradient or a loss.
Does not: who computes it, what leaves a device (`methods`), what makes it safe to
release (`mechanisms`).
"""
