/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of steps: a step joins the open segment of its GPU, and the segment is submitted where its last step was.
 *
 * A segment ends before a step elsewhere, or a message, that uses a buffer which the segment writes, or writes one
 * which it uses. So no step between its own depends on them, nor they on it.
 *
 * All steps of a segment wait for the same messages, collectives and steps of cores. Otherwise the first would wait for
 * messages of the last, which another rank may send only once it has the results of the first. With equal sets no wait
 * for a message is new: if two ranks' segments waited for each other, their steps would. */
#include "segments.h"

#include <stdlib.h>
#include <string.h>

#include "message_sets.h"
#include "step_name.h"

enum { MEMORY_SHARE = 4 }; /* of a GPU's memory one segment takes this share at most, unless one step takes more */

/* A buffer that steps use. */
typedef struct used_buffer {
    starpu_data_handle_t handle;
    work_buffer home;
    int written, used; /* sets of messages: for which its last write waited, and that and all uses since */
    int segment;       /* the last one that uses it; -1 */
    bool writes;       /* it does */
    int at;            /* among the segment's buffers, while it ends */
} used_buffer;

/* A segment to which the next steps of its worker may be added. */
typedef struct open_segment {
    int worker, n;
    int *steps; /* [n], with room for `most` */
    int64_t bytes;
    int messages; /* the set for which its steps wait */
    int number;   /* of segments before it; -1: none is open */
} open_segment;

typedef struct joining {
    const instance *in;
    lowering *l;
    int most, n_open, next; /* most steps of a segment */
    int64_t room;           /* bytes of one */
    open_segment *open;     /* [n_open] one for each worker of a GPU that has steps */
    ARRAY(used_buffer) buffers;
    hash_table by_handle;
    int *of_step; /* [steps + 1] where its numbers begin */
    int *numbers; /* of the buffers of all steps, one step after the other */
    message_sets sets;
    int n_messages;
} joining;

static bool on_gpu(const lowered *s)
{
    return s->kind < STEP_SEND && s->on_gpu;
}

static bool is_write(enum starpu_data_access_mode mode)
{
    return mode & STARPU_W;
}

/* ---- Buffers ---- */

static int number_of(joining *j, starpu_data_handle_t handle)
{
    const uint64_t hash = hash_address(HASH_START, handle);
    int probe = 0, found;
    while ((found = hash_table_find(&j->by_handle, hash, &probe)) >= 0)
        if (j->buffers.at[found].handle == handle)
            return found;
    const work_buffer home = work_buffer_of(starpu_data_get_interface_on_node(handle, STARPU_MAIN_RAM));
    hash_table_add(&j->by_handle, hash, j->buffers.n);
    *ARRAY_PUSH(&j->buffers) = (used_buffer){.handle = handle, .home = home, .segment = -1};
    return j->buffers.n - 1;
}

/* Messages, collectives and steps of cores. */
static bool waits_for_others(const lowered *s)
{
    return s->kind >= STEP_SEND || s->kind == STEP_COLLECTIVE || (!s->on_gpu && !s->nowhere);
}

static joining begin(const instance *in, lowering *l)
{
    joining j = {.in = in, .l = l, .most = context_gpu_steps(in->context)};
    int n = 0;
    j.room = context_gpu_bytes(in->context) / MEMORY_SHARE;
    j.open = trama_alloc(STARPU_NMAXWORKERS * sizeof *j.open);
    j.of_step = trama_alloc(((size_t)l->n + 1) * sizeof *j.of_step);
    for (int i = 0; i < l->n; i++) {
        j.n_messages += waits_for_others(&l->steps[i]);
        j.of_step[i + 1] = j.of_step[i] + l->steps[i].n_handles;
    }
    j.numbers = trama_alloc(((size_t)j.of_step[l->n] + 1) * sizeof *j.numbers);
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < l->steps[i].n_handles; k++)
            j.numbers[n++] = number_of(&j, l->steps[i].handles[k]);
    j.sets = message_sets_begin(j.n_messages);
    j.n_messages = 0;
    return j;
}

static void end(joining *j)
{
    for (int i = 0; i < j->n_open; i++)
        free(j->open[i].steps);
    free(j->open);
    free(j->of_step);
    free(j->numbers);
    ARRAY_FREE(&j->buffers);
    hash_table_free(&j->by_handle);
    message_sets_end(&j->sets);
}

