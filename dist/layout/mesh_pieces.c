/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of an extent along an axis of a mesh, by its weights. */
#include "box.h"
#include "mesh.h"

/* n w / sum, rounded down, without overflow. */
static int64_t share(int64_t n, int64_t weight, int64_t sum)
{
    return n / sum * weight + n % sum * weight / sum;
}

/* The remainder of n after the rounded-down shares; less than the number of shares. */
static int64_t left_over(const trama_mesh *mesh, int axis, int64_t n)
{
    int64_t left = n;
    for (int i = 0; i < mesh->shape[axis]; i++)
        left -= share(n, mesh->weights[axis][i], mesh->weight_sum[axis]);
    return left;
}

void mesh_piece(const trama_mesh *mesh, int axis, int64_t n, int i, int64_t *lo, int64_t *length)
{
    const int *weights = mesh->weights[axis];
    if (!weights) {
        piece_of(n, mesh->shape[axis], i, lo, length);
        return;
    }
    int64_t left = left_over(mesh, axis, n);
    *lo = min_i64(i, left);
    for (int k = 0; k < i; k++)
        *lo += share(n, weights[k], mesh->weight_sum[axis]);
    *length = share(n, weights[i], mesh->weight_sum[axis]) + (i < left);
}

void mesh_pieces(const trama_mesh *mesh, int axis, int64_t n, int64_t *begins)
{
    const int *weights = mesh->weights[axis];
    int64_t left = weights ? left_over(mesh, axis, n) : 0, length;
    begins[0] = 0;
    for (int i = 0; i < mesh->shape[axis]; i++) {
        if (weights)
            length = share(n, weights[i], mesh->weight_sum[axis]) + (i < left);
        else
            piece_of(n, mesh->shape[axis], i, &begins[i], &length);
        begins[i + 1] = begins[i] + length;
    }
}

int mesh_piece_find(const trama_mesh *mesh, int axis, int64_t n, int64_t x)
{
    const int *weights = mesh->weights[axis];
    if (!weights)
        return piece_find(n, mesh->shape[axis], x);
    int64_t left = left_over(mesh, axis, n), end = 0;
    for (int i = 0;; i++) {
        end += share(n, weights[i], mesh->weight_sum[axis]) + (i < left);
        if (x < end)
            return i;
    }
}
