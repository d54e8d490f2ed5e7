"""From a ranker and held-out people to numbers one can compare.

    scores -> ranking (count what stands above each target) -> metrics -> results

What belongs here: protocols, ranks, metrics, significance. What does not: anything that
imports a method; a ranker comes in as a function from histories to scores. `measured`
is handed a method, to measure it on private people within their budget.
"""
