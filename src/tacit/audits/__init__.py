"""Does the code do what its account says? Measured, on the code that runs.

    claims            what a method's own releases promise, read from their events
    checks            one claim held against one measurement; all of them together
    lower_bounds      bounds from what was seen, each with its chance of a false alarm
    small_world       an invented catalog and users, as large as the audit needs
    canaries          updates planted where a client's own would be, before `privatize`
    noise_units       reports and totals in units of the noise that is stated
    canary_run        canaries in a run: what they send, what the server sees
    noisy_sums        bound, scale, law and independence of the noise, mu
    channel_and_server_noise  whether both bound alike and add the same noise
    empty_report      whether sums are divided by the planned size
    noise_draws       the noise by the million: repeats, lags, tails, grid
    lying_reports     reports that no honest client would send, and what they move
    whole_numbers     limits, reports and draws of a release, one by one
    stream_draws      the draws of a noise stream, decided anew from blocks of AES
    two_aggregators   what one of two aggregators sees of a single victim
    masked_clients    what hides a client under masks, and what a server is refused
    delivered_bytes   what a server sees: types, grid, noise of nobody
    server_replay     whether the server follows from what was delivered alone
    report_isolation  whether a report follows from its client alone
    shuffler_minimum  whether a relay delivers below its minimum, or two aggregators
    sampled_cohorts   who is asked, against the event of the sampler
    cross_checks      plan, statement, ledger and channel, recomputed from each other
    written_ledger    the ledger.json of a run, against each group's own account
    closed_forms      the exact epsilon of a few releases, in formulas of its own
    likelihood_ratios  ratios of what clients say for two inputs
    local_reports     the same for a method's own reports, and whether they are fresh
    served_queries    the same for queries, and whether each is in the ledger
    one_shot          an estimate to watch a run by; never a guarantee
    audit_method      all that a method claims, in one call: `audit`

What belongs here: tests that a wrong implementation fails, whatever it says of itself.
What does not: proofs. A passed audit proves nothing; a failed one refutes.

Before: a method, its noise calibrated to a plan. After: `tacit audit` prints the
checks, and the privacy card of a run holds them.
"""
