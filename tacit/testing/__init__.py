"""What a test of a method or mechanism needs, as public as the rest.

    statistics   assertions on random samples with a stated chance of a false alarm
    contract     what every method must keep; inherit `MethodContract` in its test

What belongs here: checks that authors of methods outside this package can run too. What
does not: fixtures of our own tests. It comes last and imports anything; nothing imports
it but tests.
"""
