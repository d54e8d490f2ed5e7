"""Costs of several runs as one figure each."""

from tacit.experiment.comparison_cost import Cost, measure


def test_bytes_are_means_times_the_quickest_and_memory_the_largest():
    first = Cost(10.0, 4.0, 0.9, 90.0, 100)
    second = Cost(20.0, 6.0, 0.1, 10.0, 300)
    assert Cost.of_runs([first, second]) == Cost(15.0, 5.0, 0.1, 10.0, 300)


def test_what_one_run_did_not_measure_is_not_known():
    assert Cost.of_runs([Cost(seconds=1.0, peak_bytes=5), Cost(seconds=2.0)]) == Cost(
        seconds=1.0
    )


def test_work_is_measured_and_its_result_is_kept():
    made, took = measure(lambda: 3)
    assert made == 3
    assert took.seconds >= 0
