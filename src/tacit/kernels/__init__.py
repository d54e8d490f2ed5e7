"""Compiled twins: numba kernels for the few loops where numpy is too slow.

Every kernel has a plain numpy twin in the module that calls it, and a test that the two
agree. Nothing here is imported before it is needed (loading numba costs 0.3 s), and the
kernels are cached on disk. Those that use several cores are safe under threads and
after a fork (`threads`). No kernel knows what its numbers mean.
"""
