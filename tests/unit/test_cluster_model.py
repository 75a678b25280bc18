from __future__ import annotations

from random import Random

import pytest

from tests.bench.cluster_model import Clock, Cluster, Costs, Machines, Phase, Server, Work, scoring


def seconds(machines: Machines, *works: Work, merge_s: float = 0.0) -> float:
    return Cluster(machines).run([Phase("map", works, merge_s)]).seconds


def test_calls_of_one_time_are_made_in_their_order() -> None:
    clock, made = Clock(), []
    for time, name in ((2.0, "c"), (1.0, "a"), (1.0, "b")):
        clock.at(time, lambda name=name: made.append((clock.now, name)))
    clock.run()
    assert made == [(1.0, "a"), (1.0, "b"), (2.0, "c")]


def test_a_server_does_one_thing_after_the_other() -> None:
    clock, ended = Clock(), []
    server = Server(clock)
    for lasts in (2.0, 3.0):
        clock.at(1.0, lambda lasts=lasts: server.do(lasts, lambda: ended.append(clock.now)))
    clock.run()
    assert ended == [3.0, 6.0]
    assert server.busy == 5.0


@pytest.mark.parametrize(("workers", "expected"), [(1, 6.0), (2, 4.0), (3, 3.0)])
def test_tasks_go_to_the_worker_that_is_free(workers: int, expected: float) -> None:
    assert seconds(Machines(workers), Work(1), Work(2), Work(3)) == expected


def test_a_merge_waits_for_its_parts_and_fetches_those_that_are_elsewhere() -> None:
    parts = Work(1, size=10), Work(2, size=10)
    # The first part travels 1 s to the second worker from 2 on, both merge in 2 * 0.5 s, the union comes back in 1 s.
    found = Cluster(Machines(2, line_rate=10)).run([Phase("map", parts, merge_s=0.5)])
    assert found.seconds == pytest.approx(2 + 1 + 1 + 1)
    assert found.moved == 20
    assert found.jobs == 3


def test_the_scheduler_is_the_limit_of_small_tasks() -> None:
    works = [Work(0.001)] * 8
    # Half of its time for each of 8 tasks and the merge before, half after they end.
    found = Cluster(Machines(100, scheduler_s=2.0)).run([Phase("map", works)])
    assert found.scheduler == pytest.approx(2.0 * 9)
    assert found.seconds >= found.scheduler


def test_the_client_submits_one_task_after_the_other() -> None:
    assert seconds(Machines(4, client_s=1.0), Work(0), Work(0), Work(0)) == pytest.approx(4.0)


def test_client_and_scheduler_of_one_process_take_turns() -> None:
    apart = seconds(Machines(1, client_s=1.0, scheduler_s=1.0), Work(0))
    together = Cluster(Machines(1, client_s=1.0, scheduler_s=1.0, one_process=True)).run([Phase("map", [Work(0)] * 4)])
    assert apart == 2.0
    assert together.client == together.scheduler == pytest.approx(5 + 5)


def test_signs_of_life_take_their_share_of_the_scheduler() -> None:
    works = [Work(0)] * 8
    calm, busy = (
        Cluster(Machines(1, scheduler_s=1.0, heartbeats=share)).run([Phase("map", works)]) for share in (0.0, 0.5)
    )
    assert busy.seconds == pytest.approx(2 * calm.seconds)
    assert busy.scheduler == pytest.approx(calm.scheduler + 0.5 * busy.seconds)


def test_a_worker_has_work_of_its_own_for_each_task() -> None:
    assert seconds(Machines(1, worker_s=0.5), *[Work(1)] * 3) == 3 * (1 + 0.5) + 0.5  # and for the merge


def test_a_store_answers_late_and_sends_no_more_than_its_bandwidth() -> None:
    machines = Machines(2, store_latency_s=0.5, requests=2, store_rate=10)
    # Two readers share the line: the first has its 20 bytes at 2 s, the second at 4 s, each a second late.
    assert seconds(machines, Work(1, read=20), Work(1, read=20)) == pytest.approx(5.0)
    assert seconds(machines, Work(9, read=20), Work(9, read=20)) == pytest.approx(10.0)


def test_stragglers() -> None:
    assert seconds(Machines(1, slow=1.0, slower=3.0), Work(2)) == 6.0


def test_what_a_lost_worker_had_is_computed_again() -> None:
    works = [Work(2, size=1), Work(2, size=1), Work(2, size=1)]
    # One worker has a part at 2 and is lost at 3 with another task at half: both run on the other one from 3 on.
    found = Cluster(Machines(2, lost_at=(3.0,))).run([Phase("map", works)])
    assert found.seconds == 7.0
    assert found.again == 2


def test_a_part_whose_end_nobody_heard_of_is_lost_too() -> None:
    # Messages take 1 s: both parts are there at 3; one worker is lost before the scheduler hears of its part at 4. The
    # other computes it from 5 to 7, merges from 9 on (a message to the scheduler and one from it), is heard at 10; the
    # union comes at 11.
    found = Cluster(Machines(2, message_s=1.0, lost_at=(3.5,))).run([Phase("map", [Work(2), Work(2)])])
    assert found.seconds == 11.0
    assert found.again == 1


@pytest.mark.parametrize("seed", range(20))
def test_whatever_workers_are_lost_the_map_ends(seed: int) -> None:
    random = Random(seed)
    lost = tuple(random.uniform(0, 30) for _ in range(8))
    machines = Machines(9, 0.01, 0.02, message_s=0.1, line_rate=5.0, slow=0.2, slower=3.0, lost_at=lost)
    found = Cluster(machines, seed).run([Phase("map", [Work(1.0, 0.0, 1.0)] * 100, 0.3)] * 2)
    assert found.seconds > 100 / 9
    assert found.jobs == Cluster(Machines(1)).run([Phase("map", [Work(1.0)] * 100)] * 2).jobs


def test_the_last_worker_is_not_lost() -> None:
    assert seconds(Machines(1, lost_at=(1.0,)), Work(2)) == 2.0


def test_phases_follow_one_another() -> None:
    found = Cluster(Machines(2)).run([Phase("one", [Work(1)] * 4), Phase("two", [Work(3)], client_s=1.0)])
    assert found.by_phase == {"one": 2.0, "two": 4.0}
    assert found.seconds == 6.0


def test_no_tasks_take_no_time() -> None:
    assert seconds(Machines(2)) == 0.0


def test_scoring_has_the_rounds_of_every_group() -> None:
    costs = Costs((1e-6, 5e-7), (10.0, 5.0), (100.0, 10.0), (0.0, 0.0), 1.0, 10.0)
    found = Cluster(Machines(2)).run(scoring(costs, 3, 4_000_000, 2, 1_000_000))
    assert found.read == 3 * 4_000_000 * 15
    assert found.working == pytest.approx(3 * 4_000_000 * 1.5e-6 + 3)
    assert list(found.by_phase) == ["round 1", "round 2", "numbers"]