/* ---- Ending a segment ---- */

typedef struct joined_buffer {
    const used_buffer *buffer;
    enum starpu_data_access_mode mode;
} joined_buffer;

static int compare_homes(const void *a_, const void *b_)
{
    const joined_buffer *a = a_, *b = b_;
    const uintptr_t x = (uintptr_t)a->buffer->home.from, y = (uintptr_t)b->buffer->home.from;
    return (x > y) - (x < y);
}

/* The buffers of all steps, sorted by where they begin; returns their number. One that the first of its steps writes as
 * a whole need not be brought to the GPU. */
static int find_joined(joining *j, const open_segment *o, joined_buffer *joined)
{
    int n = 0;
    for (int i = 0; i < o->n; i++) {
        const lowered *s = &j->l->steps[o->steps[i]];
        for (int k = 0; k < s->n_handles; k++) {
            used_buffer *b = &j->buffers.at[j->numbers[j->of_step[o->steps[i]] + k]];
            if (b->at < n && joined[b->at].buffer == b) {
                joined[b->at].mode |= joined[b->at].mode == STARPU_W ? STARPU_W : s->modes[k];
                continue;
            }
            b->at = n;
            joined[n++] = (joined_buffer){b, s->modes[k]};
        }
    }
    qsort(joined, (size_t)n, sizeof *joined, compare_homes);
    return n;
}

/* Gives the last step the buffers of all; returns where these begin, which views point into. */
static const work_buffer *join_buffers(joining *j, const open_segment *o, lowered *last)
{
    const size_t expected = j->in->of->lowering_bytes;
    size_t most = 1;
    for (int i = 0; i < o->n; i++)
        most += (size_t)j->l->steps[o->steps[i]].n_handles;
    joined_buffer *joined = trama_alloc(most * sizeof *joined);
    const int n = find_joined(j, o, joined);
    work_buffer *homes = arena_take(&j->l->memory, (size_t)n * sizeof *homes, expected);
    last->handles = arena_take(&j->l->memory, (size_t)n * sizeof *last->handles, expected);
    last->modes = arena_take(&j->l->memory, (size_t)n * sizeof *last->modes, expected);
    last->n_handles = n;
    for (int i = 0; i < n; i++) {
        homes[i] = joined[i].buffer->home;
        last->handles[i] = joined[i].buffer->handle;
        last->modes[i] = joined[i].mode;
    }
    free(joined);
    return homes;
}

/* Its name is that of the step with most work: "matmul_and_11". */
static const char *name_of(const joining *j, const open_segment *o)
{
    const lowered *most = &j->l->steps[o->steps[0]];
    for (int i = 1; i < o->n; i++)
        if (j->l->steps[o->steps[i]].flops > most->flops)
            most = &j->l->steps[o->steps[i]];
    if (o->n == 1)
        return most->label;
    const size_t bytes = (size_t)step_joined_name(most->label, o->n - 1, NULL, 0) + 1;
    char *name = arena_take(&j->l->memory, bytes, j->in->of->lowering_bytes);
    step_joined_name(most->label, o->n - 1, name, bytes);
    return name;
}

static void end_segment(joining *j, open_segment *o)
{
    if (o->number < 0)
        return;
    const size_t expected = j->in->of->lowering_bytes;
    lowered *last = &j->l->steps[o->steps[o->n - 1]];
    segment *s = arena_take(&j->l->memory, sizeof *s, expected);
    const work **works = arena_take(&j->l->memory, (size_t)o->n * sizeof *works, expected);
    const char *name = name_of(j, o);
    double flops = 0;
    int priority = last->priority;
    for (int i = 0; i < o->n; i++) {
        lowered *step = &j->l->steps[o->steps[i]];
        works[i] = &step->work;
        flops += step->flops;
        priority = step->priority > priority ? step->priority : priority;
    }
    const work_buffer *homes = join_buffers(j, o, last);
    *s = (segment){.n = o->n, .works = works, .n_buffers = last->n_handles, .buffers = homes};
    last->segment = s;
    last->label = name;
    last->flops = flops;
    last->priority = priority;
    if (o->bytes > j->l->gpu_bytes) {
        j->l->gpu_bytes = o->bytes;
        j->l->gpu_name = name;
    }
    o->number = -1;
}

