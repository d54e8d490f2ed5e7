"""What is refused before the first fit, and how it is said."""

import pytest

from tacit import memory
from tacit.errors import MissingExtra, Refused
from tacit.experiment import needs
from tacit.experiment.settings import EvaluateSettings


def refuse(names, **sizes):
    needs.refuse_too_large(
        names, EvaluateSettings(), **sizes, option=lambda left: ",".join(left) or "none"
    )


def test_a_matrix_beyond_any_limit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: None)
    with pytest.raises(Refused, match="ease needs 54 GiB for 85,000 items") as refusal:
        refuse(["popularity", "ease"], n_users=10, n_items=85_000)
    assert str(refusal.value).endswith("leave ease out with popularity")


def test_what_fits_the_free_memory_passes(monkeypatch):
    sizes = {"n_users": 10, "n_items": 1000}  # 4 MB
    monkeypatch.setattr(memory, "available", lambda: 10**7)
    refuse(["ease", "item_knn"], **sizes)
    monkeypatch.setattr(memory, "available", lambda: 10**6)
    with pytest.raises(Refused, match="are free: leave ease out with none"):
        refuse(["ease"], **sizes)
    refuse(["item_knn"], **sizes)


def test_a_module_that_is_not_there_is_named_with_who_needs_it(monkeypatch):
    monkeypatch.setattr(needs, "find_spec", lambda module: None)
    needs.refuse_missing_extras(["gram"], ["ease"])
    with pytest.raises(MissingExtra, match="torch, which nn_self needs,"):
        needs.refuse_missing_extras(["nn_self"], [])
