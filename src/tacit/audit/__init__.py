"""Does the code do what its account says? Measured, on the code that runs.

    claims      what a method's own releases promise, read from their events
    checks      one claim held against one measurement; all of them together
    estimates   lower bounds from what was seen, each with its chance of a false alarm
    worlds      an invented catalog and people, as large as the audit needs
    canaries    updates planted where a device's own would be, before `privatize`
    units       reports and totals in units of the noise that is stated
    observing   canaries in a run: what they send, what the server sees
    sums        noisy sums: bound, scale, law and independence of the noise, mu
    empty_report  whether sums are divided by the planned size
    draws       the noise by the million: repeats, lags, tails, grid
    liars       reports that no honest client would send, and what they move
    delivered   the bytes that a server sees: types, grid, noise of nobody
    replay      whether the server follows from what was delivered alone
    alone       whether a report follows from its client alone
    mixing      whether a relay delivers below its minimum
    cohorts     who is asked, against the event of the sampler
    books       plan, statement, ledger and channel, recomputed from each other
    closed_forms  the exact epsilon of a few releases, in formulas of its own
    reports     likelihood ratios of what devices say for two inputs
    devices     the same for a method's own reports, and whether they are fresh
    one_shot    an estimate to watch a run by; never a guarantee
    auditing    all that a method claims, in one call: `audit`

What belongs here: tests that a wrong implementation fails, whatever it says of itself.
What does not: proofs. A passed audit proves nothing; a failed one refutes.

Before: a method, its noise calibrated to a plan. After: `tacit audit` prints the
checks, and the privacy card of a run holds them.
"""
