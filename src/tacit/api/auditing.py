"""`tacit.audit`: does the code do what its account says?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.api.training import Run
from tacit.experiment.auditing import audit_named
from tacit.records import Records
from tacit.reporting import audit as reporting
from tacit.reporting import elements, tables
from tacit.system_errors import explained


@dataclass(frozen=True, eq=False)
class Audited:
    """What was claimed, what was measured, and whether all of it holds.

    A passed audit is no proof: it looks for faults, and found none.
    """

    document: Mapping[str, Any]  # as in audit.json

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return bool(self.document["ok"])

    def rows(self) -> Records[dict[str, Any]]:
        """One row per check: the claim, what was measured, and whether it holds."""
        return Records(dict(check) for check in self.document["checks"])

    def __str__(self) -> str:
        checks = map(tables.to_plain, reporting.check_tables(self.document))
        notes, end = reporting.notes(self.document), reporting.summary(self.document)
        return "\n".join([*checks, *notes, end])

    def _repr_html_(self) -> str:
        checks = "".join(
            elements.table(table, heads=1)
            for table in reporting.check_tables(self.document)
        )
        notes, end = reporting.notes(self.document), reporting.summary(self.document)
        listed = elements.listing(notes) if notes else ""
        return elements.notice(end, good=self.ok) + checks + listed


def audit(
    subject: str | Path | Run, *, seed: int = 0, everything: bool = False
) -> Audited:
    """Compare what a method or a run claims with what its code does.

    Canaries are planted before noise is added and looked for in what the server sees,
    and reports of clients are compared for extreme inputs.

    Args:
        subject: The name of an installed method such as `"gram"`, a run, or the
            directory of one. In a run the answer is also written to audit.json.
        seed: The seed of the audit's own random draws.
        everything: Also look at all other channels, groups, samplers and modes that
            the method or the run admits. It takes minutes.

    Returns:
        The checks: print them, or look at `ok` and `rows`.

    Raises:
        TacitError: There is no such method or run.

    """
    name = subject.path if isinstance(subject, Run) else subject
    with explained():
        return Audited(audit_named(str(name), seed=seed, looks_at_all=everything))
