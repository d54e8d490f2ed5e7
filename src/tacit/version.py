"""The version and the name to install by, where every layer may read them."""

__version__ = "0.1.0"
# What `pip install` is told. On the public index `tacit` is somebody else's project.
DISTRIBUTION = "tacit-recommender"
