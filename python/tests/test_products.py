# SPDX-License-Identifier: Apache-2.0
"""Products with sparse and dense matrices on the ranks of this process."""
import copy
import os
import pathlib
import pickle
import re
import runpy
import tempfile
import threading
import unittest

import numpy as np
import partita
import partita.sparse
import scipy.sparse

PROGRAMS = pathlib.Path(__file__).parent / "programs"


def example(rows=53, cols=41, dtype=np.float64, seed=0):
    return scipy.sparse.random_array((rows, cols), density=0.2, format="csr", rng=np.random.default_rng(seed), dtype=dtype)


class Borrowed:
    """A tensor of another library, of which nothing is known but DLPack."""

    def __init__(self, array):
        self.array, self.shape, self.asked = array, array.shape, 0

    def __dlpack__(self, **how):
        self.asked += 1
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Products(unittest.TestCase):
    def tearDown(self):
        partita.ranks(1)

    def test_every_class_and_type_multiplies_as_in_scipy(self):
        for ranks, policy in ((1, "row_1d"), (3, "row_1d"), (4, "grid_2d"), (4, "feature_column")):
            partita.ranks(ranks, policy=policy)
            for kind in ("csr_array", "csc_array", "csr_matrix", "csc_matrix"):
                for dtype in (np.float32, np.float64):
                    with self.subTest(ranks=ranks, policy=policy, kind=kind, dtype=dtype):
                        plain = getattr(scipy.sparse, kind)(example(dtype=dtype))
                        a = getattr(partita.sparse, kind)(plain)
                        x, left = np.cos(np.arange(41 * 5, dtype=dtype)).reshape(41, 5), np.ones((2, 53), dtype)
                        for found, right in ((a @ x, plain @ x), (a @ x[:, 0], plain @ x[:, 0]), (a.T @ left.T, plain.T @ left.T),
                                             (left @ a, left @ plain), (left[0] @ a, left[0] @ plain), (a.dot(x), plain.dot(x)),
                                             (a.T.T @ x, plain @ x)):
                            self.assertEqual((found.dtype, found.shape), (right.dtype, right.shape))
                            np.testing.assert_allclose(found, right, rtol=1e-5 if dtype == np.float32 else 1e-13)

    def test_the_ranks_compute_them(self):
        partita.ranks(4)
        a, before = partita.sparse.csr_array(example()), partita.words_received()
        a @ np.ones(41)
        self.assertGreater(partita.words_received(), before)
        self.assertEqual(partita.size(), 4)

    def test_one_rank_reads_the_callers_arrays(self):
        plain = example()
        values = plain.data
        a = partita.sparse.csr_array(plain)
        x, y = np.ones((41, 2)), np.empty((53, 2))
        self.assertIs(partita.spmm(a, x, out=y), y)
        values *= 2  # the memory that the rank reads
        np.testing.assert_allclose(a @ x, 2 * y)

    def test_arrays_are_read_only_once_they_are_on_the_ranks(self):
        partita.ranks(2)
        a = partita.sparse.csr_array(example())
        a @ np.ones(41)
        with self.assertRaisesRegex(ValueError, "read-only"):
            a.data[0] = 1
        twice = a * 2
        np.testing.assert_allclose(twice @ np.ones(41), 2 * (a @ np.ones(41)))

    def test_long_indices_unsorted_and_repeated_columns(self):
        long = (np.array([0, 3, 4]), np.array([2, 0, 2, 1]), np.array([1.0, 2, 3, 4]))
        for ranks in (1, 2):
            partita.ranks(ranks)
            for index in (np.int32, np.int64):
                a = partita.sparse.csr_array((long[2], long[1].astype(index), long[0].astype(index)), shape=(2, 3))
                np.testing.assert_array_equal(a @ np.array([1.0, 10, 100]), [402, 40])

    def test_other_types_are_left_to_scipy(self):
        partita.ranks(2)
        a = partita.sparse.csr_array(np.array([[1, 2], [0, 3]]))
        self.assertEqual((a @ np.array([1, 1])).dtype, np.int64)
        np.testing.assert_array_equal(a @ np.array([1.5, 1]), [3.5, 3])
        np.testing.assert_array_equal((a @ a).toarray(), [[1, 8], [0, 9]])
        with self.assertRaises(ValueError):
            a @ np.ones(3)

    def test_tensors_of_other_libraries(self):
        partita.ranks(2)
        plain, x = example(), np.cos(np.arange(41 * 4.0)).reshape(41, 4)
        tensor = Borrowed(x)
        np.testing.assert_allclose(partita.sparse.csr_array(plain) @ tensor, plain @ x)
        np.testing.assert_allclose(partita.spmm(plain, tensor), plain @ x)
        np.testing.assert_allclose(partita.gemm(tensor, x.T), x @ x.T)
        self.assertGreater(tensor.asked, 2)

    def test_dense_products(self):
        a, b = np.sin(np.arange(37 * 5.0)).reshape(37, 5), np.cos(np.arange(5 * 3.0)).reshape(5, 3)
        for ranks in (1, 4):
            partita.ranks(ranks)
            np.testing.assert_allclose(partita.gemm(a, b), a @ b, rtol=1e-13)
            np.testing.assert_allclose(partita.gemm(a, a, transpose=True), a.T @ a, rtol=1e-12)
            found = partita.gemm(a.astype(np.float32), b.astype(np.float32))
            self.assertEqual(found.dtype, np.float32)
            with self.assertRaisesRegex(partita.ShapeError, "37 x 5.* cannot be multiplied by .*37 x 5"):
                partita.gemm(a, a)

    def test_errors_have_the_librarys_sentences(self):
        with self.assertRaisesRegex(ValueError, "unknown policy .diagonal."):
            partita.ranks(2, policy="diagonal")
        with self.assertRaisesRegex(partita.MeshError, "2x2x1"):
            partita.ranks(4, mesh="2by2")
        with self.assertRaises(partita.Error):
            partita.ranks(0)
        with self.assertRaises(ValueError):
            partita.spmm(example(), np.ones(41), out=np.empty(41))
        self.assertTrue(issubclass(partita.InputError, (ValueError, partita.Error)))

    def test_matrices_are_distributed_anew_on_other_ranks(self):
        a, x = partita.sparse.csr_array(example()), np.ones((41, 3))
        first = a @ x
        for ranks in (2, 5, 1):
            partita.ranks(ranks)
            np.testing.assert_allclose(a @ x, first)

    def test_matrices_on_the_ranks_are_copied_and_pickled(self):
        partita.ranks(2)
        a = partita.sparse.csr_array(example())
        right = a @ np.ones(41)
        for other in (copy.deepcopy(a), pickle.loads(pickle.dumps(a)), a.copy()):
            other.data *= 2
            np.testing.assert_allclose(other @ np.ones(41), 2 * right)

    def test_threads_of_the_interpreter_take_turns(self):
        partita.ranks(3)
        a, x = partita.sparse.csr_array(example()), np.cos(np.arange(41 * 3.0)).reshape(41, 3)
        right, found = scipy.sparse.csr_array(a) @ x, []
        callers = [threading.Thread(target=lambda: found.extend(a @ x for _ in range(20))) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        self.assertEqual(len(found), 80)
        for y in found:
            np.testing.assert_allclose(y, right)

    def test_a_child_of_fork_is_a_rank_by_itself(self):
        partita.ranks(2)
        a = partita.sparse.csr_array(example())
        right = a @ np.ones(41)
        child = os.fork()
        if child == 0:
            os._exit(0 if partita.size() == 1 and np.allclose(a @ np.ones(41), right) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_five_programs_run_on_four_ranks_with_the_import_changed(self):
        programs = sorted(PROGRAMS.glob("*.py"))
        self.assertEqual(len(programs), 5)
        for path in programs:
            with self.subTest(program=path.name), tempfile.TemporaryDirectory() as folder:
                right = runpy.run_path(str(path))["result"]
                changed, times = re.subn(r"\bscipy\.sparse\b", "partita.sparse", path.read_text())
                self.assertGreater(times, 0)
                copy = pathlib.Path(folder) / path.name
                copy.write_text(changed)
                partita.ranks(4)
                found = runpy.run_path(str(copy))["result"]
                self.assertGreater(partita.words_received(), 0)
                self.assertEqual((found.dtype, found.shape), (right.dtype, right.shape))
                single = right.dtype == np.float32
                np.testing.assert_allclose(found, right, rtol=1e-4 if single else 1e-7, atol=1e-6 if single else 1e-9)


if __name__ == "__main__":
    unittest.main()
