/* SPDX-License-Identifier: Apache-2.0 */
/* Column-then-row blocks over several inputs. */
#include "micro_batches.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

static trama_value *matrix(const micro_batches *m, char kind, int i, const char *placement)
{
    double bound = 1 / sqrt(m->width);
    trama_init init = {-bound, bound, 1, (uint64_t)(2 * i + (kind == 'b'))};
    char name[24];
    snprintf(name, sizeof name, "%c%d", kind, i);
    trama_value *w = trama_parameter(m->program, name, TRAMA_F32, TRAMA_SHAPE(m->width, m->width), &init);
    return trama_shard(w, m->mesh, placement);
}

static trama_value *input(const micro_batches *m, int i)
{
    trama_init init = {-1, 1, 2, (uint64_t)i};
    char name[24];
    snprintf(name, sizeof name, "x%d", i);
    trama_value *x = trama_state(m->program, name, TRAMA_F32, TRAMA_SHAPE(m->batch, m->width), &init);
    return trama_shard(x, m->mesh, "R");
}

void micro_batches_make(micro_batches *m, const char *mesh)
{
    trama_value *h[MOST_MICRO_BATCHES];
    assert(m->n > 0 && m->n <= MOST_MICRO_BATCHES);
    m->program = NULL;
    m->mesh = trama_mesh_create(mesh);
    if (!m->mesh)
        return;
    m->program = trama_program_create();
    for (int i = 0; i < m->n; i++)
        h[i] = input(m, i);
    for (int b = 0; b < m->blocks; b++) {
        trama_value *column = matrix(m, 'a', b, "S(1)"), *row = matrix(m, 'b', b, "S(0)");
        for (int i = 0; i < m->n; i++)
            h[i] = trama_reshard(trama_matmul(trama_relu(trama_matmul(h[i], column)), row), m->mesh, "R");
    }
    m->forward = trama_target_at(TRAMA_HERE, m->program, "forward", m->n, h);
}

void micro_batches_free(micro_batches *m)
{
    trama_program_destroy(&m->program);
    trama_mesh_destroy(&m->mesh);
}
