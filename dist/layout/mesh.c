/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes: creation, text form, coordinates. Knows no tensors. */
#include "mesh.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

enum { MAX_PROCESSES = 1 << 24 };

static trama_status mesh_error(const char *problem, const char *value)
{
    return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: %s%s%s", problem, value ? " in " : "", value ? value : "");
}

/* The length of the identifier at the start of a text; 0 where there is none. */
static size_t identifier(const char *at)
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
        m->shape[a] = shape[a];
        size *= shape[a];
        if (size > MAX_PROCESSES)
            return mesh_error("more than 2^24 processes", NULL), false;
        const char *name = names && names[a] ? names[a] : "";
        if (strlen(name) >= AXIS_NAME_BYTES)
            return mesh_error("an axis name is longer than 23 bytes", NULL), false;
        if (identifier(name) != strlen(name))
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

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static bool ids_are_unique(const int *ids, int n)
{
    int *sorted = memcpy(trama_alloc((size_t)n * sizeof *sorted), ids, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_ints);
    bool negative = sorted[0] < 0;
    int repeated = -1;
    for (int i = 1; i < n; i++)
        if (sorted[i] == sorted[i - 1])
            repeated = sorted[i];
    free(sorted);
    if (negative)
        return mesh_error("process ids must not be negative", NULL), false;
    if (repeated >= 0)
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: process id %d is there twice", repeated), false;
    return true;
}

trama_mesh *trama_mesh_create(int ndim, const int *shape, const char *const *names, const int *ids)
{
    trama_mesh *m = trama_alloc(sizeof *m);
    if (!shape || !set_axes(m, ndim, shape, names)) {
        free(m);
        return NULL;
    }
    m->ids = trama_alloc((size_t)m->size * sizeof *m->ids);
    for (int i = 0; i < m->size; i++)
        m->ids[i] = ids ? ids[i] : i;
    if (!ids_are_unique(m->ids, m->size))
        trama_mesh_destroy(&m);
    return m;
}

trama_mesh *trama_mesh_child(const trama_mesh *parent, int ndim, const int *shape, const char *const *names,
                             const int *ids)
{
    if (!parent || !ids)
        return mesh_error("a child needs its parent and its ids", NULL), NULL;
    trama_mesh *m = trama_mesh_create(ndim, shape, names, ids);
    for (int i = 0; m && i < m->size; i++)
        if (mesh_find(parent, m->ids[i]) < 0) {
            trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: process id %d of the child is not in its parent", m->ids[i]);
            trama_mesh_destroy(&m);
        }
    return m;
}

trama_mesh *mesh_copy(const trama_mesh *mesh)
{
    trama_mesh *m = trama_alloc(sizeof *m);
    *m = *mesh;
    m->ids = memcpy(trama_alloc((size_t)m->size * sizeof *m->ids), mesh->ids, (size_t)m->size * sizeof *m->ids);
    memset(&m->masks, 0, sizeof m->masks);
    return m;
}

void trama_mesh_destroy(trama_mesh **mesh)
{
    if (!mesh || !*mesh)
        return;
    for (int i = 0; i < (*mesh)->masks.n; i++)
        free((*mesh)->masks.at[i]);
    ARRAY_FREE(&(*mesh)->masks);
    free((*mesh)->ids);
    free(*mesh);
    *mesh = NULL;
}

int trama_mesh_ndim(const trama_mesh *mesh)
{
    return mesh->ndim;
}

int trama_mesh_size(const trama_mesh *mesh)
{
    return mesh->size;
}

int trama_mesh_extent(const trama_mesh *mesh, int axis)
{
    return axis >= 0 && axis < mesh->ndim ? mesh->shape[axis] : 0;
}

const char *trama_mesh_axis_name(const trama_mesh *mesh, int axis)
{
    return axis >= 0 && axis < mesh->ndim && *mesh->names[axis] ? mesh->names[axis] : NULL;
}

int trama_mesh_id(const trama_mesh *mesh, int position)
{
    return position >= 0 && position < mesh->size ? mesh->ids[position] : -1;
}

