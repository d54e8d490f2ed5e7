"""Mathematics that methods share: arrays in, arrays out, no users and no messages.

What belongs here: what two methods could use, such as a decomposition, a gradient or a
loss. What does not: who computes it and what leaves a client (`methods`), and what
makes it safe to release (`mechanisms`).
"""
