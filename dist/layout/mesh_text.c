/* SPDX-License-Identifier: Apache-2.0 */
/* Prints and parses the text form of a mesh, both without loss. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "mesh.h"

static void axis_text(text *out, const trama_mesh *m, int a)
{
    text_add(out, "%s%s%s", a ? "," : "", m->names[a], *m->names[a] ? "=" : "");
    if (!m->weights[a])
        text_add(out, "%d", m->shape[a]);
    for (int i = 0; m->weights[a] && i < m->shape[a]; i++)
        text_add(out, "%s%d%s", i ? "," : "[", m->weights[a][i], i == m->shape[a] - 1 ? "]" : "");
}

void mesh_text(text *out, const trama_mesh *m)
{
    for (int a = 0; a < m->ndim; a++)
        axis_text(out, m, a);
    bool plain = true;
    for (int i = 0; i < m->size; i++)
        plain &= m->ids[i] == i;
    for (int i = 0; !plain && i < m->size; i++)
        text_add(out, "%c%d", i ? ',' : ':', m->ids[i]);
}

char *trama_mesh_text(const trama_mesh *mesh)
{
    text t = {0};
    if (!mesh)
        return mesh_error("it is NULL", NULL), NULL;
    mesh_text(&t, mesh);
    return text_result(&t, "trama_mesh_text");
}

/* Reads a number >= 0 at *at and moves past it; -1 without a number, or above INT_MAX. */
static int read_number(const char **at)
{
    if (!isdigit((unsigned char)**at))
        return -1;
    char *end;
    errno = 0;
    long value = strtol(*at, &end, 10);
    if (errno || value > INT_MAX)
        return -1;
    *at = end;
    return (int)value;
}

typedef ARRAY(int) numbers;

/* "dp=2", "2", or with weights "dp=[3,1]". */
typedef struct axis_source {
    char name[AXIS_NAME_BYTES];
    int extent;
    numbers weights;
} axis_source;

static bool read_weights(const char **at, axis_source *axis)
{
    do {
        ++*at;
        *ARRAY_PUSH(&axis->weights) = read_number(at);
        if (axis->weights.at[axis->weights.n - 1] < 0)
            return false;
    } while (**at == ',');
    axis->extent = axis->weights.n;
    if (**at != ']')
        return false;
    ++*at;
    return true;
}

static bool read_axis(const char **at, axis_source *axis)
{
    size_t n = mesh_identifier(*at);
    if (n >= AXIS_NAME_BYTES || (n && (*at)[n] != '='))
        return false;
    memcpy(axis->name, *at, n);
    axis->name[n] = 0;
    *at += n + (n > 0);
    if (**at == '[')
        return read_weights(at, axis);
    axis->extent = read_number(at);
    return axis->extent >= 0;
}

/* Reads the whole text; false with *at at the first letter that is not understood. */
static bool read_mesh(const char **at, axis_source *axes, int *ndim, numbers *ids)
{
    do {
        if (*ndim == TRAMA_MAX_AXES)
            return false;
        *at += *ndim > 0;
        if (!read_axis(at, &axes[(*ndim)++]))
            return false;
    } while (**at == ',');
    if (**at == ':')
        do {
            ++*at;
            *ARRAY_PUSH(ids) = read_number(at);
            if (ids->at[ids->n - 1] < 0)
                return false;
        } while (**at == ',');
    return !**at;
}

static trama_mesh *make_mesh(const char *source, const axis_source *axes, int ndim, const numbers *ids)
{
    int shape[TRAMA_MAX_AXES];
    const char *names[TRAMA_MAX_AXES];
    int64_t size = 1;
    for (int a = 0; a < ndim; a++) {
        names[a] = axes[a].name;
        shape[a] = axes[a].extent;
        size = size > MAX_PROCESSES ? size : size * shape[a];
    }
    if (ids->n && ids->n != size)
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "mesh: '%s' names %d ids for %lld processes", source, ids->n,
                          (long long)size),
               NULL;
    trama_mesh *mesh = trama_mesh_create_ids(ndim, shape, names, ids->n ? ids->at : NULL);
    for (int a = 0; mesh && a < ndim; a++)
        if (axes[a].weights.n && !mesh_set_weights(mesh, a, axes[a].weights.at))
            trama_mesh_destroy(&mesh);
    return mesh;
}

trama_mesh *trama_mesh_create(const char *source)
{
    axis_source axes[TRAMA_MAX_AXES];
    int ndim = 0;
    numbers ids = {0};
    const char *at = source;
    trama_mesh *mesh = NULL;
    memset(axes, 0, sizeof axes);
    if (!source)
        return mesh_error("the text is NULL", NULL), NULL;
    if (read_mesh(&at, axes, &ndim, &ids))
        mesh = make_mesh(source, axes, ndim, &ids);
    else if (ndim == TRAMA_MAX_AXES && *at == ',')
        mesh_error("more than 8 axes", source);
    else
        trama_fail(
            NOWHERE, TRAMA_E_LAYOUT,
            "mesh: '%s' is not understood at '%s'; write axes as \"dp=2,mp=2\", weights as \"dp=[3,1]\", ids after "
            "a colon",
            source, at);
    for (int a = 0; a < TRAMA_MAX_AXES; a++)
        ARRAY_FREE(&axes[a].weights);
    ARRAY_FREE(&ids);
    if (memory_status(NOWHERE, "mesh"))
        trama_mesh_destroy(&mesh);
    return mesh;
}
