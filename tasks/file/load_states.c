/* SPDX-License-Identifier: Apache-2.0 */
/* One checkpoint into the state: compares it with the program, verifies it, and only then reads it. Each rank verifies
 * a part of the file, and reads its own boxes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "box_file.h"
#include "feeder.h"
#include "saving.h"
#include "trama_state.h"

static const char call[] = "trama_load";

typedef struct loading {
    trama_executable *e;
    const trama_load_options *o;
    trama_checkpoint *file;
    int n;
    int *value, *tensor; /* [n] ids of states, and their numbers in the file */
} loading;

/* ---- Comparison with the program ---- */

static trama_status check_pair(const loading *l, const trama_value *v, const stored_tensor *t)
{
    if (!trama_shape_equal(v->shape, t->shape)) {
        text shapes = {0};
        shape_text(&shapes, t->shape);
        text_add(&shapes, " instead of ");
        shape_text(&shapes, v->shape);
        trama_fail(NOWHERE, TRAMA_E_SHAPE,
                   "%s: dataset %s has the shape %s of the state %s; load it into the program "
                   "that saved it, or leave the state out by options.states",
                   l->file->path, t->name, shapes.at, v->name);
        free(shapes.at);
        return TRAMA_E_SHAPE;
    }
    if (!elements_can_convert(t->dtype, v->dtype))
        return trama_fail(NOWHERE, TRAMA_E_DTYPE, "%s: dataset %s has elements %s, and the state %s has %s",
                          l->file->path, t->name, trama_dtype_name(t->dtype), v->name, trama_dtype_name(v->dtype));
    return TRAMA_OK;
}

/* Pairs the states with datasets. Buffers of accumulated gradients are loaded where the file has them. */
static trama_status pair_states(loading *l)
{
    const int n_values = l->e->program->values.n;
    bool *used = trama_alloc((size_t)l->file->tensors.n + 1);
    trama_status status = TRAMA_OK;
    l->value = trama_alloc((size_t)(n_values + 1) * sizeof *l->value);
    l->tensor = trama_alloc((size_t)(n_values + 1) * sizeof *l->tensor);
    for (int i = 0; i < n_values && !status; i++) {
        const trama_value *v = l->e->program->values.at[i];
        if (!v || !value_is_state(v) || !name_is_chosen(l->o->states, v->name))
            continue;
        char *name = name_in_file(l->o->names, v->name);
        const int at = trama_checkpoint_find(l->file, name);
        free(name);
        if (at < 0) {
            if (!v->state->terms)
                text_add(&l->file->missing, "%s\n", v->name);
            continue;
        }
        status = check_pair(l, v, &l->file->tensors.at[at]);
        used[at] = true;
        l->value[l->n] = i;
        l->tensor[l->n++] = at;
    }
    for (int i = 0; i < l->file->tensors.n; i++)
        if (!used[i])
            text_add(&l->file->left_over, "%s\n", l->file->tensors.at[i].name);
    free(used);
    return status;
}

/* "w, b and 3 more" of lines. */
static char *in_words(const char *lines)
{
    text t = {0};
    int n = 0;
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1)
        if (n++ < 5)
            text_add(&t, "%s%.*s", n > 1 ? ", " : "", (int)(end - lines), lines);
    if (n > 5)
        text_add(&t, " and %d more", n - 5);
    return text_take(&t);
}

static trama_status check_complete(const loading *l)
{
    const char *missing = trama_checkpoint_missing(l->file), *left = trama_checkpoint_left_over(l->file);
    const bool chosen = l->o->states != NULL; /* then the others in the file are left by wish */
    if (l->o->partial || (!*missing && (!*left || chosen)))
        return TRAMA_OK;
    char *words = in_words(*missing ? missing : left);
    trama_status status = trama_fail(
        NOWHERE, TRAMA_E_ARGUMENT,
        "%s: %s: %s; give options.partial, options.states or options.names where "
        "that is meant",
        l->file->path, *missing ? "it does not have these states" : "the program does not have these states", words);
    free(words);
    return status;
}

/* ---- Verification ---- */

