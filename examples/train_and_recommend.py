"""Train on an invented world, compare, and recommend to someone new.

After `make demo`:  .venv/bin/python examples/train_and_recommend.py
"""

import tacit

EXPERIMENT = {
    "data": {"source": "synthetic"},
    "method": {"name": "federated_popularity", "max_votes": 20},
    "run": {"rounds": 5, "sampler": {"name": "once"}},
    "evaluate": {"metrics": ["ndcg@100"], "baselines": ["random", "ease"]},
}


def main() -> None:
    run = tacit.train(EXPERIMENT)
    print("NDCG@100 on users whom training never saw (simulation):")
    for row in run.rows():
        print(f"  {row['method']:22} {row['mean']:.3f} ± {row['se']:.3f}")
    history = run.recommender.catalog.ids[:3]  # anybody's; it stays in this process
    print("For someone with", ", ".join(history))
    for item in run.recommender.recommend(history, n=5):
        print(f"  {item.score:.3f}  {item.title}")


if __name__ == "__main__":
    main()
