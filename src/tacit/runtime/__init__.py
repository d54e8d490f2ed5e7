"""The rounds of a run: draw a cohort, ask clients, aggregate, save the state.

What belongs here: the round (written once), simulation of a population, one real client
with its ledger, checkpoints, run directories. What does not: any particular method; a
runtime is handed one. Metrics of private users are not collected here; in simulation
they stand under `simulation_only`.
"""
