"""Centralised rankers to stand beside the private ones, behind one `Ranker` protocol.

They see everybody's history, which is what Tacit exists to avoid; they are here to be
compared with. What does not belong here: anything that a client runs.
"""

# Classes by their names in `[evaluate] baselines`. Other packages add theirs as entry
# points `tacit.baselines`. A class is imported when it is asked for.
BASELINES = {
    "bpr": "tacit.baselines.bpr:Bpr",
    "content": "tacit.baselines.content:Content",
    "ease": "tacit.baselines.ease:Ease",
    "ials": "tacit.baselines.ials:Ials",
    "item_knn": "tacit.baselines.item_knn:ItemKnn",
    "lightfm": "tacit.baselines.lightfm:LightFm",
    "markov": "tacit.baselines.markov:Markov",
    "mult_vae": "tacit.baselines.mult_vae:MultVae",
    "naml": "tacit.baselines.news_central:NamlCentral",
    "nrms": "tacit.baselines.news_central:NrmsCentral",
    "plm_nr": "tacit.baselines.news_central:PlmNrCentral",
    "popularity": "tacit.baselines.popularity:Popularity",
    "pure_svd": "tacit.baselines.pure_svd:PureSvd",
    "random": "tacit.baselines.random:Random",
    "recent_popularity": "tacit.baselines.recent_popularity:RecentPopularity",
    "user_knn": "tacit.baselines.user_knn:UserKnn",
}

# Those that fit in seconds: chosen on validation users unless a file sets them.
TUNED = frozenset(
    {
        *("ease", "ials", "item_knn", "markov"),
        *("pure_svd", "recent_popularity", "user_knn"),
    }
)

# Those that read vectors of texts, which `[data] text_vectors` makes.
READ_TEXTS = frozenset({"content", "plm_nr"})
