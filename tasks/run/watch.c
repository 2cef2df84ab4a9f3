/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of readings, each given `lag` calls after its start. read.c reads the values. */
#include "executable.h"
#include "trama_watch.h"

struct trama_watch {
    trama_executable *e;     /* NULL: destroyed */
    trama_watch *next;       /* in the executable's list */
    int lag, first, n;       /* n readings in the ring, the oldest at index first */
    trama_reading **reading; /* [lag + 1], a ring */
};

trama_status trama_watch_create_at(trama_where where, trama_executable *e, int lag, trama_watch **watch)
{
    if (!e || !watch)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_watch_create: %s is NULL",
                          e ? "the watch's address" : "the executable");
    if (lag < 0 || lag > TRAMA_WATCH_MOST)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_watch_create: a lag of %d; it is from 0 to %d steps", lag,
                          TRAMA_WATCH_MOST);
    if (context_check(where, "trama_watch_create"))
        return TRAMA_E_ORDER;
    trama_watch *w = trama_alloc(sizeof *w);
    *w = (trama_watch){.e = e, .next = e->open.watches, .lag = lag};
    w->reading = trama_alloc((size_t)(lag + 1) * sizeof(trama_reading *));
    *watch = e->open.watches = w;
    return TRAMA_OK;
}

/* ---- The queue ---- */

static trama_reading *oldest(const trama_watch *w)
{
    return w->reading[w->first];
}

static trama_status take(trama_watch *w, void *data, size_t bytes)
{
    trama_reading *reading = oldest(w);
    w->first = (w->first + 1) % (w->lag + 1);
    w->n--;
    return trama_read_wait(&reading, data, bytes);
}

static void drop_all(trama_watch *w)
{
    while (w->n)
        take(w, NULL, 0);
}

/* ---- The calls ---- */

static size_t bytes_now(value_ref at, const trama_value *value)
{
    return (size_t)trama_shape_count(at.in->of->shapes[at.as]) * trama_dtype_size(value->dtype);
}

static trama_status check_room(trama_where where, const char *call, const void *data, size_t bytes, size_t want,
                               const char *name)
{
    return data && bytes != want
               ? trama_fail(where, TRAMA_E_SHAPE, "%s: room for %zu bytes, %s has %zu", call, bytes, name, want)
               : TRAMA_OK;
}

static trama_status check_watch(trama_where where, const char *call, const trama_watch *w, const bool *known)
{
    return !w || !known ? trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s is NULL", call, w ? "known" : "the watch")
                        : context_check(where, call);
}

trama_status trama_watch_next_at(trama_where where, trama_watch *w, const trama_value *value, void *data, size_t bytes,
                                 bool *known)
{
    static const char call[] = "trama_watch_next";
    value_ref at;
    trama_status status = check_watch(where, call, w, known);
    if (!status && !w->e)
        status = trama_fail(where, TRAMA_E_ORDER, "%s: its executable was destroyed; make another watch", call);
    if (!status)
        status = executable_locate(w->e, where, call, value, &at);
    if (!status)
        status = w->n && w->n == w->lag
                     ? check_room(where, call, data, bytes, reading_bytes(oldest(w)), reading_name(oldest(w)))
                     : check_room(where, call, data, bytes, bytes_now(at, value), trama_value_name(value));
    trama_reading *started = NULL;
    if (!status)
        status = reading_start(where, call, w->e, value, &started);
    if (status)
        return status;
    w->reading[(w->first + w->n++) % (w->lag + 1)] = started;
    *known = w->n > w->lag;
    return *known ? take(w, data, bytes) : TRAMA_OK;
}

trama_status trama_watch_rest_at(trama_where where, trama_watch *w, void *data, size_t bytes, bool *known)
{
    static const char call[] = "trama_watch_rest";
    trama_status status = check_watch(where, call, w, known);
    if (!status && w->n)
        status = check_room(where, call, data, bytes, reading_bytes(oldest(w)), reading_name(oldest(w)));
    if (status)
        return status;
    *known = w->n > 0;
    return *known ? take(w, data, bytes) : TRAMA_OK;
}

trama_status trama_watch_destroy(trama_watch **watch)
{
    if (!watch || !*watch)
        return TRAMA_OK;
    if (context_check(NOWHERE, "trama_watch_destroy"))
        return TRAMA_E_ORDER;
    trama_watch *w = *watch;
    drop_all(w);
    for (trama_watch **at = w->e ? &w->e->open.watches : NULL; at && *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    free(w->reading);
    free(w);
    *watch = NULL;
    return TRAMA_OK;
}

void watches_end(trama_executable *e)
{
    for (trama_watch *w = e->open.watches; w; w = w->next) {
        drop_all(w);
        w->e = NULL;
    }
    e->open.watches = NULL;
}
