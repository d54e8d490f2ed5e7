"""Tacit: a recommender that learns from everyone and knows no one."""

__version__ = "0.1.0"
