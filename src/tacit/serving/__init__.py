"""Recommendations, ranked on the device from public weights and a private history.

What belongs here: exact top-k, the client's ranking, a user's taste stored on the
client, models on disk, for Python and as ONNX. What does not: training, and any method
by name. Nothing here imports torch.
"""
