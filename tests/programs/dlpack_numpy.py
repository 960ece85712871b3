#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blocks go to NumPy and come from it by DLPack, without a copy: dlpack_numpy.py LIBRARY"""
import ctypes
import gc
import sys

import numpy as np

library = ctypes.CDLL(sys.argv[1])
library.made_here.restype = ctypes.c_void_p
library.bytes_here.restype = ctypes.c_long
library.double_in_place.argtypes = [ctypes.c_void_p]
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
LEFT_ALONE, GIVEN_BACK, DOUBLED = 0, 1, 2
USED = b"used_dltensor"  # a capsule keeps the pointer to its name


class Exported:
    """A DLManagedTensor as NumPy and PyTorch take it."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return api.PyCapsule_New(self.tensor, b"dltensor", None)

    def __dlpack_device__(self):
        return (1, 0)


def adopt(array):
    """Passes an array on: what became of it. A tensor that was taken is no longer the capsule's to delete."""
    capsule = array.__dlpack__()
    fate = library.double_in_place(api.PyCapsule_GetPointer(capsule, b"dltensor"))
    if fate != LEFT_ALONE:
        api.PyCapsule_SetName(capsule, USED)
    return fate


x = np.from_dlpack(Exported(library.made_here(3, 4)))
assert x.dtype == np.float32 and x.shape == (3, 4)
assert (x == 10 * np.arange(3)[:, None] + np.arange(4)).all()
assert library.bytes_here() == 48
del x
gc.collect()
assert library.bytes_here() == 0

y = np.arange(6.0).reshape(2, 3)
references = sys.getrefcount(y)
assert adopt(y) == DOUBLED
assert (y == 2 * np.arange(6.0).reshape(2, 3)).all()
assert sys.getrefcount(y) == references

for other in (y.astype(np.float32), y.T, np.arange(6.0)):
    before = other.copy()
    assert adopt(other) == LEFT_ALONE
    assert (other == before).all()
gaps = np.zeros((4, 6))
references = sys.getrefcount(gaps)
assert adopt(gaps[:, :3]) == GIVEN_BACK
assert sys.getrefcount(gaps) == references
print("NumPy has the same memory")
