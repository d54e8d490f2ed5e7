"""`tacit audit`: does the code do what its account says?"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Json

_TINY = 5e-5  # below it, four decimal places would show zero
NOTHING = "nothing is promised, so there is nothing to audit"


def audit(
    name: Annotated[
        str,
        typer.Argument(
            metavar="METHOD|RUN",
            help="An installed method such as gram, or a run directory.",
            show_default=False,
        ),
    ],
    leaks: Annotated[
        bool,
        typer.Option(
            "--leaks",
            help="Also run the attacks, each with the mechanism off and on.",
        ),
    ] = False,
    page: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The HTML page that --leaks writes."),
    ] = Path("leaks.html"),
    seed: Annotated[
        int, typer.Option(min=0, help="The seed of the audit's own random draws.")
    ] = 0,
    json: Json = False,
) -> None:
    """Compare what a method or a run claims with what its code does.

    Canaries are planted before `privatize` and looked for in what the server sees, and
    reports of clients are compared for extreme inputs. In a run directory the answer is
    also written to audit.json. The exit code is 1 if a check fails. A passed audit is
    no proof.

    Example: tacit audit gram --leaks
    """
    from tacit.experiment.auditing import audit_named

    with console.Bar("audit") as bar:
        document = audit_named(name, seed=seed, progress=bar.advance)
    if leaks:
        # Attacks run on invented users, so they are not part of a run's audit.json.
        document["leaks"] = _attacks(document["method"], seed, page)
    if json:
        console.print_json(document)
    else:
        _print(document)
    if not document["ok"]:
        raise typer.Exit(1)


def _attacks(method: str, seed: int, page: Path) -> list[dict[str, Any]]:
    from tacit.attacks import leaks
    from tacit.files import write_atomically
    from tacit.reporting.leaks import render

    console.note("audit: attacks with the mechanism off and on")
    found = [finding.to_json() for finding in leaks.run(method=method, seed=seed)]
    write_atomically(page, render(found).encode())
    console.note(f"audit: wrote {page}")
    return found


def _print(document: dict[str, Any]) -> None:
    from tacit.reporting.tables import Table, to_rich

    out, checks = console.out(), document["checks"]
    for subject in dict.fromkeys(line["subject"] for line in checks):  # in their order
        mine = [line for line in checks if line["subject"] == subject]
        rows = tuple(
            (c["name"], _up(c["claimed"]), _shown(c["measured"]), _verdict(c))
            for c in mine
        )
        header = ("check", "claimed", "measured", "")
        # Columns 1 and 2 are figures and stand at the right.
        out.print(to_rich(Table(subject, header, rows, frozenset({1, 2}))))
    for line in document["monitoring"]:
        out.print(_watched(line), markup=False)
    for line in document["not_audited"]:
        out.print(f"not audited: {line['subject']}: {line['what']}", markup=False)
    for finding in document.get("leaks", ()):
        from tacit.reporting.leaks import table

        out.print(finding["question"], markup=False)
        out.print(to_rich(table(finding)))
    out.print(_sum_up(checks), markup=False)


def _watched(line: dict[str, Any]) -> str:
    """An estimate in one line that always says that it is only an estimate."""
    found = f"{_shown(line['estimated'])}, claimed {_up(line['claimed'])}"
    said = f"{line['label']}: {line['subject']}: {line['name']}: {found}"
    return f"{said}; {line['remark']}" if line["remark"] else said


def _sum_up(checks: list[dict[str, Any]]) -> str:
    if not checks:
        return NOTHING
    failed = [line for line in checks if not line["ok"]]
    if not failed:
        return f"all {len(checks)} checks hold (simulation; a passed audit is no proof)"
    lines = [f"FAILED: {c['subject']}: {c['name']}: {c['detail']}" for c in failed]
    return "\n".join(lines)


def _verdict(check: dict[str, Any]) -> str:
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
