"""Every module of the product has a test of its name, or a line here that says where.

A test of its name is `tests/PATH/test_NAME.py` for `src/tacit/PATH/NAME.py`. The lines
cannot rot: each names a module that exists and has no such test, and a test file that
exists and names the module, in an import or in its docstring.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "tacit", ROOT / "tests"
MUTANTS = "audits/test_mutants.py"  # breaks what each check of an audit is there for
THREADS = "kernels/test_threads.py"  # holds every kernel against its twin

ELSEWHERE = {  # a module: the file that tests it, and why there
    "audits/canary_run": (MUTANTS, "whole runs of canaries, honest and broken"),
    "audits/delivered_bytes": (MUTANTS, "three mutants are there for it"),
    "audits/local_reports": (MUTANTS, "a key used in two rounds is there for it"),
    "audits/lying_reports": (MUTANTS, "four mutants are there for it"),
    "audits/masked_clients": (MUTANTS, "seven mutants are there for it"),
    "audits/noisy_sums": (MUTANTS, "ten mutants are there for it"),
    "audits/two_aggregators": (MUTANTS, "nine mutants are there for it"),
    "audits/one_shot": ("audits/test_audit_method.py", "a part of every audit"),
    "audits/report_isolation": (
        "audits/test_server_replay.py",
        "the same small rounds",
    ),
    "audits/shuffler_minimum": (
        "audits/test_server_replay.py",
        "the same small rounds",
    ),
    "audits/small_world": ("audits/test_honest.py", "where every audit happens"),
    "experiment/evaluated_run": ("cli/test_train.py", "what the command prints"),
    "experiment/finished_comparison": ("cli/test_compare.py", "its files and words"),
    "experiment/pairs": ("cli/test_compare.py", "the pairs of tables and pages"),
    "experiment/privacy_settings": (
        "experiment/test_settings.py",
        "one section of an experiment",
    ),
    "experiment/planning": ("cli/test_plan.py", "what the command prints"),
    "cli/caps": ("cli/test_ledger.py", "and test_client.py: both commands"),
    "cli/rounds": ("cli/test_federation.py", "of a running coordinator"),
    "runtime/declined": (
        "cli/test_flower_app.py",
        "what a server is told by the app that it asks",
    ),
    "service/federation/one_machine": ("cli/test_up.py", "the command's own processes"),
    "service/federation/trial": (
        "service/relay/test_one_machine.py",
        "and test_up.py: the trials of both channels",
    ),
    "cli/evaluate": ("cli/test_train.py", "evaluates the run that was trained"),
    "cli/report": ("cli/test_train.py", "shows the run that was trained"),
    "data/parsing/csv_rows": ("data/sources/test_table.py", "the lines of a table"),
    "data/sources/listed_tables": ("data/sources/test_table.py", "items and users"),
    "data/sources/mind_tables": ("data/sources/test_mind.py", "the files of MIND"),
    "data/sources/movielens_tables": (
        "data/sources/test_movielens.py",
        "the files of MovieLens",
    ),
    "data/sources/source": ("data/sources/test_sources.py", "every source is one"),
    "data/splits/split": ("data/splits/test_splits.py", "data, and what all keep"),
    "data/synthetic/news_articles": (
        "data/synthetic/test_news_world.py",
        "the articles of that world",
    ),
    "experiment/build_report": ("cli/test_train.py", "the page of a trained run"),
    "experiment/comparison": ("cli/test_compare.py", "needs several trained runs"),
    "experiment/comparison_report": ("cli/test_compare.py", "the page of them"),
    "experiment/exporting": ("cli/test_export.py", "needs a trained run"),
    "experiment/training": ("cli/test_train.py", "trains, stops and resumes"),
    "kernels/feature_mlp": (
        "models/feature_mlp/test_training.py",
        "against the literal loop",
    ),
    "kernels/implicit_factors": (THREADS, "both forms, bit for bit"),
    "kernels/matrix_factorization": (
        "models/test_matrix_factorization.py",
        "against the literal loop",
    ),
    "kernels/one_bit": (THREADS, "both forms, bit for bit"),
    "kernels/ranking": ("evaluation/test_ranking.py", "against its plain twin"),
    "kernels/topk": ("serving/test_topk.py", "against a sort"),
    "ledger/records": ("ledger/test_decisions.py", "data that decisions return"),
    "ledger/rows": ("ledger/test_snapshot.py", "no flipped bit changes a figure"),
    "ledger/schema": ("ledger/test_decisions.py", "opens every format"),
    "mechanisms/sum_mechanism": (
        "transport/test_exact_total.py",
        "every sum mechanism through the trusted sum",
    ),
    "methods/fedvae": ("methods/fedvae/test_method.py", "its folder has more"),
    "methods/fmf_ldp": ("methods/fmf_ldp/test_method.py", "its folder has more"),
    "methods/gram": ("methods/gram/test_method.py", "its folder has more"),
    "methods/gram_forecast": ("methods/gram/test_forecast.py", "in gram's folder"),
    "methods/gram_heuristics": ("methods/gram/test_heuristics.py", "in gram's folder"),
    "methods/privrec": ("methods/privrec/test_method.py", "its folder has more"),
    "models/feature_mlp/blueprint": (
        "methods/privrec/test_method.py",
        "the network of a catalog is the method's",
    ),
    "models/feature_mlp/cohort": (
        "methods/privrec/test_method.py",
        "a cohort trains as one client at a time does",
    ),
    "models/feature_mlp/compiled_pass": (
        "models/feature_mlp/test_training.py",
        "against the literal loop",
    ),
    "models/feature_mlp/plain_pass": (
        "models/feature_mlp/test_training.py",
        "against the literal loop",
    ),
    "data/parsing/release_files": (
        "data/sources/test_netflix.py",
        "one way to hold each form",
    ),
    "models/feature_mlp/torch_twin": (
        "models/feature_mlp/test_network.py",
        "torch's gradients are the network's",
    ),
    "models/news_encoders/torch_gradients": (
        "models/news_encoders/test_nrms.py",
        "every word model against the literal loop",
    ),
    "models/news_encoders/word_encoder": (
        "models/news_encoders/test_nrms.py",
        "what every word model is tested for",
    ),
    "models/news_encoders/word_model": (
        "models/news_encoders/test_nrms.py",
        "the contract of every word model",
    ),
    "privacy/privacy": ("privacy/test_central_gaussian.py", "the interface of all"),
    "reporting/report_data": ("reporting/test_html.py", "data that a page shows"),
    "service/federation/client_folder": (
        "service/federation/test_client.py",
        "what a client finds after a restart",
    ),
    "service/federation/posting": (
        "service/federation/test_simulated_clients.py",
        "answers, refusals and a port where nobody listens",
    ),
    "service/relay/overview": ("service/relay/test_services.py", "the pages of both"),
    "service/relay/relay_endpoints": (
        "service/relay/test_services.py",
        "each other over HTTP",
    ),
    "service/relay/relay_client": (
        "service/relay/test_services.py",
        "each other over HTTP",
    ),
    "service/relay/collector_endpoints": (
        "service/relay/test_services.py",
        "each other over HTTP",
    ),
    "service/relay/relay_store": (
        "service/relay/test_relay.py",
        "what is on the disk after every decision",
    ),
    "service/federation/invited_run": (
        "service/relay/test_collected_run.py",
        "the files of every run",
    ),
    "service/federation/public_rounds": (
        "service/federation/test_coordinator.py",
        "what everybody may read of rounds",
    ),
    "service/federation/stepwise_run": (
        "service/federation/test_coordinator.py",
        "and test_collector.py: the steps of both",
    ),
    "storage/sqlite_file": (
        "storage/test_store_contract.py",
        "what every store keeps on a full disk",
    ),
    "testing/client_process": ("testing/test_contract.py", "the toy in a process"),
    "testing/toy": ("testing/test_contract.py", "the contract's own subject"),
    "tree/dense": ("tree/test_leaves.py", "every kind of leaf, by the same tests"),
    "tree/factored": ("tree/test_leaves.py", "every kind of leaf, by the same tests"),
    "tree/grouped": ("tree/test_leaves.py", "every kind of leaf, by the same tests"),
    "tree/symmetric": ("tree/test_leaves.py", "every kind of leaf, by the same tests"),
    "version": ("test_package.py", "one version, wherever it is read"),
}


def modules() -> dict[str, bool]:
    """Every module by its path, and whether it has a test of its name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).with_suffix("").as_posix()
        if path.stem.startswith("__"):
            continue
        where = TESTS / Path(name).parent / f"test_{path.stem}.py"
        found[name] = where.is_file()
    return found


