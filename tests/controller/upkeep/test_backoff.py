"""Waits between tries of a computation that fails."""

from __future__ import annotations

import pytest

from controller.upkeep.background import Backoff


def test_a_computation_that_fails_for_days_is_tried_every_minute() -> None:
    backoff, waits = Backoff(lambda: 0.0), []
    for _ in range(2000):
        backoff.failed(ValueError("a bug"))
        waits.append(backoff.again)
    assert waits[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(waits[7:]) == {60}
    status = backoff.status()
    assert status is not None
    assert status["tries"] == 2000


@pytest.mark.parametrize("tries", [1, 5])
def test_after_a_success_the_waits_begin_again(tries: int) -> None:
    backoff = Backoff(lambda: 0.0)
    assert all(backoff.failed(ValueError("a bug")) is (n == 0) for n in range(tries))
    backoff.succeeded()
    assert backoff.over
    assert backoff.status() is None
    assert backoff.failed(ValueError("a bug")), "news once more"
    assert backoff.again == 1
