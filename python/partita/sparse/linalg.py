# SPDX-License-Identifier: Apache-2.0
"""scipy.sparse.linalg: given a matrix of partita.sparse, its iterative solvers multiply on the ranks, with vectors of NumPy. Direct
solvers (spsolve, splu) run in this process alone."""
from scipy.sparse.linalg import *  # noqa: F401,F403
from scipy.sparse.linalg import __all__  # noqa: F401