def names(text: str, module: str) -> bool:
    """Whether a text names a module: whole, or imported from its package."""
    whole = "tacit." + module.replace("/", ".")
    package, _, last = whole.rpartition(".")
    imported = rf"from {re.escape(package)} import (\([^)]*|.*)\b{last}\b"
    return re.search(rf"{re.escape(whole)}\b|{imported}", text) is not None


def test_every_module_is_tested_somewhere() -> None:
    lost = [name for name, is_own in modules().items() if not is_own]
    assert sorted({*lost} - ELSEWHERE.keys()) == [], "a test of this name, or a line"


def test_no_line_is_left_of_a_module_that_is_gone_or_has_a_test() -> None:
    known = modules()
    assert [name for name in ELSEWHERE if name not in known] == []
    assert [name for name in ELSEWHERE if known.get(name)] == []


@pytest.mark.parametrize("module", ELSEWHERE)
def test_where_a_line_points_the_module_is_named(module: str) -> None:
    file, reason = ELSEWHERE[module]
    assert Path(file).name.startswith("test_")
    assert names((TESTS / file).read_text("utf-8"), module), f"{file}: {module}"
    assert reason


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("from tacit.ledger.rows import Row", True),
        ("from tacit.ledger import anchor, rows", True),
        ("from tacit.ledger import (\n    anchor,\n    rows,\n)", True),
        ('"""Also `tacit.ledger.rows`."""', True),
        ("from tacit.ledger.rows_of import Row", False),
        ("from tacit.kernels import rows", False),
        ("rows = 3", False),
    ],
)
def test_a_module_is_named_whole_or_not_at_all(text: str, is_named: bool) -> None:
    assert names(text, "ledger/rows") is is_named
