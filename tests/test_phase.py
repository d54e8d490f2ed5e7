"""Phases: their rounds, their order, and which of them a round belongs to."""

from dataclasses import replace

import pytest

from tacit.errors import BadValue, Refused
from tacit.phase import Phase, check_clip, check_phases, in_turn, phase_of

COUNTS = Phase("counts", range(2), what="histories")
UPDATES = Phase("updates", range(2, 5), what="gradients")


def test_phases_follow_each_other_and_the_last_gets_what_is_left():
    made = in_turn(("a", 2, "it counts"), ("b", 1, "tries"), ("c", 0, "works"), total=9)
    assert made == [range(2), range(2, 3), range(3, 9)]
    assert in_turn(("only", 0, "works"), total=4) == [range(4)]


def test_a_run_that_only_counts_is_refused():
    phases = ("counts", 5, "it counts first"), ("updates", 0, "works")
    said = r"rounds=5 must be more than the 5 .*: it counts first, then works; use.* 6 "
    with pytest.raises(Refused, match=said):
        in_turn(*phases, total=5)
    assert in_turn(*phases, total=6) == [range(5), range(5, 6)]


def test_a_phase_of_no_rounds_before_the_last_has_none():
    """A method leaves such a phase out; what is left to it begins where it began."""
    assert in_turn(("counts", 0, ""), ("updates", 0, ""), total=5) == [
        *(range(0), range(5)),
    ]


def test_a_round_belongs_to_one_phase():
    places = [phase_of([COUNTS, UPDATES], round_) for round_ in range(5)]
    assert places == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("round_", [5, -1, 2**40])
def test_a_round_of_no_phase_is_refused_by_name(round_):
    named = rf"round {round_} belongs to none of the phases counts \(0 to 1\), upd"
    with pytest.raises(Refused, match=named):
        phase_of([COUNTS, UPDATES], round_)


@pytest.mark.parametrize(
    "rounds", [range(0), range(3, 3), range(0, 9, 2), range(3, 0, -1), range(-1, 4)]
)
def test_rounds_are_one_or_more_in_a_row(rounds):
    with pytest.raises(BadValue, match="must be one or more, in a row"):
        Phase("x", rounds, what="x")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("bound", 0.0), ("bound", -1.0), ("bound", float("inf")), ("step", 0.0)),
        *(("share", 0.0), ("share", 1.5), ("share", float("nan"))),
    ],
)
def test_numbers_that_cannot_be(field, value):
    with pytest.raises(BadValue, match=field):
        Phase("x", range(3), what="x", **{field: value})


@pytest.mark.parametrize("field", ["name", "what"])
@pytest.mark.parametrize("rounds", [5, None])
def test_phases_have_a_name_and_words_of_their_own(field, rounds):
    """Noise goes by the name, and a ledger counts releases by what they are."""
    twin = replace(UPDATES, **{field: getattr(COUNTS, field)})
    with pytest.raises(BadValue, match=f"two phases have the same `{field}`"):
        check_phases([COUNTS, twin], rounds=rounds)


@pytest.mark.parametrize(
    "phases",
    [
        *([COUNTS], [UPDATES], [UPDATES, COUNTS]),
        [COUNTS, replace(UPDATES, rounds=range(3, 5))],  # a gap
        [COUNTS, replace(UPDATES, rounds=range(1, 5))],  # an overlap
        [COUNTS, replace(UPDATES, rounds=range(2, 4))],  # too short
        [COUNTS, replace(UPDATES, rounds=range(2, 6))],  # too long
    ],
)
def test_every_round_has_one_phase_unless_they_are_chosen(phases):
    with pytest.raises(BadValue, match="must be the 5 rounds of the plan"):
        check_phases(phases, rounds=5)
    check_phases(phases, rounds=None)
    check_phases([COUNTS, UPDATES], rounds=5)


def test_a_clip_replaces_the_bound_where_it_is_a_choice():
    clipped = replace(UPDATES, bound=2.0, is_clipped=True)
    assert [clipped.bounded_by(clip) for clip in (None, 0.5)] == [2.0, 0.5]
    assert UPDATES.bounded_by(0.5) == 1.0


def test_a_clip_that_no_phase_has_is_refused():
    said = r"clip=0\.5 would change nothing: .* counts \(0 to 1\), .*leave clip out"
    with pytest.raises(BadValue, match=said):
        check_clip([COUNTS, UPDATES], quantile=None, clip=0.5)
    check_clip([COUNTS, UPDATES], clip=None)
    check_clip([COUNTS, replace(UPDATES, is_clipped=True)], clip=0.5)
