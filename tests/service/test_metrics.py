"""Tests of the counters."""

from tacit.service.metrics import Metrics


def test_the_text_has_every_counter_once():
    metrics = Metrics()
    for endpoint, status in (("topk", 200), ("topk", 200), ("model", 304)):
        metrics.count(endpoint, status)
    metrics.open, metrics.ranking_seconds = 3, 0.25
    lines = metrics.text().splitlines()
    assert 'tacit_requests_total{endpoint="topk",status="200"} 2' in lines
    assert 'tacit_requests_total{endpoint="model",status="304"} 1' in lines
    assert "tacit_queries_open 3" in lines
    assert "tacit_ranking_seconds_total 0.250000" in lines
    kinds = [line for line in lines if line.startswith("# TYPE")]
    assert len(kinds) == 4
    assert metrics.text().endswith("\n")
