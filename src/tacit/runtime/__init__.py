"""Rounds, played: cohorts drawn, clients asked, deliveries aggregated, state kept.

What belongs here: the round (written once), simulation of a population, one real device
with its ledger, checkpoints, run directories. What does not: any particular method; a
runtime is handed one. Metrics of private users are not collected here; in simulation
they stand under `simulation_only`.
"""
