"""Our own method: `method.py` has the protocol, and says what the others have."""

from tacit.methods.gram.method import Gram

__all__ = ["Gram"]
