"""What people read of a run: tables for terminals and files, and HTML pages.

    run directory -> Report (plain data) -> tables, charts -> html.render

What belongs here: turning figures that exist into something to look at. What does not:
computing a metric or an epsilon, reading a run directory, printing.
"""
