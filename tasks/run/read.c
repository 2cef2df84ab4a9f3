/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: a planned reshard to every rank, then a copy out. */
#include <complex.h>
#include <string.h>

#include "base.h"
#include "executable.h"
#include "host.h"

struct trama_reading {
    trama_executable *e; /* NULL: it was destroyed, and only where and name are valid */
    trama_reading *next; /* in the executable's list */
    kept_plan *plan;
    instance *in; /* of the plan; held */
    fence *f;
    trama_where where;
    char *name; /* the value's; a compiled program that several eager values share may have another */
};

/* ---- Buffers to read into ---- */

/* A plan with its own instance, which no other reading uses now. */
static trama_status reader_for(trama_executable *e, const trama_value *v, value_ref at, const trama_mesh *mesh,
                               const trama_layout *layout, kept_plan **found)
{
    const plan_key key = {PLAN_READ, at.in, &at.as, sizeof at.as};
    *found = plan_cache_find(&e->plans, &key, NULL);
    if (*found)
        return TRAMA_OK;
    instance *in = NULL;
    compiled_program *s = compile_copy(&e->planning, v, at, mesh, layout);
    trama_status status = instance_create(e->context, &s->of, &at, 1, &in);
    status = context_agree(e->context, "trama_read", status);
    if (status) {
        instance_release(&in);
        compiled_program_destroy(&s);
        return status;
    }
    *found = plan_cache_keep(&e->plans, &key, s, in, 1, &at);
    return TRAMA_OK;
}

/* The plan, and the instance of it for one reading. */
static trama_status find_reader(trama_executable *e, const trama_value *v, value_ref at, kept_plan **found,
                                instance **in)
{
    trama_layout everywhere = layout_uniform(e->readers, TRAMA_REPLICATE);
    trama_status status = (e->session ? session_copy : reader_for)(e, v, at, e->readers, &everywhere, found);
    if (status || !(*found)->in)
        return status ? status : instance_create(e->context, &(*found)->s->of, &at, 1, in);
    (*found)->taken = true;
    *in = (*found)->in;
    (*in)->holders++;
    return TRAMA_OK;
}

/* ---- Reading ---- */

trama_status reading_start(trama_where where, const char *call, trama_executable *e, const trama_value *value,
                           trama_reading **reading)
{
    value_ref at;
    kept_plan *made = NULL;
    instance *in = NULL;
    trama_status status = executable_locate(e, where, call, value, &at);
    if (!status)
        status = executable_call(e, where, call, value->name, value->id, NULL);
    if (!status)
        status = find_reader(e, value, at, &made, &in);
    if (status)
        return status;
    trama_reading *started = trama_alloc(sizeof *started);
    *started = (trama_reading){.e = e,
                               .next = e->open.readings,
                               .plan = made,
                               .in = in,
                               .f = fence_new(e->context),
                               .where = where,
                               .name = trama_text_copy(value->name)};
    instance_submit(in, e->runs.n, started->f);
    *reading = e->open.readings = started;
    return TRAMA_OK;
}

trama_status trama_read_start_at(trama_where where, trama_executable *e, const trama_value *value,
                                 trama_reading **reading)
{
    static const char call[] = "trama_read_start";
    return reading ? reading_start(where, call, e, value, reading)
                   : trama_fail(where, TRAMA_E_ARGUMENT, "%s: the reading's address is NULL", call);
}

size_t reading_bytes(const trama_reading *reading)
{
    const compiled_program *s = reading->plan->s;
    const trama_value *v = s->program->values.at[s->result];
    return (size_t)trama_shape_count(v->shape) * trama_dtype_size(v->dtype);
}

const char *reading_name(const trama_reading *reading)
{
    return reading->name;
}

bool trama_read_ready(const trama_reading *reading)
{
    return reading && (!reading->e || fence_done(reading->f));
}

/* Gives the reading's plan, instance and fence back and removes it from the executable's list. */
static void leave(trama_reading *r)
{
    trama_executable *e = r->e;
    trama_reading **at = &e->open.readings;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    r->plan->taken = false;
    instance_release(&r->in);
    fence_free(r->f);
    r->e = NULL;
}

void readings_end(trama_executable *e)
{
    while (e->open.readings)
        leave(e->open.readings);
}