bool trama_mesh_equal(const trama_mesh *a, const trama_mesh *b)
{
    return a == b || (a && b && a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) &&
                      !memcmp(a->ids, b->ids, (size_t)a->size * sizeof *a->ids));
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

const unsigned char *mesh_mask(const trama_mesh *mesh, const unsigned char *mask)
{
    if (!mask || !memchr(mask, 0, (size_t)mesh->size))
        return NULL;
    for (int i = 0; i < mesh->masks.n; i++)
        if (!memcmp(mesh->masks.at[i], mask, (size_t)mesh->size))
            return mesh->masks.at[i];
    trama_mesh *owner = (trama_mesh *)mesh; /* interning is not a change that anyone sees */
    unsigned char **own = ARRAY_PUSH(&owner->masks);
    return *own = memcpy(trama_alloc((size_t)mesh->size), mask, (size_t)mesh->size);
}

void mesh_text(text *out, const trama_mesh *m)
{
    for (int a = 0; a < m->ndim; a++)
        text_add(out, "%s%s%s%d", a ? "," : "", m->names[a], *m->names[a] ? "=" : "", m->shape[a]);
    bool plain = true;
    for (int i = 0; i < m->size; i++)
        plain &= m->ids[i] == i;
    for (int i = 0; !plain && i < m->size; i++)
        text_add(out, "%c%d", i ? ',' : ':', m->ids[i]);
}

char *trama_mesh_text(const trama_mesh *mesh)
{
    text t = {0};
    mesh_text(&t, mesh);
    return text_take(&t);
}

/* Reads a number >= 0 at *at and moves behind it; -1 where there is none. */
static int read_number(const char **at)
{
    if (!isdigit((unsigned char)**at))
        return -1;
    char *end;
    errno = 0;
    long value = strtol(*at, &end, 10);
    *at = end;
    return errno || value > INT_MAX ? -1 : (int)value;
}

static bool read_axis(const char **at, int *extent, char *name)
{
    size_t n = identifier(*at);
    if (n >= AXIS_NAME_BYTES || (n && (*at)[n] != '='))
        return false;
    memcpy(name, *at, n);
    name[n] = 0;
    *at += n + (n > 0);
    *extent = read_number(at);
    return *extent >= 0;
}

trama_mesh *trama_mesh_parse(const char *source)
{
    int shape[TRAMA_MAX_AXES], ndim = 0;
    char names[TRAMA_MAX_AXES][AXIS_NAME_BYTES];
    const char *name_list[TRAMA_MAX_AXES], *at = source;
    if (!source)
        return mesh_error("the text is NULL", NULL), NULL;
    do {
        if (ndim == TRAMA_MAX_AXES)
            return mesh_error("more than 8 axes", source), NULL;
        at += ndim > 0;
        if (!read_axis(&at, &shape[ndim], names[ndim]))
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT,
                              "mesh: '%s' is not understood at '%s'; write axes as \"dp=2,mp=2\", ids after a colon",
                              source, at),
                   NULL;
        name_list[ndim] = names[ndim];
        ndim++;
    } while (*at == ',');
    ARRAY(int) ids = {0};
    if (*at == ':')
        do {
            at++;
            *ARRAY_PUSH(&ids) = read_number(&at);
        } while (*at == ',' && ids.at[ids.n - 1] >= 0);
    int64_t size = 1;
    for (int a = 0; a < ndim && size <= MAX_PROCESSES; a++)
        size *= shape[a];
    trama_mesh *mesh = NULL;
    if (*at || (ids.n && ids.at[ids.n - 1] < 0))
        trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: '%s' is not understood at '%s'", source, at);
    else if (ids.n && ids.n != size)
        trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: '%s' names %d ids for %lld processes", source, ids.n,
                   (long long)size);
    else
        mesh = trama_mesh_create(ndim, shape, name_list, ids.n ? ids.at : NULL);
    ARRAY_FREE(&ids);
    return mesh;
}
