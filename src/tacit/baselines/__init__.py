"""Centralised rankers to stand beside the private ones, behind one `Ranker` protocol.

They see everybody's history, which is what Tacit exists to avoid; they are here to be
compared with. What does not belong here: anything that a client runs.
"""
