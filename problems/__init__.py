"""Problems that tests and benchmarks share: models with known answers, data drawn from them, and independent programs.

systems     the 25 systems of the paper, and values drawn for them
zoo         published models with published verdicts on identifiability
driven      systems that doses, spikes, a computer or a step act on, with exact solutions
sharp       random models with sharp features
chains      chains of enzymes of any length, and data of a model at values of order one
draws       data and starts for refinements of the systems
squares     square systems of the systems, with exact data
explicit    their polynomial systems, and sizes in the paper
prolong     polynomial systems by prolongation
yardsticks  heyoka, CVODES and SciPy for the same model
phcpack     PHCpack, gfan: the same for polynomial systems

It imports neither tests nor benchmarks.
"""
