"""How the documentation is made and checked: what a page shows is made by a command.

    python -m documentation.figures          every picture in docs/figures
    python -m documentation.outputs          the output under the commands of a page
    python -m documentation.notebooks        the outputs of docs/notebooks
    python -m documentation.screenshots OUT  README figures and the site, in Chromium

`documentation.hooks` writes the command reference while MkDocs builds the site, and
`documentation.links` finds links and anchors of the built site that lead nowhere.
"""
