"""The race: its rounds by hand, and against the rules written as a plain loop."""

from __future__ import annotations

import pytest

from batchlab.search.race import Outcome, Race, best_steps, packs


@pytest.fixture
def make_study(make_scripted):
    """Evaluated every 10 steps up to 100; the end is 1.5 times the winner's steps, the next evaluated one."""

    def make(**changes):
        return make_scripted({f"sweep.{name}": value for name, value in changes.items()}).study(8)

    return make


def sound(trial_id, goal_step=None, last_step=100):
    return Outcome(trial_id, last_step, goal_step)


def diverged(trial_id, step, goal_step=None):
    return Outcome(trial_id, step, goal_step, step)


def by_id(*outcomes):
    return {outcome.trial_id: outcome for outcome in outcomes}


# Rounds by hand


def test_without_divergence_there_is_one_round(make_study):
    race = Race(make_study(trials=8), 40)
    assert race.rounds == [range(8)]
    assert race.end_step == 100

    following = race.close_round(by_id(*(sound(trial_id) for trial_id in range(8))))

    assert not following
    assert race.rounds == [range(8)]
    assert (race.infeasible, race.best_steps, race.end_step) == (set(), None, 100)


def test_diverged_trials_are_replaced_until_enough_have_not(make_study):
    """Eight asked for; three of them diverge, then one of the three that replace them, then none."""
    race = Race(make_study(trials=8), 40)
    outcomes = by_id(*(diverged(i, 7) if i in (1, 4, 5) else sound(i) for i in range(8)))

    assert race.close_round(outcomes) == range(8, 11)
    assert race.infeasible == {1, 4, 5}

    outcomes |= by_id(sound(8), diverged(9, 50), sound(10))
    assert race.close_round(outcomes) == range(11, 12)
    assert race.infeasible == {1, 4, 5, 9}

    outcomes |= by_id(sound(11))
    assert not race.close_round(outcomes)
    assert race.rounds == [range(8), range(8, 11), range(11, 12)]
    assert race.infeasible == {1, 4, 5, 9}


def test_the_winner_sets_the_end(make_study):
    """The goal at step 30: the others train to 45, which is first evaluated at 50."""
    race = Race(make_study(trials=3), 10)

    race.close_round(by_id(sound(0, 30), sound(1, 60), sound(2)))

    assert (race.best_steps, race.end_step) == (30, 50)


def test_a_winner_that_diverges_before_the_end_it_set_does_not_count(make_study):
    """Trial 0 meets the goal at 20, which would end the race at 30, but diverges there."""
    race = Race(make_study(trials=3), 10)

    following = race.close_round(by_id(diverged(0, 30, goal_step=20), sound(1, 40), sound(2)))

    assert (race.best_steps, race.end_step) == (40, 60)
    assert race.infeasible == {0}
    assert following == range(3, 4)


def test_a_winner_that_diverges_after_the_end_it_set_counts(make_study):
    race = Race(make_study(trials=3), 10)

    following = race.close_round(by_id(diverged(0, 31, goal_step=20), sound(1, 40), sound(2)))

    assert (race.best_steps, race.end_step) == (20, 30)
    assert race.infeasible == set()
    assert not following


def test_a_trial_that_diverges_after_the_race_is_over_has_not_diverged(make_study):
    race = Race(make_study(trials=3), 10)

    race.close_round(by_id(sound(0, 20), diverged(1, 30), diverged(2, 31)))

    assert race.end_step == 30
    assert race.infeasible == {1}


def test_a_replaced_trial_stays_replaced_when_the_end_comes_nearer(make_study):
    """Trial 1 diverged before the end of round 1 (60), but after that of round 2 (30)."""
    race = Race(make_study(trials=2), 10)
    outcomes = by_id(sound(0, 40), diverged(1, 50))

    assert race.close_round(outcomes) == range(2, 3)
    outcomes |= by_id(sound(2, 20))

    assert not race.close_round(outcomes)
    assert (race.best_steps, race.end_step, race.infeasible) == (20, 30, {1})


def test_a_replay_with_all_outcomes_makes_the_same_rounds(make_study):
    """After a kill the outcomes of later rounds are known when the first one is closed: they must not count yet."""
    race = Race(make_study(trials=2), 10)
    outcomes = by_id(sound(0, 40), diverged(1, 50), sound(2, 20))

    assert race.close_round(outcomes) == range(2, 3)
    assert (race.infeasible, race.end_step) == ({1}, 60)
    assert not race.close_round(outcomes)
    assert (race.infeasible, race.end_step) == ({1}, 30)


