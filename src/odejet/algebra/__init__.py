"""Algebra: the square systems of a model and all their roots (steps 4 to 6 of the method).

system      the equations Phi(z) = d at one shooting point or two
select      which equations are solved
newton      corrections of a root, compiled
tracker     paths of roots, compiled
homotopy    roots followed from data to data
monodromy   all roots at generic data
solve       all roots at measured data
library     all of it, found once per model
likely      how many roots give the same outputs: what a verdict that is undecided can go by
"""
