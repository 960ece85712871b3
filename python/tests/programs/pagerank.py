# SPDX-License-Identifier: Apache-2.0
"""PageRank of a directed graph by power iteration."""
import numpy as np
import scipy.sparse as sparse

n = 2000
rng = np.random.default_rng(1)
source, target = rng.integers(0, n, 12000), rng.zipf(1.5, 12000) % n
links = sparse.csr_array((np.ones(12000), (source, target)), shape=(n, n))
links.sum_duplicates()
out = links.sum(axis=1)
walk = (sparse.diags_array(np.divide(1, out, where=out > 0, out=np.zeros(n))) @ links).T

rank = np.full(n, 1 / n)
for _ in range(100):
    before, dangling = rank, rank[out == 0].sum()
    rank = 0.85 * (walk @ rank + dangling / n) + 0.15 / n
    if np.abs(rank - before).sum() < 1e-12:
        break
result = rank
