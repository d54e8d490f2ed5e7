"""What people read of a run: tables for terminals and files, plots, one HTML page.

    run directory -> Report (plain data) -> tables, plots -> html.render

What belongs here: turning figures that exist into something to look at. What does not:
computing a metric or an epsilon, reading a run directory, printing. matplotlib is
imported when the first plot is drawn.
"""
