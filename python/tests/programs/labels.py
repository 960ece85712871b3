# SPDX-License-Identifier: Apache-2.0
"""Label propagation with a matrix of scores, in single precision."""
import numpy as np
from scipy.sparse import csr_array, random_array

n, classes = 1500, 3
rng = np.random.default_rng(3)
half = random_array((n, n), density=0.004, rng=rng, dtype=np.float32)
graph = csr_array(half + half.T)
degree = graph @ np.ones(n, np.float32)
seeds = np.arange(30)
scores = np.zeros((n, classes), np.float32)
for _ in range(50):
    scores[seeds] = np.eye(classes, dtype=np.float32)[seeds % classes]
    scores = (graph @ scores) / np.maximum(degree, 1e-6)[:, None]
result = scores
