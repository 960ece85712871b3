# SPDX-License-Identifier: Apache-2.0
"""scipy.sparse, with matrices whose products with dense ones run on the ranks.

csr_array, csc_array, csr_matrix and csc_matrix are SciPy's classes, and all that these have works. What differs is A @ X, X @ A and
A.dot(X) for a dense X: the ranks compute Y = A X (m x f = m x n times n x f), in float32 or float64. From the first product on the
arrays of A are read-only. Functions (diags_array, kron, load_npz, ...) are SciPy's and return such matrices; other classes, products
of two sparse matrices, of whole numbers and of complex ones are SciPy's, and are computed by this process alone.
"""
import functools as _functools

import numpy as _np
import scipy.sparse as _scipy

import partita as _partita


class _OnRanks:
    """What the four classes add to SciPy's."""

    _by_rows = True
    _fixed = ()  # the arrays of which _handles were made
    _handles = None  # by type, shared with transposes

    def _fix(self):
        """Its arrays are the ones on the ranks, in order, and cannot be written any more."""
        if len(self._fixed) == 3 and all(a is b for a, b in zip(self._fixed, (self.data, self.indices, self.indptr))):
            return
        if not self.has_canonical_format:
            self.data, self.indices = self.data.copy(), self.indices.copy()
            self.sum_duplicates()
        self.data, self.indices, self.indptr = self._fixed = self.data.view(), self.indices.view(), self.indptr.view()
        for array in self._fixed:
            array.flags.writeable = False
        self._handles = {}

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in ("_fixed", "_handles")}

    def _on_ranks(self, dtype):
        self._fix()
        known = self._handles.get(dtype)
        if known is None or not known.is_usable:
            columns = self.shape[1 if self._by_rows else 0]
            make = _partita._core.RankMatrix32 if dtype == _np.float32 else _partita._core.RankMatrix64
            known = make(columns, self.indptr, self.indices, self.data.astype(dtype, copy=False), _partita._place())
            self._handles[dtype] = known
        return known

    def _into(self, x, out=None, transpose=False):
        """A X, or A^T X, as the ranks compute it."""
        x = x if isinstance(x, _np.ndarray) else _np.from_dlpack(x) if hasattr(x, "__dlpack__") else _np.asarray(x)
        dtype = _np.result_type(self.dtype, x.dtype, _np.float32)
        rows = self.shape[1 if transpose else 0]
        if out is not None and (out.shape != (rows, *x.shape[1:]) or out.dtype != dtype or not out.flags.c_contiguous):
            raise ValueError(f"out is a row-major array of {(rows, *x.shape[1:])} and {dtype}")
        block = _np.ascontiguousarray(x, dtype).reshape(x.shape[0], -1)
        y = _np.empty((rows, block.shape[1]), dtype) if out is None else out.reshape(rows, -1)
        self._on_ranks(dtype).multiply(block, y, transpose == self._by_rows)
        return y.reshape(rows, *x.shape[1:]) if out is None else out

    def _is_for_ranks(self, x, rows):
        """Whether the ranks compute the product with x; otherwise SciPy does, or says what is wrong."""
        if isinstance(x, _np.matrix) or not hasattr(x, "__dlpack__") or len(x.shape) not in (1, 2) or x.shape[0] != rows:
            return False
        kind = _np.from_dlpack(x).dtype if not isinstance(x, _np.ndarray) else x.dtype
        return _np.result_type(self.dtype, kind) in (_np.float32, _np.float64) and 0 not in self.shape + tuple(x.shape)

    def __matmul__(self, other):
        return self._into(other) if self._is_for_ranks(other, self.shape[1]) else super().__matmul__(other)

    def __rmatmul__(self, other):
        turned = getattr(other, "T", other)
        if not self._is_for_ranks(turned, self.shape[0]):
            return super().__rmatmul__(other)
        return self._into(turned, transpose=True).T

    def transpose(self, axes=None, copy=False):
        if axes is not None or copy:
            return super().transpose(axes, copy)
        self._fix()
        other = _TRANSPOSED[type(self)](self._fixed, shape=self.shape[::-1], copy=False)
        other.data, other.indices, other.indptr = other._fixed = self._fixed
        other._handles, other.has_canonical_format = self._handles, True
        return other

    def tocsr(self, copy=False):
        return _of_ranks(super().tocsr(copy))

    def tocsc(self, copy=False):
        return _of_ranks(super().tocsc(copy))


class csr_array(_OnRanks, _scipy.csr_array):
    """scipy.sparse.csr_array, whose products with dense arrays run on the ranks."""


class csc_array(_OnRanks, _scipy.csc_array):
    _by_rows = False


class _Matrix(_OnRanks):
    def __mul__(self, other):
        return self @ other if getattr(other, "ndim", 0) > 0 else super().__mul__(other)

    def __rmul__(self, other):
        return self.__rmatmul__(other) if getattr(other, "ndim", 0) > 0 else super().__rmul__(other)


class csr_matrix(_Matrix, _scipy.csr_matrix):
    """scipy.sparse.csr_matrix, whose products with dense arrays run on the ranks."""


class csc_matrix(_Matrix, _scipy.csc_matrix):
    _by_rows = False


_TRANSPOSED = {csr_array: csc_array, csc_array: csr_array, csr_matrix: csc_matrix, csc_matrix: csr_matrix}


def _of_ranks(result):
    """A sparse result of SciPy as a matrix of this module."""
    if not _scipy.issparse(result) or isinstance(result, _OnRanks):
        return result
    by_columns, is_array = result.format == "csc", isinstance(result, _scipy.sparray)
    return ((csr_matrix, csc_matrix), (csr_array, csc_array))[is_array][by_columns](result)


def __getattr__(name):
    found = getattr(_scipy, name)
    if isinstance(found, type) or not callable(found):
        return found
    return _functools.wraps(found)(lambda *given, **options: _of_ranks(found(*given, **options)))
