"""Importing our kernels leaves numba whole for others."""

import subprocess
import sys


def test_linear_algebra_compiled_after_import_still_works():
    code = """
import odejet.simulate, numba, numpy as np
assert "scipy.linalg.cython_blas" not in __import__("sys").modules
solve = numba.njit(lambda a, b: np.linalg.solve(a, a @ b))
a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
assert np.allclose(solve(a, b), b)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
