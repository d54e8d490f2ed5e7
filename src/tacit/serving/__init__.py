"""Recommendations: ranked by the client, or by a server from a private query.

On the device, which is the default, nothing leaves:

    recommender   public weights and a private history, ranked by the client
    taste         what a client knows of its user, stored
    topk          exact lists of the best k
    model_file    models on disk; `onnx_file` for clients without Python

Where a server ranks, a client says as little as a budget allows:

    query             what leaves: version, mode, payload of fixed length
    queryable         the vectors of a model's items and users
    population        invented users, from a public model alone
    interests         groups of like-minded users, from public or released numbers
    trained_basis     a basis that training made, in the place of invented interests
    released_interests  means and shares of real users, as a release of its own
    query_mechanism   user vector -> what is said -> user vector, and what it costs: krr
    noisy_attention   the same for dpa;   noisy_vector   for vdp
    linear_decoder    noisy numbers -> user vectors, for both
    settings          mode, epsilon and a few more -> the served model
    served_model      all that client and server share
    serving_client    one release per refresh period, in the ledger before it leaves
    query_server      what was said -> the best items of the pool
    serve             one user's list, by the server or else by the client
    sensitive         categories that a user marks, and what is covered then
    serving_account   what being served costs over time

What does not belong here: training, and any method by name. Nothing here imports torch.
"""
