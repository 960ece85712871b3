# SPDX-License-Identifier: Apache-2.0
"""The Poisson equation on a square, by conjugate gradients."""
import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

k = 40
second = sparse.diags_array([-np.ones(k - 1), 2 * np.ones(k), -np.ones(k - 1)], offsets=[-1, 0, 1])
laplacian = (sparse.kron(second, sparse.eye_array(k)) + sparse.kron(sparse.eye_array(k), second)).tocsr()
b = np.sin(np.arange(k * k))
x, failed = linalg.cg(laplacian, b, rtol=1e-10)
assert failed == 0
result = x
