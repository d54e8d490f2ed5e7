"""What the server makes of a delivery: a mean, and a step with it.

What belongs here: aggregators, which say what deliveries they accept, and server
optimizers. What does not: noise (a mechanism), histories (cannot be imported here).
Before: `transport` delivers. After: a method's `aggregate` keeps the new weights.
"""
