"""What crosses between clients and server: messages, their bytes, and the channels.

What belongs here: the two messages of a round that may be encoded (`Broadcast`,
`Reports`), the codec, and channels, which carry a cohort's reports and decide what the
server sees of them. What does not: anything that stays with a client; histories cannot
be imported here.

Before: `method.participate` makes reports. After: `aggregation` reads a delivery.
"""