static trama_status free_reading(trama_reading **reading, trama_status status)
{
    free((*reading)->name);
    free(*reading);
    *reading = NULL;
    return status;
}

/* together: all ranks wait for it now, so they can agree whether a kernel failed. */
static trama_status end_reading(trama_reading **reading, void *data, size_t bytes, bool together)
{
    trama_reading *r = *reading;
    trama_status status = fence_wait(r->e->context, r->f, "trama_read");
    if (!status)
        status = together ? executable_agree(r->e, "trama_read") : executable_fault(r->e);
    const plan_dist_value *h = plan_find(r->plan->s->of.plan, r->plan->s->result);
    size_t want = reading_bytes(r);
    if (!status && data && bytes != want)
        status =
            trama_fail(r->where, TRAMA_E_SHAPE, "trama_read: room for %zu bytes, %s has %zu", bytes, r->name, want);
    if (!status && data)
        status = host_from_region(r->in, &h->pieces.at[0].region, data);
    leave(r);
    return free_reading(reading, status);
}

trama_status trama_read_wait(trama_reading **reading, void *data, size_t bytes)
{
    if (!reading || !*reading)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_read_wait: the reading is NULL");
    if (context_check(NOWHERE, "trama_read_wait"))
        return TRAMA_E_ORDER;
    if (!(*reading)->e)
        return free_reading(reading, trama_fail((*reading)->where, TRAMA_E_ORDER,
                                                "trama_read_wait: the executable of %s was destroyed before; wait for "
                                                "a reading first",
                                                (*reading)->name));
    return end_reading(reading, data, bytes, false);
}

static trama_status read_now(trama_where where, const char *call, trama_executable *e, const trama_value *value,
                             void *data, size_t bytes)
{
    trama_reading *reading;
    trama_status status = reading_start(where, call, e, value, &reading);
    return status ? status : end_reading(&reading, data, bytes, true);
}

trama_status trama_read_at(trama_where where, trama_executable *e, const trama_value *value, void *data, size_t bytes)
{
    return read_now(where, "trama_read", e, value, data, bytes);
}

/* ---- This rank's boxes ---- */

trama_status dist_value_piece(trama_where where, const char *call, const plan_dist_value *h, int i, const char *name,
                              const plan_local_box **piece)
{
    if (i < 0 || i >= h->pieces.n)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: this rank has %d boxes of %s, there is no box %d", call,
                          h->pieces.n, name, i);
    *piece = &h->pieces.at[i];
    return TRAMA_OK;
}

trama_status piece_box(trama_where where, const char *call, const plan_dist_value *h, int i, const char *name,
                       int64_t *offset, int64_t *extent)
{
    const plan_local_box *piece = NULL;
    trama_status status = dist_value_piece(where, call, h, i, name, &piece);
    if (!status && piece->region.box.ndim && (!offset || !extent))
        status = trama_fail(where, TRAMA_E_ARGUMENT, "%s: the address of offset or extent is NULL", call);
    for (int d = 0; !status && d < piece->region.box.ndim; d++) {
        offset[d] = piece->region.box.lo[d];
        extent[d] = piece->region.box.n[d];
    }
    return status;
}

static trama_status local_piece(trama_executable *e, const trama_value *value, const char *call, int i, value_ref *at,
                                const plan_local_box **piece)
{
    trama_status status = executable_locate(e, NOWHERE, call, value, at);
    return status ? status
                  : dist_value_piece(NOWHERE, call, value_ref_dist_value(*at), i, trama_value_name(value), piece);
}

trama_status trama_local_count(trama_executable *e, const trama_value *value, int *n)
{
    value_ref at;
    if (!n)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_local_count: the number's address is NULL");
    trama_status status = executable_locate(e, NOWHERE, "trama_local_count", value, &at);
    if (!status)
        *n = value_ref_dist_value(at)->pieces.n;
    return status;
}

trama_status trama_local_box(trama_executable *e, const trama_value *value, int i, int64_t *offset, int64_t *extent)
{
    static const char call[] = "trama_local_box";
    value_ref at;
    trama_status status = executable_locate(e, NOWHERE, call, value, &at);
    return status ? status
                  : piece_box(NOWHERE, call, value_ref_dist_value(at), i, trama_value_name(value), offset, extent);
}

