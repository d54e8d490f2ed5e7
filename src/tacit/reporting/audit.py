"""An audit as tables and lines: what is claimed, what was measured, what holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from tacit.reporting.leaks import table as leak_table
from tacit.reporting.tables import Table

NOTHING = "nothing is promised, so there is nothing to audit"
_MECHANISM = "mechanism"  # the kind of what no audit of a method looks at
_TINY = 5e-5  # below it, four decimal places would show zero


def check_tables(document: Mapping[str, Any]) -> list[Table]:
    """One table per subject: what each check claims, measures and concludes."""
    checks = document["checks"]
    header = ("check", "claimed", "measured", "")
    found = []
    for subject in dict.fromkeys(line["subject"] for line in checks):  # in their order
        rows = tuple(
            (c["name"], _up(c["claimed"]), _shown(c["measured"]), _verdict(c))
            for c in checks
            if c["subject"] == subject
        )
        # Columns 1 and 2 are figures and stand at the right.
        found.append(Table(subject, header, rows, frozenset({1, 2})))
    return found


def notes(document: Mapping[str, Any]) -> list[str]:
    """What was only estimated, what was looked at, and what was not, one line each."""
    estimated = [_watched(line) for line in document["monitoring"]]
    not_audited = [
        f"not audited: {line['subject']}: {line['what']}"
        for line in document["not_audited"]
    ]
    return [*estimated, *not_audited, *scope(document)]


def scope(document: Mapping[str, Any]) -> list[str]:
    """What was looked at and what was not, a line for each subject, and what to do.

    An audit of an earlier version says neither.
    """
    lacking = document.get("not_looked_at", ())
    lines = _aspects("looked at", document.get("looked_at", ()))
    lines += _aspects("not looked at", lacking)
    if {line["kind"] for line in lacking} - {_MECHANISM}:
        lines.append("add --all to look at these as well")
    if _MECHANISM in {line["kind"] for line in lacking}:
        lines.append("a paper's own mechanism has its own plan: audit a run of it")
    return lines


def _aspects(words: str, lines: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    for subject in dict.fromkeys(line["subject"] for line in lines):  # in their order
        kinds: dict[str, list[str]] = {}
        for line in lines:
            if line["subject"] == subject:
                kinds.setdefault(line["kind"], []).append(line["name"])
        told = "; ".join(f"{kind}: {', '.join(one)}" for kind, one in kinds.items())
        found.append(f"{words}: {subject}: {told}")
    return found


def leak_tables(document: Mapping[str, Any]) -> list[tuple[str, Table]]:
    """The attacks that were run, if any: the question of each, and its table."""
    return [(one["question"], leak_table(one)) for one in document.get("leaks", ())]


def summary(document: Mapping[str, Any]) -> str:
    """Whether all checks hold, or which one fails and why."""
    checks = document["checks"]
    if not checks:
        return NOTHING
    failed = [line for line in checks if not line["ok"]]
    if not failed:
        return f"all {len(checks)} checks hold (simulation; a passed audit is no proof)"
    lines = [f"FAILED: {c['subject']}: {c['name']}: {c['detail']}" for c in failed]
    return "\n".join(lines)


def _watched(line: Mapping[str, Any]) -> str:
    """An estimate in one line that always says that it is only an estimate."""
    found = f"{_shown(line['estimated'])}, claimed {_up(line['claimed'])}"
    said = f"{line['label']}: {line['subject']}: {line['name']}: {found}"
    return f"{said}; {line['remark']}" if line["remark"] else said


def _verdict(check: Mapping[str, Any]) -> str:
    return "holds" if check["ok"] else "FAILS"


def _up(value: float | None) -> str:
    """A claim, rounded up: one that is rounded down does not hold."""
    if value is None:
        return "none"
    if 0 < value < _TINY:
        return _tiny(value, ROUND_CEILING)
    return str(Decimal(repr(value)).quantize(Decimal("0.0001"), ROUND_CEILING))


def _shown(value: float | None) -> str:
    if value is None:
        return "not finite"
    if 0 < value < _TINY:
        return _tiny(value, ROUND_HALF_EVEN)
    return f"{value:.4f}"


def _tiny(value: float, rounding: str) -> str:
    """A small probability with two significant digits."""
    return f"{Context(prec=2, rounding=rounding).create_decimal(repr(value)):.1e}"
