"""Tables 8 and 9 and Figure 3 (RQ4): DP-VAE with clip and priors beside its rivals.

Figure 3 draws NDCG@R and Recall@R by R and states no number; what the text says of it
became claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tacit.reproduction.cells import Cell, Found, Results
from tacit.reproduction.claims import Chance, difference, is_close, is_learnt
from tacit.reproduction.study import Table
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)

from . import contenders
from .benches import MAIN, Bench
from .rows import (
    above,
    because_it_is_open,
    because_of_noise,
    because_of_steps,
    chance,
    not_run,
    printed_in,
    rows,
)

OWN, SOUND = "DP-VAE", "sound DP-VAE"
DEPTHS = (10, 20, 50, 100)  # R of Figure 3
LOSS = 0.03  # of NDCG@100 to the VAE, .44 to .41 in Table 8


def table_8(bench: Bench) -> Table:
    """ML-100K: DP-VAE with optimal clip and priors, and its rivals."""

    def make(results: Results) -> Reproduction:
        found = _found(results, bench)
        popularity = found["popularity"]
        reasons = {
            OWN: because_of_noise(bench),
            "VAE": because_of_steps(bench, found["by Adam"], popularity),
        }
        made: list[Row] = []
        for who in (OWN, *contenders.RIVALS):
            printed = printed_in("table-8", who)
            if who not in found:
                made += not_run(who, printed, contenders.NO_LIGHTFM)
                continue
            made += rows(
                who,
                found[who],
                printed,
                popularity=popularity,
                sound=found[SOUND] if who == OWN else None,
                reason=reasons.get(who) or because_it_is_open(bench, popularity),
            )
        name = f"Table 8, comparison ({bench.label})"
        claims = tuple(_claims(bench, found, chance(results, bench)))
        return Reproduction((ReproducedTable(name, tuple(made)),), claims)

    return Table(make, _cells(bench))


def table_9(bench: Bench) -> Table:
    """DP-VAE without and with both optimal clip and priors, pre-processed data."""
    sides = {
        "NV": bench.paper(clip=bench.clip),
        "OV": bench.paper(priors=True),
    }
    sound, popular = bench.sound(), bench.beside("popularity")

    def make(results: Results) -> Reproduction:
        made: list[Row] = []
        for side, cell in sides.items():
            made += rows(
                f"DP-VAE, {side}",
                results[cell],
                printed_in("table-9", bench.name, side),
                popularity=results[popular],
                sound=results[sound],
                reason=because_of_noise(bench),
            )
        name = f"Table 9, without and with optimal clip and priors ({bench.label})"
        text = "RQ4: clip and priors together help DP-VAE"
        pair = results[sides["OV"]], results[sides["NV"]]
        claim = above(text, bench, *pair, by=chance(results, bench))
        return Reproduction((ReproducedTable(name, tuple(made)),), (claim,))

    return Table(make, (*sides.values(), sound, popular))


def figure_3(bench: Bench) -> Table:
    """NDCG@R and Recall@R of all contenders."""

    def make(results: Results) -> Reproduction:
        found = _found(results, bench)
        charts = tuple(
            Chart(
                f"Figure 3, {name}@R ({bench.label})",
                "R",
                f"{name}@R",
                {who: _line(one, kind) for who, one in found.items()},
                over=bench.over,
            )
            for kind, name in {"ndcg": "NDCG", "recall": "Recall"}.items()
        )
        rivals = [who for who in contenders.RIVALS if who in found and who != "VAE"]
        by = chance(results, bench)
        claims = tuple(
            _at_every_depth(bench, found, own, who, by=by)
            for own in (OWN, SOUND)
            for who in rivals
        )
        return Reproduction((), claims, charts)

    return Table(make, _cells(bench))


def _cells(bench: Bench) -> tuple[Cell, ...]:
    rivals = contenders.trained(bench, bench.usual, priors=True)
    return (bench.main(), bench.sound(), *rivals.values())


def _found(results: Results, bench: Bench) -> dict[str, Found]:
    own = {OWN: results[bench.main()], SOUND: results[bench.sound()]}
    return own | contenders.found(results, bench, bench.usual, priors=True)


def _claims(bench: Bench, found: Mapping[str, Found], by: Chance) -> Iterator[Claim]:
    for own in (OWN, SOUND):
        yield is_close(
            f"RQ4: {own} loses at most {LOSS} to the VAE ({bench.label})",
            found[own].evaluations,
            found["VAE"].evaluations,
            metric=MAIN,
            within=LOSS,
            chance=by,
            name="NDCG@100",
        )
        for who in (*contenders.RIVALS, "popularity"):
            if who in found and who != "VAE":
                text, pair = f"RQ4: {own} beats {who}", (found[own], found[who])
                yield above(text, bench, *pair, by=by)


def _at_every_depth(
    bench: Bench, found: Mapping[str, Found], own: str, rival: str, *, by: Chance
) -> Claim:
    """That Recall@R is above a rival's at every R, as Section 4.2.4 has it.

    And above chance at the R where it is least so.
    """
    gains = {
        depth: difference(
            found[own].evaluations, found[rival].evaluations, f"recall@{depth}"
        )
        for depth in DEPTHS
    }
    shown = ", ".join(f"{gain.mean:+.3f} at {depth}" for depth, gain in gains.items())
    holds = all(gain.low > 0 for gain in gains.values())
    text = f"Figure 3: {own} beats {rival} in Recall@R for every R ({bench.label})"
    claim = Claim(text, holds, f"Recall {shown}")
    each = [(found[own].mean(at), by[at]) for at in (f"recall@{r}" for r in DEPTHS)]
    return is_learnt(claim, *min(each, key=lambda pair: pair[0] - pair[1]))


def _line(found: Found, kind: str) -> Line:
    at = [f"{kind}@{depth}" for depth in DEPTHS]
    means, errors = map(found.mean, at), (found.se(name) or 0.0 for name in at)
    return Line(tuple(map(float, DEPTHS)), tuple(means), tuple(errors))
