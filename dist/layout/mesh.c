/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes: creation, weights, coordinates. It knows no tensors. The text form is in mesh_text.c. */
#include "mesh.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Bytes that planning may use at one time for each process of a mesh: copies of ids, masks, places. */
enum { RESERVE_A_PROCESS = 16, RESERVED_PROCESSES = 1 << 20 };

trama_status mesh_error(const char *problem, const char *value)
{
    return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: %s%s%s", problem, value ? " in " : "", value ? value : "");
}

const char *mesh_reason(void)
{
    static _Thread_local char reason[512];
    bool of_mesh = !strncmp(trama_error(), "mesh: ", strlen("mesh: "));
    snprintf(reason, sizeof reason, "%s%s", of_mesh ? ": " : "", of_mesh ? trama_error() : "");
    return reason;
}

size_t mesh_identifier(const char *at)
{
    size_t n = 0;
    if (isalpha((unsigned char)*at) || *at == '_')
        while (isalnum((unsigned char)at[n]) || at[n] == '_')
            n++;
    return n;
}

static bool set_axes(trama_mesh *m, int ndim, const int *shape, const char *const *names)
{
    if (ndim < 1 || ndim > TRAMA_MAX_AXES)
        return mesh_error("it needs 1 to 8 axes", NULL), false;
    int64_t size = 1;
    for (int a = 0; a < ndim; a++) {
        if (shape[a] < 1)
            return mesh_error("every axis needs at least one process", NULL), false;
        m->shape[a] = m->weight_sum[a] = shape[a];
        size *= shape[a];
        if (size > MAX_PROCESSES)
            return mesh_error("more than 2^24 processes", NULL), false;
        const char *name = names && names[a] ? names[a] : "";
        if (strlen(name) >= AXIS_NAME_BYTES)
            return mesh_error("an axis name is longer than 23 bytes", NULL), false;
        if (mesh_identifier(name) != strlen(name))
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: '%s' is no name of letters, digits and _", name), false;
        for (int b = 0; b < a; b++)
            if (*name && !strcmp(name, m->names[b]))
                return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: two axes are named '%s'", name), false;
        strcpy(m->names[a], name);
    }
    m->ndim = ndim;
    m->size = (int)size;
    return true;
}

static int *copy_ints(const int *from, int n)
{
    return memcpy(trama_alloc((size_t)n * sizeof *from), from, (size_t)n * sizeof *from);
}

/* The first repeated id among n ids, which are at most `last`; or -1. */
static int find_repeated(const int *ids, int n, int last)
{
    unsigned char *seen = trama_alloc((size_t)last / 8 + 1);
    int repeated = -1;
    for (int i = 0; i < n && repeated < 0; i++) {
        unsigned char *of_eight = &seen[ids[i] / 8], bit = (unsigned char)(1u << ids[i] % 8);
        repeated = *of_eight & bit ? ids[i] : -1;
        *of_eight |= bit;
    }
    free(seen);
    return repeated;
}

static bool ids_are_good(const int *ids, int n)
{
    int last = 0;
    for (int i = 0; i < n; i++) {
        if (ids[i] < 0)
            return mesh_error("process ids must not be negative", NULL), false;
        last = ids[i] > last ? ids[i] : last;
    }
    if (last >= MAX_PROCESSES)
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: process id %d is not below 2^24", last), false;
    int repeated = find_repeated(ids, n, last);
    if (repeated >= 0)
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: process id %d is there twice", repeated), false;
    return true;
}

trama_mesh *mesh_new(int ndim, const int *shape, const char *const *names, const int *ids)
{
    trama_mesh *m = trama_alloc(sizeof *m);
    if (!set_axes(m, ndim, shape, names)) {
        free(m);
        return NULL;
    }
    if (!memory_expect((size_t)min_i64(m->size, RESERVED_PROCESSES) * RESERVE_A_PROCESS)) {
        trama_fail(NOWHERE, TRAMA_E_MEMORY, "mesh: no memory for its %d processes", m->size);
        free(m);
        return NULL;
    }
    m->ids = trama_alloc((size_t)m->size * sizeof *m->ids);
    for (int i = 0; i < m->size; i++)
        m->ids[i] = ids ? ids[i] : i;
    return m;
}

trama_mesh *trama_mesh_create_ids(int ndim, const int *shape, const char *const *names, const int *ids)
{
    if (!shape)
        return mesh_error("the list of extents is NULL", NULL), NULL;
    trama_mesh *m = mesh_new(ndim, shape, names, ids);
    if (m && ((ids && !ids_are_good(ids, m->size)) || memory_status(NOWHERE, "mesh")))
        trama_mesh_destroy(&m);
    return m;
}

void mesh_drop_weights(trama_mesh *m, int axis)
{
    free(m->weights[axis]);
    m->weights[axis] = NULL;
    m->weight_sum[axis] = m->shape[axis];
}

