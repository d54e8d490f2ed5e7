"""From a TOML file to data, method, plan, run and evaluation.

    settings.py         the sections of a file, checked whole: all problems together
    impression_settings.py   the settings of news, where impressions are held out
    registry.py         methods and baselines by name, ours and other packages'
    assemble.py         settings -> dataset, split, plan, simulation
    training.py         train into a run directory, evaluate
    evaluate.py         the method and its baselines on the same held-out part
    search.py           a baseline's settings chosen on validation users
    comparison_grid.py, comparison.py   methods, targets and seeds side by side
    privacy_card.py     the privacy card of a run, as JSON and as a page
    saved_run.py        a finished run: load its model, recommend
    exporting.py        its model as ONNX and JSON, for devices without Python

What belongs here: building a run from its settings. What does not: mathematics,
printing.
"""
