"""A value made safe to release, with its event and its server-side estimate.

on a trusted sum
    sum_mechanism        what a mechanism of sums is: bound, add, sensitivity, event
    clipping             joint L2 and L1 bounds over whole trees
    gaussian             Gaussian sums; the same for one client's report
    laplace              Laplace sums, bounded in L1
    skellam              integer sums; noise that clients can add in shares
    adaptive_clip        a clip that follows a quantile of the norms
    personal_budgets     public groups of users with budgets of their own
    banded_noise         noise correlated over rounds, for training without sampling
    item_selection       the items that enough users have, where none are declared
on one client's report
    randomized_response  one of k values
    flipped_bits         every bit of a row
    one_bit, spread_bits vectors: a few bits of them
    priv_unit            the whole vector
    private_attention    interests, noisy; padding hides single interactions
    label_choice         the clicked item of an impression
    integer_coins, true_normal
                         their coins and noise, within a bound that is paid for
in paper mode only
    published            the papers' own mechanisms, as history

What belongs here: frozen dataclasses that bound a contribution, add the noise and know
their own event. The object that adds the noise is the object that the ledger reads, so
what is claimed and what is done cannot part. What does not: who is sampled and for how
many rounds (`sampling` wraps the event of one round), what an event costs
(`accounting`), what a server makes of a noisy sum (`aggregation`).

A *central* mechanism trusts whoever sums: clients send bounded contributions, and the
channel adds the noise before the server sees the total. Bounded alone is not private.

Before: a client's `local_update` made a raw update. After: `transport` carries what
`privatize` gave, and the channel `secure_sum` calls `add`.
"""
