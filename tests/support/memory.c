/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of simulated ranks. */
#include <math.h>

#include "interpreter.h"

int64_t box_place(const box *outer, const box *b, int64_t element)
{
    int64_t at = 0, stride = 1;
    for (int d = b->ndim - 1; d >= 0; d--) {
        at += (b->lo[d] - outer->lo[d] + element % b->n[d]) * stride;
        element /= b->n[d];
        stride *= outer->n[d];
    }
    return at;
}

int64_t memory_place(const memory *m, int shard, const box *b, int64_t element)
{
    const plan_alias *lie = &m->lie[shard];
    int64_t at = lie->at;
    for (int d = b->ndim - 1; d >= 0; d--) {
        at += (b->lo[d] - m->outer[shard].lo[d] + element % b->n[d]) * lie->stride[d];
        element /= b->n[d];
    }
    return at;
}

memory *memory_new(const plan *p, memory *const *kept)
{
    memory *m = trama_alloc(sizeof *m);
    m->p = p;
    m->data = trama_alloc((size_t)p->shards.n * sizeof *m->data);
    m->known = trama_alloc((size_t)p->shards.n * sizeof *m->known);
    m->outer = trama_alloc((size_t)p->shards.n * sizeof *m->outer);
    m->lie = trama_alloc((size_t)p->shards.n * sizeof *m->lie);
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (s->source == SHARD_IMPORT) {
            const plan_import *from = &p->imports.at[s->import];
            m->data[i] = kept[from->value]->data[from->shard];
            m->known[i] = kept[from->value]->known[from->shard];
            continue;
        }
        if (s->within >= 0 || s->reuses >= 0)
            continue;
        int64_t n = box_count(&s->box);
        m->data[i] = trama_alloc((size_t)n * sizeof(double));
        m->known[i] = trama_alloc((size_t)n);
        for (int64_t k = 0; k < n; k++)
            m->data[i][k] = NAN;
    }
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        m->outer[i] = s->source == SHARD_VIEW ? p->shards.at[s->within].box : s->box;
        m->lie[i] = s->source == SHARD_ALIAS ? *plan_alias_of(p, s) : plan_dense(&m->outer[i]);
        if (plan_in_arena(p, s)) { /* whose elements are bytes */
            m->data[i] = m->data[s->within] + s->at;
            m->known[i] = m->known[s->within] + s->at;
        }
    }
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        const int of = s->reuses >= 0 ? s->reuses : plan_in_arena(p, s) ? -1 : s->within;
        if (of >= 0) {
            m->data[i] = m->data[of] + (s->reuses >= 0 ? 0 : s->at);
            m->known[i] = m->known[of] + (s->reuses >= 0 ? 0 : s->at);
        }
    }
    return m;
}

void memory_destroy(memory **memory_)
{
    memory *m = *memory_;
    for (int i = 0; m && i < m->p->shards.n; i++)
        if (m->p->shards.at[i].source != SHARD_IMPORT && m->p->shards.at[i].within < 0 &&
            m->p->shards.at[i].reuses < 0) {
            free(m->data[i]);
            free(m->known[i]);
        }
    if (m) {
        free(m->data);
        free(m->known);
        free(m->outer);
        free(m->lie);
    }
    free(m);
    *memory_ = NULL;
}

trama_view memory_view(const memory *m, const plan_region *r, trama_shape global)
{
    const plan_shard *s = &m->p->shards.at[r->shard];
    trama_view v = {.dtype = s->dtype, .ndim = s->box.ndim};
    int64_t at = m->lie[r->shard].at;
    for (int d = 0; d < v.ndim; d++) {
        v.extent[d] = r->box.n[d];
        v.offset[d] = r->box.lo[d];
        v.global[d] = global.dim[d];
        v.stride[d] = m->lie[r->shard].stride[d];
        at += (r->box.lo[d] - m->outer[r->shard].lo[d]) * v.stride[d];
    }
    v.data = m->data[r->shard] + at;
    return v;
}

bool memory_is_known(const memory *m, const plan_region *r)
{
    FOR_EACH_ELEMENT(m, r->shard, &r->box, at)
    if (!m->known[r->shard][at])
        return false;
    return true;
}
