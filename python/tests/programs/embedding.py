# SPDX-License-Identifier: Apache-2.0
"""A spectral embedding: eigenvectors of the normalised adjacency matrix of a ring with chords, by Lanczos."""
import numpy as np
from scipy.sparse import coo_array, csr_matrix, diags
from scipy.sparse.linalg import eigsh

n = 600
v = np.arange(n)
ends = np.concatenate([np.stack([v, (v + 1) % n]), np.stack([v, (v * v + 7) % n])], axis=1)
a = csr_matrix(coo_array((np.ones(ends.shape[1]), ends), shape=(n, n)))
a = ((a + a.T) > 0).astype(np.float64)
scale = diags(1 / np.sqrt(np.asarray(a.sum(axis=1)).ravel()))
values, vectors = eigsh(csr_matrix(scale * a * scale), k=4, which="LA", v0=np.ones(n), tol=1e-10)
result = np.concatenate([values, np.abs(vectors.T @ np.ones(n))[:1]])
