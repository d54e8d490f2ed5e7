"""Recommendations over HTTP: a server that ranks for private queries, and its client.

    answer            the bytes of an answer, of one length for all users
    offer             all that a server gives away: model, candidates, basis, lists
    basis             the mechanism of queries, as bytes
    model_document    what `GET /v1/model` says, as a type that both sides check
    metrics           counts of requests, as text for Prometheus
    batches           queries that arrive together are ranked together
    application       the endpoints
    server            a port, uvicorn, and an end that finishes what was begun
    http_protocol     HTTP with limits on slow heads, and bodies without copies
    run_offer         the offer of a run directory
    client            fetches, checks digests, ranks by itself or sends its query

Rounds over several operators begin here, too:

    manifest, signing one round, as all operators of a channel sign it; what they check
    form              the bytes of one phase's reports, by channel

Their services are in `tacit.service.federation` and `tacit.service.relay`.

The server knows queries and nothing else of users: it is handed an offer, keeps no
query and writes none into a log. What a query says and costs is decided in
`tacit.serving`, which knows nothing of HTTP.

All of it comes with the extra `serve`; without it nothing else is missing.
"""
