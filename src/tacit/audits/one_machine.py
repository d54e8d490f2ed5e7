"""Two aggregators on one machine: nothing may be promised against the server.

Whoever runs both sees what both see together. The promise to readers stays, since both
add their noise. Nothing is drawn here: an honest method never fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from tacit.audits.checks import Check
from tacit.audits.small_world import simulation_of
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import View
from tacit.runtime.ledger import run_statements

_WHY = "one_machine"


def check_one_machine(method: Method, plan: Plan) -> Iterator[Check]:
    """Every check of the account of a plan over two servers, played on one machine."""
    both, two = (
        simulation_of(method, plan, one_operator=_WHY),
        simulation_of(method, plan),
    )
    known = [line for line in both.account.totals if line.view is View.SERVER]
    for terms in both.terms:
        rounds = range(terms.most)
        lines = run_statements(terms, rounds, delta=plan.delta)
        known += [line for line in lines if line.view is View.SERVER]
    wrong = [line for line in known if line.epsilon is not None]
    yield Check.at_most(
        "figures against a server that is both aggregators",
        float(len(wrong)),
        claimed=0.0,
        slack=0.0,
        detail=f"{len(known)} lines of account and ledger, in the server's view",
    )
    pairs = zip(both.account.totals, two.account.totals, strict=True)
    other = [
        one for one, same in pairs if _differs(one.epsilon, same.epsilon, one.view)
    ]
    yield Check.at_most(
        "figures to readers that are not those of two machines",
        float(len(other)),
        claimed=0.0,
        slack=0.0,
        detail="every unit and group, in the release view",
    )


def _differs(one: float | None, other: float | None, view: View) -> bool:
    return view is View.RELEASE and one != other
