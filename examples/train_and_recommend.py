"""Train on an invented world, compare, and recommend to someone new.

After `make demo`:  .venv/bin/python examples/train_and_recommend.py
"""

import tempfile
from pathlib import Path

import tacit

EXPERIMENT = {
    "data": {"source": "synthetic"},
    "method": {"name": "federated_popularity", "max_votes": 20},
    "run": {"rounds": 5, "sampler": {"name": "once"}},
    "evaluate": {"metrics": ["ndcg@100"], "baselines": ["random", "ease"]},
}


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        run = tacit.train(EXPERIMENT, out=Path(place) / "run")
        model = tacit.load(Path(place) / "run")
    print("NDCG@100 on users whom training never saw (simulation):")
    for name, evaluation in run.evaluations.items():
        metric = evaluation.metrics()["ndcg@100"]
        print(f"  {name:22} {metric.mean:.3f} ± {metric.se:.3f}")
    history = model.catalog.ids[:3]  # anybody's; it stays in this process
    print("For someone with", ", ".join(history))
    for item in model.recommend(history, n=5):
        print(f"  {item.score:.3f}  {item.title}")


if __name__ == "__main__":
    main()
