"""FMF-LDP: `method.py` has the protocol, `protection.py` what a device sends."""

from tacit.methods.fmf_ldp.method import FmfLdp

__all__ = ["FmfLdp"]
