"""From a data set to what each client holds.

    source -> Dataset (Interactions, Catalog, Profiles) -> split -> Shards
                       and, for news, Impressions

What belongs here: reading, checking, caching, splitting. What does not: models,
ranking, anything random that is not addressed by a key. The catalog is public;
interactions and shards are private and may not be imported by `aggregation` or
`transport`.
"""
