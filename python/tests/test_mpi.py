# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes: this file runs itself under the launcher that the variable PARTITA_MPIRUN names."""
import hashlib
import os
import subprocess
import sys
import unittest

import numpy as np
import partita
import partita.sparse
import scipy.sparse


def found_on_ranks():
    """A digest of the bits of what is computed on four ranks."""
    plain = scipy.sparse.random_array((50, 31), density=0.2, format="csr", rng=np.random.default_rng(4))
    a, x = partita.sparse.csr_array(plain), np.cos(np.arange(31 * 3.0)).reshape(31, 3)
    fit = partita.train("karate", policy="grid_2d", epochs=6, threads=1)
    products = (a @ x, a.T @ (a @ x), partita.gemm(x, x.T), partita.gemm(x, x, transpose=True), fit.logits())
    np.testing.assert_allclose(products[1], plain.T @ (plain @ x))
    return hashlib.sha256(b"".join([np.array(fit.loss).tobytes(), *(np.ascontiguousarray(p).tobytes() for p in products)])).hexdigest()


@unittest.skipUnless("PARTITA_MPIRUN" in os.environ, "this build has no MPI")
class Processes(unittest.TestCase):
    def test_processes_compute_what_threads_do(self):
        partita.ranks(4, threads=1)
        right = found_on_ranks()
        done = subprocess.run([*os.environ["PARTITA_MPIRUN"].split(), sys.executable, __file__, "rank"], check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout.split("\n")[:-1], [right] * 4)


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        partita.use_mpi(threads=1)
        sys.stdout.write(found_on_ranks() + "\n")
    else:
        unittest.main()