/* Stores weights in lowest terms, so that proportional weights are equal. Equal weights become unweighted. */
bool mesh_set_weights(trama_mesh *m, int axis, const int *weights)
{
    int common = 0;
    int64_t sum = 0;
    bool equal = true;
    for (int i = 0; i < m->shape[axis]; i++) {
        if (weights[i] < 1)
            return trama_fail(
                       NOWHERE, TRAMA_E_LAYOUT,
                       "mesh: weight %d of axis %d is %d; weights are at least 1 (leave a process out by the ids)", i,
                       axis, weights[i]),
                   false;
        common = (int)common_divisor(weights[i], common);
        sum += weights[i];
        equal = equal && weights[i] == weights[0];
    }
    if (sum / common > INT_MAX)
        return mesh_error("the weights of an axis add up to more than 2^31-1", NULL), false;
    mesh_drop_weights(m, axis);
    if (equal)
        return true;
    m->weights[axis] = copy_ints(weights, m->shape[axis]);
    m->weight_sum[axis] = (int)(sum / common);
    for (int i = 0; i < m->shape[axis]; i++)
        m->weights[axis][i] /= common;
    return true;
}

int mesh_processes(const trama_mesh *mesh)
{
    int n = 0;
    for (int i = 0; i < mesh->size; i++)
        n = mesh->ids[i] >= n ? mesh->ids[i] + 1 : n;
    return n;
}

bool mesh_is_weighted(const trama_mesh *mesh)
{
    for (int a = 0; a < mesh->ndim; a++)
        if (mesh->weights[a])
            return true;
    return false;
}

trama_mesh *trama_mesh_weighted(const trama_mesh *mesh, int axis, const int *weights)
{
    if (!mesh || !weights)
        return mesh_error(mesh ? "the list of weights is NULL" : "the mesh to be weighted is NULL", NULL), NULL;
    if (axis < 0 || axis >= mesh->ndim)
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: weights for axis %d of a mesh of %d axes", axis, mesh->ndim),
               NULL;
    trama_mesh *m = mesh_copy(mesh);
    if (!mesh_set_weights(m, axis, weights) || memory_status(NOWHERE, "mesh"))
        trama_mesh_destroy(&m);
    return m;
}

int trama_mesh_weight(const trama_mesh *mesh, int axis, int i)
{
    if (!mesh || axis < 0 || axis >= mesh->ndim || i < 0 || i >= mesh->shape[axis])
        return 0;
    return mesh->weights[axis] ? mesh->weights[axis][i] : 1;
}

/* The one axis of the parent along which the processes differ that differ along `axis` of the child alone; -1 without
 * one axis. at [child->size]: their positions in the parent. */
static int parent_axis(const trama_mesh *parent, const trama_mesh *child, const int *at, int axis)
{
    int found = -1, coordinate[TRAMA_MAX_AXES], here[TRAMA_MAX_AXES], first[TRAMA_MAX_AXES];
    for (int i = 0; i < child->size; i++) {
        mesh_coordinate(child, i, coordinate);
        coordinate[axis] = 0;
        mesh_coordinate(parent, at[i], here);
        mesh_coordinate(parent, at[mesh_position(child, coordinate)], first);
        for (int a = 0; a < parent->ndim; a++)
            if (here[a] != first[a] && found != a) {
                if (found >= 0)
                    return -1;
                found = a;
            }
    }
    return found;
}

/* Sets weights [child->shape[axis]] to the weights along axis `along` of the parent. False if processes with one
 * coordinate of the child have different weights. */
static bool weights_of_parent(const trama_mesh *parent, int along, const trama_mesh *child, const int *at, int axis,
                              int *weights)
{
    int coordinate[TRAMA_MAX_AXES], of_parent[TRAMA_MAX_AXES];
    memset(weights, 0, (size_t)child->shape[axis] * sizeof *weights);
    for (int i = 0; i < child->size; i++) {
        mesh_coordinate(child, i, coordinate);
        mesh_coordinate(parent, at[i], of_parent);
        int weight = trama_mesh_weight(parent, along, of_parent[along]), *known = &weights[coordinate[axis]];
        if (*known && *known != weight)
            return false;
        *known = weight;
    }
    return true;
}

static void take_weights(const trama_mesh *parent, trama_mesh *child, const int *at)
{
    int *weights = trama_alloc((size_t)child->size * sizeof *weights);
    for (int axis = 0; axis < child->ndim; axis++) {
        int along = parent_axis(parent, child, at, axis);
        if (along >= 0 && weights_of_parent(parent, along, child, at, axis, weights))
            mesh_set_weights(child, axis, weights);
    }
    free(weights);
}

