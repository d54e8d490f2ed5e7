"""Invented worlds with a known answer: users, items, behavior and news from a seed.

What belongs here: how an invented user chooses and what an invented item is called.
`sources` offers these worlds by name, beside the data sets that somebody published.
"""
