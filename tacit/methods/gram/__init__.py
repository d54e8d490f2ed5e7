"""Our own method: `method.py` has the protocol, `protection.py` what protects it."""

from tacit.methods.gram.method import Gram

__all__ = ["Gram"]
