"""FedVAE: `method.py` has the protocol, `protection.py` what protects it."""

from tacit.methods.fedvae.method import FedVae

__all__ = ["FedVae"]
