# SPDX-License-Identifier: Apache-2.0
"""Latent topics of documents: singular vectors of a matrix of words, and a ridge regression on it by LSQR."""
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr, svds

rng = np.random.default_rng(5)
counts = sp.csr_array(sp.random_array((400, 250), density=0.05, rng=rng))
weights = np.log(400 / np.maximum(1, (counts > 0).sum(axis=0)))
words = counts @ sp.diags_array(weights)
u, s, vt = svds(words, k=5, v0=np.ones(250), tol=1e-10)
fitted = lsqr(words, np.asarray(words.sum(axis=1)).ravel(), damp=0.1, atol=1e-12, btol=1e-12)[0]
result = np.concatenate([np.sort(s), fitted])
