"""The page: models, data, sliders and fits in a browser on this machine, for people who do not program.

    studies     a folder of studies on disk: what was put together, its files, its fits
    drafts      what was put together, as plain values
    posing      the model or the problem that it is
    takes       what becomes of it with files that were dropped, or as an example
    starters    models to begin with for a table of NONMEM
    mistakes    where in a text a mistake is
    views       what the page is told: unknowns, curves, verdicts
    results     what it is told of fits
    scripts     the same fit as a Python script
    child       the program of a process that does the work
    work        processes that are asked, limited and ended
    fits        fits under way, each in a process of its own
    tasks       what is asked of a draft, done and kept: a fit, draws, a population, models
    predictions what a fit says of an experiment that nobody has made
    archives    a study as one zip
    guard       who may ask at all
    server      what may be asked
    serving     the program from its start to its end
    examples    studies to start from

The server itself computes nothing and reads no file that somebody else wrote: children do, so that whatever a file does
to them, the page stays.
"""
