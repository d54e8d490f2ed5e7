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
    reports     likelihood ratios of what devices say for two inputs
    devices     the same for a method's own reports, and whether they are fresh
    one_shot    an estimate to watch a run by; never a guarantee
    auditing    all that a method claims, in one call: `audit`

What belongs here: tests that a wrong implementation fails, whatever it says of itself.
What does not: proofs. A passed audit proves nothing; a failed one refutes.

Before: a method, its noise calibrated to a plan. After: `tacit audit` prints the
checks, and the privacy card of a run holds them.
"""
