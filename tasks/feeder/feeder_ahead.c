/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ahead: a thread reads this rank's boxes of the next batches. It calls neither StarPU, MPI nor HDF5. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "feeder.h"
#include "permutation.h"

/* ---- Rows ---- */

static int64_t row_of(const trama_feeder *d, const read_batch *b, int64_t i)
{
    if (!d->options.shuffle)
        return b->row + i;
    if (b->row_of[i] < 0)
        b->row_of[i] = permutation_at(d->options.seed, (uint64_t)b->epoch, d->rows, b->row + i);
    return b->row_of[i];
}

static trama_status cannot_read(const feeder_source *s, int64_t row, int error)
{
    struct stat now;
    const int64_t bytes = (int64_t)trama_shape_count(s->shape) * (int64_t)trama_dtype_size(s->dtype);
    if (!fstat(s->descriptor, &now) && now.st_size < s->at + bytes)
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                          "%s: it has become shorter: row %" PRId64 " of %" PRId64
                          " is gone; files of a feeder do not change while it is used",
                          s->path, row, s->shape.dim[0]);
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "%s: row %" PRId64 " cannot be read: %s", s->path, row, strerror(error));
}

/* Rows that follow each other in the file are read at once. */
static trama_status read_box(const trama_feeder *d, const feeder_column *c, const read_batch *b, const box *of,
                             char *to)
{
    const feeder_source *s = &c->source;
    const size_t size = trama_dtype_size(s->dtype), own = trama_dtype_size(c->input->dtype);
    int64_t elements = 1; /* of a row of the box */
    for (int k = 1; k < of->ndim; k++)
        elements *= of->n[k];
    for (int64_t i = 0, n = 0; i < of->n[0] && elements; i += n) {
        box rows = *of;
        rows.lo[0] = row_of(d, b, of->lo[0] + i);
        for (n = 1; i + n < of->n[0] && row_of(d, b, of->lo[0] + i + n) == rows.lo[0] + n;)
            n++;
        rows.n[0] = n;
        char *into = to + (size_t)(i * elements) * own,
             *read = s->dtype == c->input->dtype ? into : d->ahead.unconverted;
        if (!box_read(s->descriptor, s->at, s->shape, size, &rows, read))
            return cannot_read(s, rows.lo[0], errno);
        if (read != into)
            elements_convert(s->dtype, read, c->input->dtype, into, n * elements);
    }
    return TRAMA_OK;
}

const batch_boxes *column_boxes(const feeder_column *c, int64_t rows)
{
    return &c->boxes[c->boxes[FULL].rows == rows ? FULL : SHORT];
}

static trama_status read_columns(const trama_feeder *d, const read_batch *b)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < d->columns.n; i++) {
        const feeder_column *c = &d->columns.at[i];
        const batch_boxes *boxes = column_boxes(c, b->rows);
        for (int k = 0; k < boxes->n && !status; k++)
            if (boxes->same[k] == k)
                status = read_box(d, c, b, &boxes->boxes[k], b->data[i * d->ahead.most_boxes + k]);
    }
    return status;
}

