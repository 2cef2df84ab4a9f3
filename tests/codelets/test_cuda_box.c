/* SPDX-License-Identifier: Apache-2.0 */
/* Copying, combining and filling boxes on a GPU: what is expected of the kernels for CPUs. */
#define TESTS_ON_GPU
#include "test_box.c"
