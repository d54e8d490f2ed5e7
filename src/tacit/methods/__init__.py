"""Methods, one file per paper; papers do not import each other.

What belongs here: a paper's procedures in terms of `tacit.method`, and what the five
papers compare with (`rivals`). What does not: mathematics that two papers share
(`models`), protection (`privacy`), noise (`mechanisms`), summing (`aggregation`).
"""

# Classes by their names in `[method] name`. A class is imported when it is asked for:
# importing all of them would slow down every command.
METHODS = {
    "dpals": "tacit.methods.rivals.dpals:Dpals",
    "dplcf": "tacit.methods.rivals.dplcf:Dplcf",
    "dpmf": "tacit.methods.rivals.dpmf:Dpmf",
    "dpvae": "tacit.methods.dpvae:DpVae",
    "federated_popularity": "tacit.methods.federated_popularity:FederatedPopularity",
    "fedvae": "tacit.methods.fedvae:FedVae",
    "fmf_ldp": "tacit.methods.fmf_ldp:FmfLdp",
    "fofl": "tacit.methods.rivals.fofl:Fofl",
    "gram": "tacit.methods.gram:Gram",
    "nn_self": "tacit.methods.rivals.nn_self:NnSelf",
    "privaterec": "tacit.methods.privaterec:PrivateRec",
    "privaterec_local": "tacit.methods.privaterec_local:PrivateRecLocal",
    "privrec": "tacit.methods.privrec:PrivRec",
}
