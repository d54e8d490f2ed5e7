"""What somebody could try: attacks on privacy, and on training.

leaks       guess a history or a member from what is sent, with a mechanism off and on
poisoning   lying clients among honest ones, and what stops them

What belongs here: attacks and the harness that runs them. What does not: lower bounds
on a claimed epsilon (`audit`), defenses (`aggregation`, `mechanisms`).
"""