/* Each rank sums some slabs of each dataset. */
static trama_status verify(const loading *l)
{
    trama_context *c = l->e->context;
    const int ranks = context_ranks(c);
    const size_t bytes = (size_t)(l->n + 1) * sizeof(uint64_t);
    uint64_t *mine = trama_alloc(bytes), *all = trama_alloc(bytes * (size_t)ranks);
    trama_status status = TRAMA_OK;
    for (int i = 0; i < l->n && !status; i++)
        status = checkpoint_sum_slabs(l->file, &l->file->tensors.at[l->tensor[i]], context_rank(c), ranks, &mine[i]);
    status = context_agree(c, call, status);
    if (!status)
        status = context_gather(c, call, mine, bytes, all);
    for (int i = 0; i < l->n && !status; i++) {
        const stored_tensor *t = &l->file->tensors.at[l->tensor[i]];
        uint64_t sum = 0;
        for (int r = 0; r < ranks; r++)
            sum += all[(size_t)r * (size_t)(l->n + 1) + (size_t)i];
        if (sum != t->sum)
            status = checkpoint_damaged(l->file->path, t->name, "its check sum is wrong");
    }
    free(mine);
    free(all);
    return status;
}

/* ---- Reading ---- */

/* One state out of the file. */
typedef struct stored_state {
    const loading *l;
    const stored_tensor *t;
    char *room; /* as boxes_filled.room, for elements as in the file */
} stored_state;

static trama_status read_slab(const void *with, trama_dtype dtype, const box *b, void *data)
{
    const stored_state *s = with;
    const stored_tensor *t = s->t;
    if (!box_read(checkpoint_descriptor(s->l->file, t), t->at, t->shape, trama_dtype_size(t->dtype), b, s->room))
        return checkpoint_failed(s->l->file->path, t->name, errno);
    elements_convert(t->dtype, s->room, dtype, data, box_count(b));
    return TRAMA_OK;
}

/* room [2][SLAB_BYTES, or an element] */
static trama_status read_state(const loading *l, const trama_value *v, const stored_tensor *t, char *room)
{
    const stored_state s = {l, t, room};
    boxes_filled f = {
        .element = trama_dtype_size(t->dtype), .read = read_slab, .with = &s, .room = room + SLAB_BYTES, .call = call};
    trama_status status = executable_locate(l->e, NOWHERE, call, v, &f.at);
    return status ? status : boxes_fill(&f);
}

static trama_status restore_cycles(const loading *l)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < l->e->targets.n && !status; i++) {
        const trama_target *target = l->e->targets.at[i].form[TARGET_RUN].target;
        text key = {0};
        trama_merge_cycle cycle;
        text_add(&key, "trama.cycle.%s", target->name);
        const char *words = trama_checkpoint_get(l->file, key.at);
        if (words && l->e->targets.at[i].cycle.k &&
            sscanf(words, "%" SCNd64 " %" SCNd64 " %la %la", &cycle.k, &cycle.at, &cycle.first, &cycle.sum) == 4)
            status = trama_merge_resume(l->e, target, &cycle);
        free(key.at);
    }
    return status;
}

static trama_status read_states(const loading *l)
{
    char *room = trama_try_alloc(2 * (size_t)SLAB_BYTES);
    trama_status status =
        room ? TRAMA_OK : trama_fail(NOWHERE, TRAMA_E_MEMORY, "no memory for %d bytes", 2 * SLAB_BYTES);
    status = context_agree(l->e->context, call, status);
    if (!status)
        status = restore_cycles(l);
    for (int i = 0; i < l->n && !status; i++)
        status = read_state(l, l->e->program->values.at[l->value[i]], &l->file->tensors.at[l->tensor[i]], room);
    free(room);
    return context_agree(l->e->context, call, status);
}

trama_status state_load_file(trama_executable *e, const char *path, const trama_load_options *o,
                             trama_checkpoint **loaded, bool *damaged)
{
    loading l = {.e = e, .o = o};
    trama_status status = context_agree(e->context, call, trama_checkpoint_open(path, &l.file));
    *damaged = status == TRAMA_E_SYSTEM;
    if (!status)
        status = context_agree(e->context, call, pair_states(&l));
    if (!status)
        status = check_complete(&l);
    if (!status)
        status = context_agree(e->context, call, feeders_check(e, l.file));
    if (!status && l.file->format->summed) {
        status = verify(&l);
        *damaged = status == TRAMA_E_SYSTEM;
    }
    if (!status)
        status = read_states(&l);
    if (!status)
        feeders_restore(e, l.file);
    free(l.value);
    free(l.tensor);
    if (status)
        trama_checkpoint_destroy(&l.file);
    *loaded = l.file;
    return status;
}
