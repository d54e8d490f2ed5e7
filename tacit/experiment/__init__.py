"""From a TOML file to data, method, plan, run and evaluation.

    settings.py   the sections of a file, checked whole: all problems in one message
    registry.py   methods and baselines by name, found through entry points
    assemble.py   settings -> dataset, split, plan, simulation
    training.py   train into a run directory, evaluate, compare
    saved.py      a run that is there: load its model, recommend

What belongs here: putting the parts together. What does not: mathematics, printing.
"""