/* ---- Choosing ---- */

/* Before a step of a worker, or of none (-1). Of segments that read one buffer the earlier one ends, too, so that a
 * buffer is in one open segment. */
static void end_conflicting(joining *j, int step, int worker)
{
    const lowered *s = &j->l->steps[step];
    for (int k = 0; k < s->n_handles; k++) {
        const used_buffer *b = &j->buffers.at[j->numbers[j->of_step[step] + k]];
        if (b->segment < 0 || (worker < 0 && !is_write(s->modes[k]) && !b->writes))
            continue;
        for (int i = 0; i < j->n_open; i++)
            if (j->open[i].number == b->segment && j->open[i].worker != worker)
                end_segment(j, &j->open[i]);
    }
}

/* The set of messages for which the step waits; notes that what uses its buffers after it waits for them, too. */
static int note_messages(joining *j, int step)
{
    const lowered *s = &j->l->steps[step];
    const int *numbers = &j->numbers[j->of_step[step]];
    int set = NO_MESSAGES;
    for (int k = 0; k < s->n_handles; k++) {
        const used_buffer *b = &j->buffers.at[numbers[k]];
        set = message_sets_union(&j->sets, set, is_write(s->modes[k]) ? b->used : b->written);
    }
    if (waits_for_others(s))
        set = message_sets_with(&j->sets, set, j->n_messages++);
    for (int k = 0; k < s->n_handles; k++) {
        used_buffer *b = &j->buffers.at[numbers[k]];
        b->used = is_write(s->modes[k]) ? set : message_sets_union(&j->sets, b->used, set);
        if (is_write(s->modes[k]))
            b->written = set;
    }
    return set;
}

static open_segment *open_for(joining *j, int worker)
{
    for (int i = 0; i < j->n_open; i++)
        if (j->open[i].worker == worker)
            return &j->open[i];
    open_segment *o = &j->open[j->n_open++];
    *o = (open_segment){.worker = worker, .number = -1, .steps = trama_alloc((size_t)j->most * sizeof *o->steps)};
    return o;
}

/* Bytes of the step's buffers that the segment does not use yet. */
static int64_t new_bytes(const joining *j, int step, int of)
{
    int64_t bytes = 0;
    for (int k = j->of_step[step]; k < j->of_step[step + 1]; k++) {
        const used_buffer *b = &j->buffers.at[j->numbers[k]];
        if (of < 0 || b->segment != of)
            bytes += b->home.run * b->home.rows;
    }
    return bytes;
}

static void add(joining *j, int step, int messages)
{
    const lowered *s = &j->l->steps[step];
    open_segment *o = open_for(j, s->worker);
    const bool alone = s->kind == STEP_COLLECTIVE;
    if (alone || o->n == j->most || o->messages != messages || o->bytes + new_bytes(j, step, o->number) > j->room)
        end_segment(j, o);
    if (o->number < 0) {
        o->number = j->next++;
        o->messages = messages;
        o->n = 0;
        o->bytes = 0;
    }
    o->bytes += new_bytes(j, step, o->number);
    o->steps[o->n++] = step;
    for (int k = 0; k < s->n_handles; k++) {
        used_buffer *b = &j->buffers.at[j->numbers[j->of_step[step] + k]];
        b->writes = is_write(s->modes[k]) || (b->segment == o->number && b->writes);
        b->segment = o->number;
    }
    if (alone)
        end_segment(j, o);
}

void segments_make(const instance *in, lowering *l)
{
    int n = 0;
    for (int i = 0; i < l->n; i++)
        n += on_gpu(&l->steps[i]);
    if (n == 0)
        return;
    joining j = begin(in, l);
    for (int i = 0; i < l->n; i++) {
        const bool joins = on_gpu(&l->steps[i]);
        end_conflicting(&j, i, joins ? l->steps[i].worker : -1);
        const int messages = note_messages(&j, i);
        if (joins)
            add(&j, i, messages);
    }
    for (int i = 0; i < j.n_open; i++)
        end_segment(&j, &j.open[i]);
    end(&j);
}

void segments_free(lowering *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->steps[i].kind < STEP_SEND && l->steps[i].segment)
            segment_end(l->steps[i].segment);
}
