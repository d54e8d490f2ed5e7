"""The recommenders: our own and one file a paper. They do not import each other.

A method is found by name through the entry points `tacit.methods`; to add one, write
one file here, its line in `pyproject.toml`, and a test class on
`testing.MethodContract`. What two methods share is a function in `models`,
`mechanisms` or `aggregation`.
"""
