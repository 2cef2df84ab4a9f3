/* SPDX-License-Identifier: Apache-2.0 */
/* Feeders: their columns, the place of the next batch, and that place in checkpoints. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "feeder.h"
#include "hash.h"
#include "saving.h"
#include "sized.h"

/* ---- Places ---- */

int64_t feeder_batch_rows(const trama_feeder *d, int64_t row)
{
    return min_i64(d->options.batch, d->rows - row);
}

/* Where the epoch has no further batch, the next one begins. */
static void settle(const trama_feeder *d, int64_t *epoch, int64_t *row)
{
    if (d->rows && d->rows - *row < (d->options.drop_last ? d->options.batch : 1)) {
        ++*epoch;
        *row = 0;
    }
}

void feeder_advance(const trama_feeder *d, int64_t *epoch, int64_t *row)
{
    *row += feeder_batch_rows(d, *row);
    settle(d, epoch, row);
}

int64_t trama_feeder_rows(const trama_feeder *d)
{
    return d ? d->rows : 0;
}

int64_t trama_feeder_epoch(const trama_feeder *d)
{
    return d ? d->epoch : 0;
}

int64_t trama_feeder_row(const trama_feeder *d)
{
    return d ? d->row : 0;
}

/* ---- Life ---- */

static trama_status check_options(trama_where where, const char *call, const trama_executable *e, const char *name,
                                  const trama_feeder_options *o)
{
    if (!name || !*name || strlen(name) > 200)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the name is NULL, empty or longer than 200 bytes", call);
    if (o->batch < 1 || o->prefetch < 0 || o->prefetch > 1 << 16)
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          "%s: %s: a batch of %" PRId64 " rows and %d batches read ahead; a batch has 1 row or more, "
                          "and from 0 to 65,536 are read ahead",
                          call, name, o->batch, o->prefetch);
    for (const trama_feeder *d = e->open.feeders; d; d = d->next)
        if (!strcmp(d->name, name))
            return trama_fail(where, TRAMA_E_ARGUMENT, "%s: there is a feeder %s; give this one another name", call,
                              name);
    return TRAMA_OK;
}

trama_status trama_feeder_create_at(trama_where where, trama_executable *e, const char *name,
                                    const trama_feeder_options *given, trama_feeder **feeder)
{
    static const char call[] = "trama_feeder_create";
    trama_feeder_options o = {0};
    if (!e || !given || !feeder)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the executable, the options or the feeder's address is NULL",
                          call);
    trama_status status = sized_read(where, call, SIZED(trama_feeder_options, prefetch), &o, given);
    if (!status)
        status = check_options(where, call, e, name, &o);
    if (!status)
        status = executable_begin_call(e, where, call, call);
    if (status)
        return status;
    trama_feeder *d = trama_alloc(sizeof *d);
    *d = (trama_feeder){.e = e, .next = e->open.feeders, .name = trama_text_copy(name), .options = o};
    *feeder = e->open.feeders = d;
    return TRAMA_OK;
}

void trama_feeder_destroy(trama_feeder **feeder)
{
    trama_feeder *d = feeder ? *feeder : NULL;
    if (!d || context_check(NOWHERE, "trama_feeder_destroy")) /* a child of fork has no thread to end */
        return;
    ahead_end(d);
    for (trama_feeder **at = d->e ? &d->e->open.feeders : NULL; at && *at; at = &(*at)->next)
        if (*at == d) {
            *at = d->next;
            break;
        }
    for (int i = 0; i < d->columns.n; i++)
        source_close(&d->columns.at[i].source);
    ARRAY_FREE(&d->columns);
    free(d->name);
    free(d);
    *feeder = NULL;
}

void feeders_end(trama_executable *e)
{
    for (trama_feeder *d = e->open.feeders; d; d = d->next) {
        ahead_end(d);
        d->e = NULL;
    }
    e->open.feeders = NULL;
}

/* ---- Columns ---- */

static trama_status begin_call(trama_where where, const char *call, trama_feeder *d)
{
    if (!d)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the feeder is NULL", call);
    if (!d->e)
        return trama_fail(where, TRAMA_E_ORDER, "%s: the executable of %s was destroyed; make another feeder", call,
                          d->name);
    return executable_begin_call(d->e, where, call, call);
}

