"""The Python API: what each command does, as a function that returns an object.

What belongs here: reading what a caller has (a DataFrame, a file, an experiment), and
objects that print, show themselves in a notebook and become DataFrames. What does not:
anything computed, which is in `experiment`, where the commands call it as well. The
functions are imported from `tacit` itself, when they are first asked for.
"""