def test_the_points_may_run_out(make_study):
    """Four asked for, five points: two diverge, one replacement is left, and then the race is over."""
    race = Race(make_study(trials=4, max_attempts=5), 5)
    outcomes = by_id(sound(0), diverged(1, 3), diverged(2, 3), sound(3))

    assert race.close_round(outcomes) == range(4, 5)
    outcomes |= by_id(diverged(4, 3))

    assert not race.close_round(outcomes)
    assert race.infeasible == {1, 2, 4}


def test_fewer_points_than_trials_all_run(make_study):
    assert Race(make_study(trials=4), 3).rounds == [range(3)]


def test_the_full_protocol_has_a_fixed_end(make_study):
    race = Race(make_study(trials=3, protocol="full"), 10)

    following = race.close_round(by_id(sound(0, 20), diverged(1, 90, goal_step=10), sound(2)))

    assert race.end_step == 100
    assert race.infeasible == {1}
    assert race.best_steps == 20
    assert following == range(3, 4)


def test_a_goal_met_at_step_0_ends_the_race_there(make_study):
    race = Race(make_study(trials=2), 10)

    race.close_round(by_id(sound(0, 0, last_step=0), diverged(1, 5)))

    assert (race.best_steps, race.end_step, race.infeasible) == (0, 0, set())


# The best


def test_best_steps_is_the_fewest_of_sound_trials(make_study):
    study = make_study()

    assert best_steps(study, []) is None
    assert best_steps(study, [sound(0), diverged(1, 5)]) is None
    assert best_steps(study, [sound(0, 70), sound(1, 50), sound(2)]) == 50
    assert best_steps(study, [diverged(0, 15, goal_step=10), sound(1, 50)]) == 50


def test_best_steps_lasts_to_the_budget_where_the_end_would_be_beyond_it(make_study):
    """Met at 80: the end is 100, the budget, not 120."""
    study = make_study()

    assert best_steps(study, [diverged(0, 100, goal_step=80)]) is None
    assert best_steps(study, [diverged(0, 101, goal_step=80)]) == 80


def test_the_best_is_never_worse_in_a_later_round(make_study):
    """Whatever comes, the trial that was the best so far has not diverged by the end that it set."""
    race = Race(make_study(trials=2), 10)
    outcomes = by_id(diverged(0, 61, goal_step=40), diverged(1, 55))

    race.close_round(outcomes)
    assert (race.best_steps, race.end_step, race.infeasible) == (40, 60, {1})
    outcomes |= by_id(sound(2, 70))
    race.close_round(outcomes)

    assert (race.best_steps, race.end_step, race.infeasible) == (40, 60, {1})


# While a round is open


def test_finished_packs_bring_the_end_nearer_before_the_round_is_over(make_study):
    race = Race(make_study(), 10)

    assert race.known_end({}) == 100
    assert race.known_end(by_id(sound(0, 40, last_step=60), sound(1, last_step=60))) == 60


@pytest.mark.parametrize(
    "outcome",
    [sound(0, 40, last_step=50), diverged(0, 60, goal_step=40), sound(0, None, 100)],
    ids=["stopped before it", "diverged at it", "never met the goal"],
)
def test_an_end_that_no_trial_has_reached_soundly_is_not_known(make_study, outcome):
    assert Race(make_study(), 10).known_end(by_id(outcome)) == 100


# Packs


@pytest.mark.parametrize("pack_size", [1, 2, 3, 4, 7, 31, 32, 33, 1000])
@pytest.mark.parametrize("trial_ids", [range(32), range(5, 12), range(3, 4), range(0)], ids=str)
def test_packs_are_a_partition_into_nearly_equal_parts(trial_ids, pack_size):
    parts = packs(trial_ids, pack_size)

    assert [trial_id for part in parts for trial_id in part] == list(trial_ids)
    assert all(0 < len(part) <= pack_size for part in parts)
    assert len(parts) == -(-len(trial_ids) // pack_size)
    assert max(map(len, parts), default=0) - min(map(len, parts), default=0) <= 1
