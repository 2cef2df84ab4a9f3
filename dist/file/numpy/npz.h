/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in archives of NumPy (.npz). */
#ifndef NPZ_H
#define NPZ_H

#include "npy.h"

/* The name of a member behind "FILE.npz:"; "" where path is "FILE.npz"; NULL where it is no archive. */
const char *npz_member(const char *path);

/* Reads one array, as trama_read_npy does. */
trama_status npz_read(const char *path, npy_header *h, char **content);

#endif
