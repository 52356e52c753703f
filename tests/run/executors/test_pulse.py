"""Who of a gang has stalled: signs of life and exchanges, at times that are made up."""

from __future__ import annotations

from batchlab.run.executors.pulse import AWAY_SECONDS, START_SECONDS, Pulse, Watch

T = 10.0


def beat(pulse, *ranks):
    for rank in ranks:
        pulse._numbers[0, rank] += 1


def looked(watch, pulse, seconds, *alive, start=0.0):
    """Look every second; the ranks in `alive` show life before each look. Return the last answer."""
    found = []
    for second in range(1, int(seconds) + 1):
        beat(pulse, *alive)
        found = watch.stalled(start + second)
    return found


def test_nobody_has_stalled_who_shows_life():
    pulse = Pulse(2)
    assert looked(Watch(pulse, T, 0.0), pulse, 3 * T, 0, 1) == []


def test_a_rank_without_a_sign_of_life_has_stalled_after_the_time():
    pulse = Pulse(3)
    watch = Watch(pulse, T, 0.0)
    looked(watch, pulse, 1, 0, 1, 2)

    assert looked(watch, pulse, T, 0, 2, start=1) == []
    assert looked(watch, pulse, 1, 0, 2, start=1 + T) == [1]


def test_a_process_that_has_not_begun_has_more_time():
    pulse = Pulse(2)
    watch = Watch(pulse, T, 0.0)

    assert looked(watch, pulse, START_SECONDS, 0) == []
    assert looked(watch, pulse, 1, 0, start=START_SECONDS) == [1]


def test_of_all_who_live_the_one_that_keeps_the_others_waiting_has_stalled():
    pulse = Pulse(3)
    watch = Watch(pulse, T, 0.0)
    pulse.set_together(True)
    for rank in (0, 1, 2, 0, 2):
        pulse.begin_exchange(rank)

    assert looked(watch, pulse, T, 0, 1, 2) == []
    assert looked(watch, pulse, 1 + 1, 0, 1, 2, start=T) == [1]


def test_one_that_is_silent_and_keeps_the_others_waiting_is_named_alone():
    """Nobody has begun an exchange: the first was stopped in the middle of something, the other waits for it."""
    pulse = Pulse(2)
    watch = Watch(pulse, T, 0.0)
    pulse.set_together(True)
    looked(watch, pulse, 2, 0, 1)

    assert looked(watch, pulse, T - 1, 1, start=2) == []
    assert looked(watch, pulse, 1, 1, start=T + 1) == [0]


def test_short_things_that_all_do_one_after_the_other_keep_nobody_waiting():
    """As where a trainer exchanges nothing: whoever looks always meets them at something."""
    pulse = Pulse(2)
    watch = Watch(pulse, T, 0.0)
    for second in range(1, 40):
        pulse.set_together(False)
        pulse.set_together(True)
        beat(pulse, 0, 1)

        assert pulse.is_together
        assert watch.stalled(float(second)) == []


def test_while_the_first_is_at_something_of_its_own_nobody_is_waited_for():
    pulse = Pulse(2)
    watch = Watch(pulse, T, 0.0)
    pulse.begin_exchange(0)

    assert looked(watch, pulse, 5 * T, 0, 1) == []


def test_a_time_in_which_nobody_looked_does_not_count():
    """Ctrl-Z stops all of them: whoever looks first afterwards has seen nothing for an hour."""
    pulse = Pulse(2)
    watch = Watch(pulse, T, 0.0)
    looked(watch, pulse, 1, 0, 1)

    assert watch.stalled(3600.0) == []
    assert looked(watch, pulse, T - 1, 0, start=3600.0) == []
    assert looked(watch, pulse, 2, 0, start=3600.0 + T - 1) == [1]
    assert AWAY_SECONDS < T
