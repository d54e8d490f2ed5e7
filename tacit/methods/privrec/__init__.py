"""PrivRec: a network over features, learnt for fast adaptation on the device."""

from tacit.methods.privrec.method import PrivRec

__all__ = ["PrivRec"]