static trama_status check_column(trama_where where, const char *call, const trama_feeder *d, const trama_value *input,
                                 const trama_value **own)
{
    *own = executable_value(d->e, where, call, input);
    if (!*own)
        return TRAMA_E_ARGUMENT;
    if ((*own)->kind != VALUE_INPUT)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s is no input", call, (*own)->name);
    for (int i = 0; i < d->columns.n; i++)
        if (d->columns.at[i].input == *own)
            return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the input %s has a column of %s", call, (*own)->name,
                              d->name);
    return TRAMA_OK;
}

/* Whether the rows fit the other columns and the batches. */
static trama_status check_count(const trama_feeder *d, const feeder_source *s, const trama_value *input)
{
    const int64_t rows = s->shape.dim[0], batch = d->options.batch, fixed = input->shape.dim[0];
    const bool full = d->options.drop_last || rows % batch == 0;
    if (d->columns.n && rows != d->rows)
        return trama_fail(NOWHERE, TRAMA_E_SHAPE, "%s: %" PRId64 " rows, and %s has %" PRId64, s->path, rows,
                          d->columns.at[0].source.path, d->rows);
    if (d->options.drop_last && rows < batch)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                          "%s: %" PRId64 " rows fill no batch of %" PRId64 "; give a smaller batch or no drop_last",
                          s->path, rows, batch);
    if (fixed != TRAMA_ANY && (fixed != batch || !full))
        return trama_fail(NOWHERE, TRAMA_E_SHAPE,
                          "%s: %" PRId64 " rows in batches of %" PRId64 " for the input %s, which has %" PRId64
                          " rows; record it with TRAMA_ANY rows, or give a batch of its rows and drop_last",
                          s->path, rows, batch, input->name, fixed);
    return TRAMA_OK;
}

/* Ranks that see another file would feed other rows. */
static trama_status agree_on(const trama_feeder *d, const char *call, const feeder_source *s)
{
    uint64_t hash = hash_word(HASH_START, (uint64_t)s->dtype);
    int other;
    for (int i = 0; i < s->shape.ndim; i++)
        hash = hash_word(hash, (uint64_t)s->shape.dim[i]);
    trama_status status = context_find_other(d->e->context, call, hash, &other);
    return !status && other
               ? trama_fail(NOWHERE, TRAMA_E_SYSTEM, "%s: rank %d finds another file than rank 0", s->path, other)
               : status;
}

trama_status trama_feeder_add_at(trama_where where, trama_feeder *d, const trama_value *input, const char *path,
                                 const trama_feeder_column *given)
{
    static const char call[] = "trama_feeder_add";
    trama_feeder_column o = {0};
    const trama_value *own = NULL;
    feeder_source s = {.descriptor = -1};
    if (!path || !*path)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the path is NULL or empty", call);
    trama_status status = begin_call(where, call, d);
    if (!status && given)
        status = sized_read(where, call, SIZED(trama_feeder_column, offset), &o, given);
    if (!status && (o.offset < 0 || (o.offset && !o.raw)))
        status = trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s: an offset is 0 or more, and of a raw file", call, path);
    if (!status)
        status = check_column(where, call, d, input, &own);
    if (status)
        return status;
    status = source_open(path, &o, own, &s);
    if (!status)
        status = check_count(d, &s, own);
    status = context_agree(d->e->context, call, status);
    if (!status)
        status = agree_on(d, call, &s);
    if (status) {
        source_close(&s);
        return saving_error(where, call, status);
    }
    ahead_end(d);
    *ARRAY_PUSH(&d->columns) = (feeder_column){.input = own, .source = s};
    d->rows = s.shape.dim[0];
    settle(d, &d->epoch, &d->row);
    return TRAMA_OK;
}

/* ---- Batches ---- */

static trama_status feed_column(trama_where where, const trama_feeder *d, int i, const read_batch *b)
{
    const feeder_column *c = &d->columns.at[i];
    const batch_boxes *boxes = column_boxes(c, b->rows);
    const void **pieces = trama_alloc((size_t)(boxes->n + 1) * sizeof *pieces);
    trama_shape shape = c->source.shape;
    shape.dim[0] = b->rows;
    for (int k = 0; k < boxes->n; k++)
        pieces[k] = b->data[i * d->ahead.most_boxes + boxes->same[k]];
    trama_status status = trama_feed_local_at(where, d->e, c->input, shape, boxes->n, pieces);
    free(pieces);
    return status;
}

