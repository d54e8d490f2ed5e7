"""What crosses between clients and server: messages, their bytes, and the channels.

What belongs here: the three messages that may be encoded (`Broadcast`, `Reports`,
`Queries`), the codec, and channels, which carry a cohort's reports and decide what
the server sees of them. What does not: anything that stays with a client; histories
cannot be imported here.

Before: `method.participate` makes reports. After: `aggregation` reads a delivery.
"""
