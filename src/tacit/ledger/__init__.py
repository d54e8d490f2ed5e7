"""What a client has said so far, what that amounts to, and when it says no more.

    terms.py      what a client agrees to for a run: its releases, and when; as JSON
    budget.py     participations -> epsilon for each unit and view; caps
    cohort.py     array form: every client of a simulation, one count per part of a run
    durable.py    durable form: one client, one SQLite file
    decisions.py  what only its owner decides: to accept one in doubt, to erase
    snapshot.py   the file at one moment, and whether it can be relied on
    rows.py       the rows that count, and what authenticates them
    records.py    what stands in it
    schema.py     its tables, the beginning of its chain, and what its anchor notes

Two forms, one rule: both ask `budget`, so a simulated client refuses exactly when a
real one does. What belongs here: events, counts, caps, bytes that must not be said
twice. What does not: methods, plans and messages; `runtime.ledger` turns a method's
releases into terms, and `runtime.client` ties a ledger to a real client.
"""