static trama_status wait_for_batch(trama_where where, const char *call, trama_feeder *d, const read_batch **b)
{
    trama_status status = TRAMA_OK;
    if (!d->begun)
        status = context_agree(d->e->context, call, ahead_begin(where, d));
    if (status)
        return status;
    *b = ahead_wait(d);
    if ((*b)->status)
        status = trama_fail(NOWHERE, (*b)->status, "%s", (*b)->message);
    return saving_error(where, call, context_agree(d->e->context, call, status));
}

trama_status trama_feeder_next_at(trama_where where, trama_feeder *d, int64_t *rows)
{
    static const char call[] = "trama_feeder_next";
    const read_batch *b = NULL;
    trama_status status = begin_call(where, call, d);
    if (status)
        return status;
    if (!d->columns.n)
        return trama_fail(where, TRAMA_E_ORDER, "%s: %s has no columns; trama_feeder_add adds one", call, d->name);
    status = wait_for_batch(where, call, d, &b);
    for (int i = 0; i < d->columns.n && !status; i++)
        status = feed_column(where, d, i, b);
    if (status) {
        ahead_end(d);
        return status;
    }
    if (rows)
        *rows = b->rows;
    ahead_take(d);
    feeder_advance(d, &d->epoch, &d->row);
    return TRAMA_OK;
}

trama_status trama_feeder_seek_at(trama_where where, trama_feeder *d, int64_t epoch, int64_t row)
{
    static const char call[] = "trama_feeder_seek";
    trama_status status = begin_call(where, call, d);
    if (status)
        return status;
    if (epoch < 0 || row < 0 || (row && row >= d->rows))
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          "%s: row %" PRId64 " of epoch %" PRId64 "; epochs and rows count from 0, and %s has %" PRId64
                          " rows",
                          call, row, epoch, d->name, d->rows);
    ahead_end(d);
    d->epoch = epoch;
    d->row = row;
    settle(d, &d->epoch, &d->row);
    return TRAMA_OK;
}

/* ---- Checkpoints ---- */

static char *key_of(const trama_feeder *d)
{
    text key = {0};
    text_add(&key, "trama.feeder.%s", d->name);
    return text_take(&key);
}

void feeders_list(const trama_executable *e, trama_checkpoint *c)
{
    for (const trama_feeder *d = e->open.feeders; d; d = d->next) {
        char words[200], *key = key_of(d);
        snprintf(words, sizeof words, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %d", d->epoch, d->row, d->rows,
                 d->options.seed, d->options.shuffle);
        checkpoint_set(c, key, words);
        free(key);
    }
}

typedef struct saved_place {
    int64_t epoch, row, rows;
    uint64_t seed;
    int shuffle;
} saved_place;

/* Whether the checkpoint has a place for the feeder. */
static bool find_place(const trama_feeder *d, const trama_checkpoint *c, saved_place *p)
{
    char *key = key_of(d);
    const char *words = trama_checkpoint_get(c, key);
    free(key);
    return words && sscanf(words, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNu64 " %d", &p->epoch, &p->row, &p->rows,
                           &p->seed, &p->shuffle) == 5;
}

trama_status feeders_check(const trama_executable *e, const trama_checkpoint *c)
{
    saved_place p;
    for (const trama_feeder *d = e->open.feeders; d; d = d->next) {
        if (!find_place(d, c, &p))
            continue;
        if (p.rows != d->rows || p.epoch < 0 || p.row < 0 || (p.row && p.row >= p.rows))
            return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                              "%s: it is at row %" PRId64 " of the %" PRId64
                              " rows of the feeder %s, which has %" PRId64
                              " now; add its columns before the call, from the files of that run",
                              trama_checkpoint_path(c), p.row, p.rows, d->name, d->rows);
        if (p.shuffle != d->options.shuffle || (p.shuffle && p.seed != d->options.seed))
            return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                              "%s: the feeder %s was%s shuffled with seed %" PRIu64 "; give it the options of that run",
                              trama_checkpoint_path(c), d->name, p.shuffle ? "" : " not", p.seed);
    }
    return TRAMA_OK;
}

void feeders_restore(const trama_executable *e, const trama_checkpoint *c)
{
    saved_place p;
    for (trama_feeder *d = e->open.feeders; d; d = d->next)
        if (find_place(d, c, &p)) {
            ahead_end(d);
            d->epoch = p.epoch;
            d->row = p.row;
            settle(d, &d->epoch, &d->row);
        }
}
