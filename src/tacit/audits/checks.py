"""One claim held against one measurement, and all of them together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """What is claimed, what was measured, and whether the two agree."""

    name: str
    claimed: float
    measured: float
    ok: bool
    detail: str  # what was compared, how, and with which chance of a false alarm
    alarm: float = 0.0  # the chance that an honest method fails; 0: nothing is drawn

    @classmethod
    def at_most(
        cls,
        name: str,
        measured: float,
        *,
        claimed: float,
        slack: float,
        detail: str,
        alarm: float = 0.0,
    ) -> Check:
        """Holds if the measurement is not above the claim; not-a-number never is."""
        is_held = bool(measured <= claimed + slack)
        return cls(name, claimed, measured, is_held, detail, alarm)

    def to_json(self) -> dict[str, Any]:
        """Plain data; a measurement that is not finite is null."""
        return {
            "name": self.name,
            "claimed": _finite(self.claimed),
            "measured": _finite(self.measured),
            "ok": self.ok,
            "detail": self.detail,
            "false_alarm": self.alarm,
        }


@dataclass(frozen=True)
class Estimate:
    """A figure to watch by, with its interval. It bounds and refutes nothing.

    `low` and `high` are a 95 % interval from `canaries` canaries of one run.
    """

    name: str
    claimed: float
    estimated: float
    low: float
    high: float
    canaries: int
    label: str = "monitoring, never a guarantee"

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data; a figure that is not finite is null."""
        return {
            "name": self.name,
            "claimed": _finite(self.claimed),
            "estimated": _finite(self.estimated),
            "low": _finite(self.low),
            "high": _finite(self.high),
            "canaries": self.canaries,
            "label": self.label,
            "remark": self.remark,
        }

    @property
    def is_above(self) -> bool:
        """Whether it lies above the claim, as it often does by chance."""
        return not self.estimated <= self.claimed

    @property
    def remark(self) -> str:
        """What the figure is, and what it says of the claim if it lies above."""
        said = (
            f"an estimate from {self.canaries} canaries of one run, with 95 % between "
            f"{self.low:.2f} and {self.high:.2f}; the claimed figure is the one that "
            "is proven"
        )
        if not self.is_above:
            return said
        if self.low <= self.claimed:
            return f"{said}, and the interval contains it: no violation"
        return (
            f"{said}, and the interval lies above it, as it does by chance in one "
            "honest run of forty: audit again with another --seed"
        )


@dataclass(frozen=True)
class Audit:
    """What was checked of one method, and what could not be."""

    subject: str  # the method and the settings that its claims depend on
    checks: tuple[Check, ...]
    monitoring: tuple[Estimate, ...] = ()
    not_audited: tuple[str, ...] = ()  # releases, each with the reason

    @property
    def ok(self) -> bool:
        """Whether every check holds, so that nothing was refuted."""
        return all(check.ok for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that do not hold."""
        return tuple(check for check in self.checks if not check.ok)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
