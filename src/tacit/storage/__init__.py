"""Files that know when they are a copy, damaged or gone.

    anchor.py        what the machine remembers of a file outside of it: key and marks
    checksums.py     an HMAC over all rows, kept up to date row by row
    sqlite_file.py   one SQLite file: settings, transactions, disk errors as sentences
    store.py         all of it: what a service or a node keeps on its disk

A client's ledger stands on anchor and file, and has a chain of its own
(`tacit.ledger.rows`).
"""