trama_status trama_read_local(trama_executable *e, const trama_value *value, int i, void *data, size_t bytes)
{
    value_ref at;
    const plan_local_box *piece = NULL;
    trama_status status = local_piece(e, value, "trama_read_local", i, &at, &piece);
    if (status)
        return status;
    trama_dtype dtype = at.in->of->plan->shards.at[piece->region.shard].dtype;
    size_t want = (size_t)box_count(&piece->region.box) * trama_dtype_size(dtype);
    if (bytes != want || !data)
        return trama_fail(NOWHERE, TRAMA_E_SHAPE, "trama_read_local: room for %zu bytes, the box has %zu",
                          data ? bytes : 0, want);
    status = host_from_region(at.in, &piece->region, data);
    return status ? status : executable_fault(e);
}

/* ---- Printing ---- */

static void number_text(text *out, const void *data, trama_dtype dtype, int64_t i)
{
    static const int digits[TRAMA_N_DTYPES] = { /* enough for distinct texts of distinct numbers */
        [TRAMA_F32] = 9, [TRAMA_F64] = 17, [TRAMA_BF16] = 4, [TRAMA_F16] = 5,
        [TRAMA_C64] = 9, [TRAMA_C128] = 17};
    switch (trama_dtype_kind_of(dtype)) {
    case TRAMA_KIND_FLOAT:
        text_add(out, "%.*g", digits[dtype], element_of(dtype, data, i));
        break;
    case TRAMA_KIND_COMPLEX: { /* as numpy: (1-2j) */
        const double _Complex z = dtype == TRAMA_C64 ? ((const trama_c64 *)data)[i] : ((const trama_c128 *)data)[i];
        text_add(out, "(%.*g%+.*gj)", digits[dtype], creal(z), digits[dtype], cimag(z));
        break;
    }
    case TRAMA_KIND_UNSIGNED:
        text_add(out, "%llu", (unsigned long long)element_integer(dtype, data, i));
        break;
    case TRAMA_KIND_BOOL:
        text_add(out, "%s", element_integer(dtype, data, i) ? "true" : "false");
        break;
    default:
        text_add(out, "%lld", (long long)element_integer(dtype, data, i));
        break;
    }
}

static void numbers_text(text *out, const void *data, trama_dtype dtype, trama_shape shape, int64_t most)
{
    int64_t count = trama_shape_count(shape);
    for (int64_t i = 0; i < min_i64(count, most); i++) {
        int64_t block = 1;
        for (int d = shape.ndim - 1; d >= 0 && block; d--) {
            block *= shape.dim[d];
            if (i % block == 0)
                text_add(out, "[");
        }
        number_text(out, data, dtype, i);
        block = 1;
        int closed = 0;
        for (int d = shape.ndim - 1; d >= 0; d--) {
            block *= shape.dim[d];
            if ((i + 1) % block == 0) {
                text_add(out, "]");
                closed++;
            }
        }
        text_add(out, i + 1 == count ? "" : closed ? "\n" : " ");
    }
    text_add(out, count > most ? "...\n" : "\n");
}

trama_status trama_print_at(trama_where where, trama_executable *e, const trama_value *value, int most, char **out)
{
    value_ref at;
    char *layout = NULL;
    if (!out)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_print: the text's address is NULL");
    trama_status status = executable_locate(e, where, "trama_print", value, &at);
    if (!status)
        status = trama_layout_of(e, value, &layout);
    if (status)
        return status;
    trama_shape shape = at.in->of->shapes[at.as];
    size_t bytes = (size_t)trama_shape_count(shape) * trama_dtype_size(value->dtype);
    void *data = trama_try_alloc(bytes);
    /* Without memory this rank still takes part: data is NULL. */
    status = read_now(where, "trama_print", e, value, data, bytes);
    if (!status && !data)
        status =
            trama_fail(where, TRAMA_E_MEMORY, "trama_print: no memory for the %zu bytes of %s", bytes, value->name);
    if (!status) {
        text t = {0};
        text_add(&t, "%s %s", value->name, trama_dtype_name(value->dtype));
        shape_text(&t, shape);
        text_add(&t, " as %s\n", layout);
        numbers_text(&t, data, value->dtype, shape, most);
        status = text_give(&t, "trama_print", out);
    }
    free(data);
    free(layout);
    return status;
}
