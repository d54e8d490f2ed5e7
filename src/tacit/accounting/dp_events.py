"""The events of dp_accounting, without its accountants.

An event is a few numbers; the package that defines it loads scipy.signal and with it
scipy.stats, about a second of CPU before anything is said. So the one module with the
events is loaded by itself, under its own name: whoever imports the package afterwards
finds the same classes.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

_NAME = "dp_accounting.dp_event"


def _loaded() -> ModuleType:
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    package = find_spec("dp_accounting")  # finds it, and runs nothing
    assert package is not None  # a dependency of ours
    assert package.origin is not None
    spec = spec_from_file_location(_NAME, Path(package.origin).with_name("dp_event.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[_NAME] = module  # before it runs, as the import system does
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from dp_accounting.dp_event import (
        ComposedDpEvent,
        DpEvent,
        GaussianDpEvent,
        LaplaceDpEvent,
        NonPrivateDpEvent,
        NoOpDpEvent,
        PoissonSampledDpEvent,
        RandomizedResponseDpEvent,
        RepeatAndSelectDpEvent,
        SampledWithoutReplacementDpEvent,
        SelfComposedDpEvent,
        TruncatedSubsampledGaussianDpEvent,
        ZCDpEvent,
    )
else:
    _events = _loaded()
    ComposedDpEvent = _events.ComposedDpEvent
    DpEvent = _events.DpEvent
    GaussianDpEvent = _events.GaussianDpEvent
    LaplaceDpEvent = _events.LaplaceDpEvent
    NoOpDpEvent = _events.NoOpDpEvent
    NonPrivateDpEvent = _events.NonPrivateDpEvent
    PoissonSampledDpEvent = _events.PoissonSampledDpEvent
    RandomizedResponseDpEvent = _events.RandomizedResponseDpEvent
    RepeatAndSelectDpEvent = _events.RepeatAndSelectDpEvent
    SampledWithoutReplacementDpEvent = _events.SampledWithoutReplacementDpEvent
    SelfComposedDpEvent = _events.SelfComposedDpEvent
    TruncatedSubsampledGaussianDpEvent = _events.TruncatedSubsampledGaussianDpEvent
    ZCDpEvent = _events.ZCDpEvent

__all__ = [
    "ComposedDpEvent",
    "DpEvent",
    "GaussianDpEvent",
    "LaplaceDpEvent",
    "NoOpDpEvent",
    "NonPrivateDpEvent",
    "PoissonSampledDpEvent",
    "RandomizedResponseDpEvent",
    "RepeatAndSelectDpEvent",
    "SampledWithoutReplacementDpEvent",
    "SelfComposedDpEvent",
    "TruncatedSubsampledGaussianDpEvent",
    "ZCDpEvent",
]
