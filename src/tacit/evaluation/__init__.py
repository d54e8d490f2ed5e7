"""From a ranker and held-out users to numbers one can compare.

    scores -> ranking (count what stands above each target) -> metrics -> results

What belongs here: protocols, ranks, metrics, significance. What does not: anything that
imports a method; a ranker comes in as a function from histories to scores.
`released_metric` is handed a method, to measure it on private users within their
budget.
"""