trama_mesh *trama_mesh_child(const trama_mesh *parent, int ndim, const int *shape, const char *const *names,
                             const int *ids)
{
    if (!parent || !ids)
        return mesh_error(parent ? "the ids of a child are NULL" : "the parent is NULL", NULL), NULL;
    trama_mesh *m = trama_mesh_create_ids(ndim, shape, names, ids);
    if (!m)
        return NULL;
    int *at = trama_alloc((size_t)m->size * sizeof *at), missing = -1;
    for (int i = 0; i < m->size; i++)
        if ((at[i] = mesh_find(parent, m->ids[i])) < 0)
            missing = m->ids[i];
    if (missing < 0) {
        take_weights(parent, m, at);
        m->parent = mesh_copy(parent);
    } else {
        trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: process id %d of the child is not in its parent", missing);
        trama_mesh_destroy(&m);
    }
    free(at);
    if (memory_status(NOWHERE, "mesh"))
        trama_mesh_destroy(&m);
    return m;
}

trama_mesh *mesh_copy(const trama_mesh *mesh)
{
    trama_mesh *m = trama_alloc(sizeof *m);
    *m = *mesh;
    m->ids = copy_ints(mesh->ids, m->size);
    memset(&m->masks, 0, sizeof m->masks);
    for (int a = 0; a < m->ndim; a++)
        if (m->weights[a])
            m->weights[a] = copy_ints(mesh->weights[a], m->shape[a]);
    m->parent = mesh->parent ? mesh_copy(mesh->parent) : NULL;
    return m;
}

void trama_mesh_destroy(trama_mesh **mesh)
{
    if (!mesh || !*mesh)
        return;
    for (int i = 0; i < (*mesh)->masks.n; i++)
        free((*mesh)->masks.at[i]);
    ARRAY_FREE(&(*mesh)->masks);
    for (int a = 0; a < (*mesh)->ndim; a++)
        free((*mesh)->weights[a]);
    trama_mesh_destroy(&(*mesh)->parent);
    free((*mesh)->ids);
    free(*mesh);
    *mesh = NULL;
}

int trama_mesh_ndim(const trama_mesh *mesh)
{
    return mesh ? mesh->ndim : 0;
}

int trama_mesh_size(const trama_mesh *mesh)
{
    return mesh ? mesh->size : 0;
}

int trama_mesh_extent(const trama_mesh *mesh, int axis)
{
    return mesh && axis >= 0 && axis < mesh->ndim ? mesh->shape[axis] : 0;
}

const char *trama_mesh_axis_name(const trama_mesh *mesh, int axis)
{
    return mesh && axis >= 0 && axis < mesh->ndim && *mesh->names[axis] ? mesh->names[axis] : NULL;
}

int trama_mesh_id(const trama_mesh *mesh, int position)
{
    return mesh && position >= 0 && position < mesh->size ? mesh->ids[position] : -1;
}

const trama_mesh *trama_mesh_parent(const trama_mesh *mesh)
{
    return mesh ? mesh->parent : NULL;
}

bool mesh_same(const trama_mesh *a, const trama_mesh *b)
{
    if (!a || !b || !trama_mesh_equal(a, b))
        return a == b;
    for (int axis = 0; axis < a->ndim; axis++)
        if (strcmp(a->names[axis], b->names[axis]))
            return false;
    return mesh_same(a->parent, b->parent);
}

bool trama_mesh_equal(const trama_mesh *a, const trama_mesh *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->ndim != b->ndim || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) ||
        memcmp(a->ids, b->ids, (size_t)a->size * sizeof *a->ids))
        return false;
    for (int axis = 0; axis < a->ndim; axis++)
        for (int i = 0; i < a->shape[axis]; i++)
            if (trama_mesh_weight(a, axis, i) != trama_mesh_weight(b, axis, i))
                return false;
    return true;
}

void mesh_coordinate(const trama_mesh *mesh, int position, int *coordinate)
{
    for (int a = mesh->ndim - 1; a >= 0; a--) {
        coordinate[a] = position % mesh->shape[a];
        position /= mesh->shape[a];
    }
}

int mesh_position(const trama_mesh *mesh, const int *coordinate)
{
    int position = 0;
    for (int a = 0; a < mesh->ndim; a++)
        position = position * mesh->shape[a] + coordinate[a];
    return position;
}

int mesh_find(const trama_mesh *mesh, int id)
{
    if (id >= 0 && id < mesh->size && mesh->ids[id] == id)
        return id;
    for (int i = 0; i < mesh->size; i++)
        if (mesh->ids[i] == id)
            return i;
    return -1;
}

int mesh_find_hinted(const trama_mesh *mesh, int id, int position)
{
    return position < mesh->size && mesh->ids[position] == id ? position : mesh_find(mesh, id);
}

const unsigned char *mesh_mask(const trama_mesh *mesh, const unsigned char *mask)
{
    if (!mask || !memchr(mask, 0, (size_t)mesh->size))
        return NULL;
    for (int i = 0; i < mesh->masks.n; i++)
        if (!memcmp(mesh->masks.at[i], mask, (size_t)mesh->size))
            return mesh->masks.at[i];
    trama_mesh *owner = (trama_mesh *)mesh; /* interning does not change the mesh for callers */
    unsigned char **own = ARRAY_PUSH(&owner->masks);
    return *own = memcpy(trama_alloc((size_t)mesh->size), mask, (size_t)mesh->size);
}
