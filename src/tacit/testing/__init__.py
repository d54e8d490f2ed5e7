"""What a test of a method or mechanism needs, as public as the rest.

    statistics          assertions on random samples, with a stated false-alarm rate
    contract            what every method must keep; inherit `MethodContract`
    mechanism_contract  what every mechanism of sums must keep
    client_process      one client in a process: broadcast bytes in, report bytes out
    hostile_broadcasts  broadcasts that a dishonest server might send
    toy                 a tiny method that uses every function of the engine

What belongs here: checks that authors of methods outside this package can run too. What
does not: fixtures of our own tests. It comes last and imports anything; nothing imports
it but tests.
"""
