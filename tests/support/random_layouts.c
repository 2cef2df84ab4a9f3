/* SPDX-License-Identifier: Apache-2.0 */
#include "random_layouts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "dense.h"
#include "mesh.h"

int chance_below(uint64_t *chance, int n)
{
    return (int)(random_next(chance) >> 33) % n; /* the upper bits */
}

/* The same processes, some axes with weights; takes the mesh. */
static trama_mesh *with_weights(uint64_t *chance, trama_mesh *mesh)
{
    for (int a = 0; a < trama_mesh_ndim(mesh); a++) {
        int weights[MOST_PROCESSES];
        if (chance_below(chance, 4))
            continue;
        for (int i = 0; i < trama_mesh_extent(mesh, a); i++)
            weights[i] = 1 + chance_below(chance, 4);
        trama_mesh *weighted = trama_mesh_weighted(mesh, a, weights);
        assert(weighted);
        trama_mesh_destroy(&mesh);
        mesh = weighted;
    }
    return mesh;
}

/* Up to `most` processes out of `pool`, in any order. */
trama_mesh *random_mesh(uint64_t *chance, int most, int pool)
{
    int ids[MOST_PROCESSES], extent[4], ndim = 1 + chance_below(chance, 4), size = 1;
    for (int i = 0; i < pool; i++)
        ids[i] = i;
    for (int i = 0; i < pool && chance_below(chance, 2); i++) { /* half of the meshes in order */
        int k = i + chance_below(chance, pool - i), id = ids[i];
        ids[i] = ids[k];
        ids[k] = id;
    }
    for (int a = 0; a < ndim; a++) {
        extent[a] = 1 + chance_below(chance, 3) + chance_below(chance, 2);
        if (a == ndim - 1 && !chance_below(chance, 3))
            extent[a] = most;
        while (size * extent[a] > most)
            extent[a]--;
        size *= extent[a];
    }
    trama_mesh *mesh = trama_mesh_create_ids(ndim, extent, NULL, ids);
    assert(mesh);
    return with_weights(chance, mesh);
}

/* A dim for each axis that splits one, and the orders in which axes split one dim. */
static void random_splits(uint64_t *chance, int naxes, int ndim, const bool *partial, int *dim, int *order)
{
    for (int a = 0; a < naxes; a++) {
        dim[a] = partial[a] || !ndim || !chance_below(chance, 3) ? -1 : chance_below(chance, ndim);
        order[a] = 0;
        if (dim[a] < 0)
            continue;
        for (int b = 0; b < a; b++)
            order[a] += dim[b] == dim[a];
        int first = chance_below(chance, order[a] + 1); /* goes in anywhere */
        for (int b = 0; b < a; b++)
            order[b] += dim[b] == dim[a] && order[b] >= first;
        order[a] = first;
    }
}

/* Whether a process is the first along the axes that replicate: a mask may take away all others. */
static bool is_first_replica(const trama_mesh *mesh, const bool *partial, const int *dim, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(mesh, position, coordinate);
    for (int a = 0; a < trama_mesh_ndim(mesh); a++)
        if (!partial[a] && dim[a] < 0 && coordinate[a])
            return false;
    return true;
}

void random_layout(uint64_t *chance, const trama_mesh *mesh, int ndim, bool with_partials, char *out, trama_layout *l)
{
    static const char *const kinds[] = {"P(sum)", "P(max)", "P(min)", "P(avg)"};
    const char *kind = kinds[chance_below(chance, 4)];
    int dim[TRAMA_MAX_AXES], order[TRAMA_MAX_AXES], naxes = trama_mesh_ndim(mesh), n = 0;
    bool partial[TRAMA_MAX_AXES];
    for (int a = 0; a < naxes; a++)
        partial[a] = with_partials && !chance_below(chance, 2);
    random_splits(chance, naxes, ndim, partial, dim, order);
    for (int a = 0; a < naxes; a++) {
        n += sprintf(out + n, "%s%s", a ? "," : "", partial[a] ? kind : dim[a] < 0 ? "R" : "");
        if (dim[a] >= 0)
            n += sprintf(out + n, "S(%d)[%d]", dim[a], order[a]);
    }
    if (!chance_below(chance, 3)) {
        n += sprintf(out + n, " mask{");
        for (int i = 0; i < trama_mesh_size(mesh); i++)
            n += sprintf(out + n, "%s%d", i ? "," : "",
                         chance_below(chance, 3) || is_first_replica(mesh, partial, dim, i));
        sprintf(out + n, "}");
    }
    trama_status status = trama_layout_parse(mesh, ndim, out, l);
    assert(!status);
    (void)status;
}

trama_shape random_shape(uint64_t *chance, bool large)
{
    static const int64_t extents[] = {0, 1, 2, 3, 5, 7, 8, 11};
    trama_shape shape = {.ndim = chance_below(chance, 9) ? 1 + chance_below(chance, 3) : 0};
    if (large)
        return chance_below(chance, 2) ? TRAMA_SHAPE(70001) : TRAMA_SHAPE(3, 211, 97);
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] = extents[(chance_below(chance, 8) ? 1 : 0) + chance_below(chance, 7)];
    return shape;
}

double *random_numbers(uint64_t *chance, int64_t n)
{
    double *data = malloc((size_t)n * sizeof *data + 1);
    for (int64_t i = 0; i < n; i++)
        data[i] = chance_below(chance, 201) - 100;
    return data;
}