static void *read_ahead(void *data)
{
    trama_feeder *d = data;
    reading_ahead *a = &d->ahead;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (!a->stop && a->read == a->taken + a->ahead)
            pthread_cond_wait(&a->changed, &a->lock);
        if (a->stop)
            break;
        read_batch *b = &a->batches[a->read % a->ahead];
        pthread_mutex_unlock(&a->lock);
        b->epoch = a->epoch;
        b->row = a->row;
        b->rows = feeder_batch_rows(d, a->row);
        for (int64_t i = 0; i < b->rows; i++)
            b->row_of[i] = -1;
        b->status = read_columns(d, b);
        b->message = b->status ? trama_text_copy(trama_error()) : NULL;
        feeder_advance(d, &a->epoch, &a->row);
        pthread_mutex_lock(&a->lock);
        a->read++;
        a->stop |= b->status != TRAMA_OK;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- Boxes ---- */

static trama_status find_boxes(trama_where where, trama_feeder *d, feeder_column *c, int64_t rows, batch_boxes *b)
{
    trama_shape shape = c->source.shape;
    shape.dim[0] = rows;
    trama_status status = trama_feed_local_count_at(where, d->e, c->input, shape, &b->n);
    if (status)
        return status;
    b->rows = rows;
    b->boxes = trama_alloc((size_t)(b->n + 1) * sizeof *b->boxes);
    b->same = trama_alloc((size_t)(b->n + 1) * sizeof *b->same);
    for (int i = 0; i < b->n && !status; i++) {
        box *own = &b->boxes[i];
        own->ndim = shape.ndim;
        status = trama_feed_local_box_at(where, d->e, c->input, shape, i, own->lo, own->n);
        while (b->same[i] < i && !box_equal(&b->boxes[b->same[i]], own))
            b->same[i]++;
    }
    return status;
}

static void free_boxes(trama_feeder *d)
{
    for (int i = 0; i < d->columns.n; i++)
        for (int k = 0; k < N_LENGTHS; k++) {
            free(d->columns.at[i].boxes[k].boxes);
            free(d->columns.at[i].boxes[k].same);
            d->columns.at[i].boxes[k] = (batch_boxes){0};
        }
}

static trama_status find_all_boxes(trama_where where, trama_feeder *d)
{
    const int64_t batch = d->options.batch, rest = d->options.drop_last ? 0 : d->rows % batch;
    trama_status status = TRAMA_OK;
    for (int i = 0; i < d->columns.n && !status; i++) {
        feeder_column *c = &d->columns.at[i];
        if (d->rows >= batch)
            status = find_boxes(where, d, c, batch, &c->boxes[FULL]);
        if (!status && rest)
            status = find_boxes(where, d, c, rest, &c->boxes[SHORT]);
        for (int k = 0; k < N_LENGTHS; k++)
            if (c->boxes[k].n > d->ahead.most_boxes)
                d->ahead.most_boxes = c->boxes[k].n;
    }
    return status;
}

/* ---- Memory ---- */

/* Bytes of box i of a column, in elements of so many bytes, in the longest batch. */
static size_t most_bytes(const feeder_column *c, int i, size_t size)
{
    size_t most = 0;
    for (int k = 0; k < N_LENGTHS; k++)
        if (i < c->boxes[k].n && c->boxes[k].same[i] == i) {
            size_t bytes = (size_t)box_count(&c->boxes[k].boxes[i]) * size;
            most = bytes > most ? bytes : most;
        }
    return most;
}

static bool make_batch(const trama_feeder *d, read_batch *b)
{
    const int most = d->ahead.most_boxes;
    bool good = (b->row_of = trama_try_alloc((size_t)min_i64(d->options.batch, d->rows) * sizeof *b->row_of)) != NULL;
    b->data = trama_alloc((size_t)(d->columns.n * most + 1) * sizeof *b->data);
    for (int i = 0; i < d->columns.n; i++)
        for (int k = 0; k < most && good; k++) {
            size_t bytes = most_bytes(&d->columns.at[i], k, trama_dtype_size(d->columns.at[i].input->dtype));
            good = !bytes || (b->data[i * most + k] = trama_try_alloc(bytes));
        }
    return good;
}

static bool make_batches(trama_feeder *d)
{
    reading_ahead *a = &d->ahead;
    size_t most = 1;
    a->batches = trama_alloc((size_t)a->ahead * sizeof *a->batches);
    bool good = true;
    for (int i = 0; i < a->ahead && good; i++)
        good = make_batch(d, &a->batches[i]);
    for (int i = 0; i < d->columns.n; i++)
        for (int k = 0; k < a->most_boxes; k++) {
            const feeder_column *c = &d->columns.at[i];
            size_t bytes = c->source.dtype == c->input->dtype ? 0 : most_bytes(c, k, trama_dtype_size(c->source.dtype));
            most = bytes > most ? bytes : most;
        }
    return good && (a->unconverted = trama_try_alloc(most));
}

/* ---- The thread ---- */

trama_status ahead_begin(trama_where where, trama_feeder *d)
{
    reading_ahead *a = &d->ahead;
    *a = (reading_ahead){.epoch = d->epoch, .row = d->row, .ahead = d->options.prefetch ? d->options.prefetch : 2};
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    d->begun = true;
    trama_status status = find_all_boxes(where, d);
    if (!status && !make_batches(d))
        status =
            trama_fail(where, TRAMA_E_MEMORY, "trama_feeder_next: no memory for %d batches of %s", a->ahead, d->name);
    if (!status && pthread_create(&a->thread, NULL, read_ahead, d))
        status = trama_fail(where, TRAMA_E_SYSTEM, "trama_feeder_next: the system has no thread for %s", d->name);
    a->running = !status;
    return status;
}

const read_batch *ahead_wait(trama_feeder *d)
{
    reading_ahead *a = &d->ahead;
    pthread_mutex_lock(&a->lock);
    while (a->read == a->taken)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
    return &a->batches[a->taken % a->ahead];
}

void ahead_take(trama_feeder *d)
{
    pthread_mutex_lock(&d->ahead.lock);
    d->ahead.taken++;
    pthread_cond_broadcast(&d->ahead.changed);
    pthread_mutex_unlock(&d->ahead.lock);
}

static void stop_thread(reading_ahead *a)
{
    if (!a->running)
        return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
}

void ahead_end(trama_feeder *d)
{
    reading_ahead *a = &d->ahead;
    if (!d->begun)
        return;
    stop_thread(a);
    for (int i = 0; i < a->ahead && a->batches; i++) {
        read_batch *b = &a->batches[i];
        for (int k = 0; b->data && k < d->columns.n * a->most_boxes; k++)
            free(b->data[k]);
        free(b->data);
        free(b->row_of);
        free(b->message);
    }
    free(a->batches);
    free(a->unconverted);
    free_boxes(d);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    d->begun = false;
}
