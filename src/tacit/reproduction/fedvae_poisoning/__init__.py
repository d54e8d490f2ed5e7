"""FedVAE among attackers: the paper says that Krum makes it robust and shows no attack.

    attacks   what attackers send, and which defenses they meet
    trials    train and judge
    claims    what follows

Krum is told the true number of attackers; a real server is not. A row has NDCG@100 of
test people (`sound` where noise protects it) and, beside it, how many of them are shown
the item that promoters promote, though they never chose it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tacit.reproduction import Scale
from tacit.reproduction.fedvae_poisoning.attacks import (
    DEFENSES,
    FLIPPED,
    LOUD,
    NOISE,
    NOISY_GROUPS,
    PLAIN_ATTACKS,
    SPREAD,
    STEALTHY,
    TRIMMED,
)
from tacit.reproduction.fedvae_poisoning.claims import claims
from tacit.reproduction.fedvae_poisoning.trials import (
    Bench,
    Cell,
    Outcome,
    known_source,
    popularity,
)
from tacit.reproduction.tables import Chart, Line, ReproducedTable, Reproduction, Row
from tacit.results import Metric

__all__ = ["poisoning", "study"]

IN_10, IN_20 = "shown in top 10", "shown in top 20"

Met = Mapping[str, Sequence[str]]  # defense -> the attacks it meets

_BY_NOISE = (FLIPPED, STEALTHY)  # a clip makes longer ones the same


def poisoning(scale: Scale) -> Reproduction:
    """Attacks at several shares of a cohort; quick has one seed and one share."""
    noisy: Met = {NOISE: _BY_NOISE, NOISY_GROUPS: (*_BY_NOISE, SPREAD)}
    if scale == "full":
        bench = Bench(known_source(), seeds=(0, 1, 2), shares=(0.05, 0.1, 0.2))
        return study(bench, {d: noisy.get(d, PLAIN_ATTACKS) for d in DEFENSES})
    bench = Bench(known_source(), seeds=(0,), shares=(0.1,))
    some = [defense for defense in DEFENSES if defense != TRIMMED]
    return study(bench, {d: noisy.get(d, (FLIPPED, LOUD, STEALTHY)) for d in some})


def study(bench: Bench, met: Met) -> Reproduction:
    """A table a defense, a chart an attack, and what follows."""
    tables = tuple(_table(bench, defense, attacks) for defense, attacks in met.items())
    return Reproduction(tables, claims(bench), tuple(_charts(bench, met)))


def _table(bench: Bench, defense: str, attacks: Sequence[str]) -> ReproducedTable:
    rows = [_row(bench, defense, None, 0.0)]
    shares = _shares(bench, defense)
    rows += [_row(bench, defense, a, share) for a in attacks for share in shares]
    name = f"Poisoning, {defense}, NDCG@100 ({bench.source})"
    return ReproducedTable(name, tuple(rows))


def _row(bench: Bench, defense: str, attack: str | None, share: float) -> Row:
    found = _outcome(bench, defense, attack, share)
    is_private = _is_private(defense)
    label = "nobody attacks" if attack is None else f"{attack}, {share:.0%} attack"
    return Row(
        label,
        published=None,
        paper=None if is_private else found.ndcg.mean,
        sound=found.ndcg.mean if is_private else None,
        ok=True,
        beside={
            IN_10: found.in_10.mean,
            IN_20: found.in_20.mean,
            "popularity": popularity(bench).ndcg.mean,
        },
        se=found.ndcg.se,
    )


def _shares(bench: Bench, defense: str) -> tuple[float, ...]:
    """Runs under noise have six times the people, so they get one share alone."""
    return (bench.middle,) if _is_private(defense) else bench.shares


def _is_private(defense: str) -> bool:
    return DEFENSES[defense](0).privacy.is_private


def _outcome(bench: Bench, defense: str, attack: str | None, share: float) -> Outcome:
    """Nobody attacks where there is no attack; Krum is then told of none."""
    method = DEFENSES[defense](bench.attackers(share))
    return Cell(method, attack, share).outcome(bench)


def _charts(bench: Bench, met: Met) -> Iterator[Chart]:
    """Accuracy, or exposure where something is promoted, by the share of attackers."""
    for attack in PLAIN_ATTACKS:
        is_promoting = attack in (LOUD, STEALTHY)
        lines = {
            defense: _line(bench, defense, attack, is_promoting=is_promoting)
            for defense, attacks in met.items()
            if attack in attacks and not _is_private(defense)
        }
        if lines:
            y = IN_10 if is_promoting else "NDCG@100"
            name = f"Poisoning: {attack} ({bench.source})"
            over = "seeds" if len(bench.seeds) > 1 else "people"
            yield Chart(name, "attackers, % of a cohort", y, lines, over=over)


def _line(bench: Bench, defense: str, attack: str, *, is_promoting: bool) -> Line:
    found = [_outcome(bench, defense, None, 0.0)]
    found += [_outcome(bench, defense, attack, share) for share in bench.shares]
    shown: list[Metric] = [o.in_10 if is_promoting else o.ndcg for o in found]
    return Line(
        tuple(100 * share for share in (0.0, *bench.shares)),
        tuple(metric.mean for metric in shown),
        tuple(metric.se or 0.0 for metric in shown),
    )
