"""The papers' own competitors, where they are federated or private.

What belongs here: one file per rival, a `Method` like any other, so that it is planned,
accounted for and judged as they are. Competitors that hold everybody's data are in
`baselines`.
"""
