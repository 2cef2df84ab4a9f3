/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes of states that this rank writes: of a box that several ranks hold, each writes some slabs. So all ranks
 * together write each element once. */
#include <string.h>

#include "box_file.h"
#include "host.h"
#include "saving.h"
#include "trama_state.h"

enum { SHORT_RUN = 512 };

/* ---- Owners ---- */

static int rank_of(const trama_executable *e, const trama_mesh *mesh, int position)
{
    return e->planning.machine->places[map_place(e->map, mesh->ids[position])].rank;
}

/* This rank's number among the n ranks that hold the box, in ascending order. */
static int number_among(const saving *s, const plan_dist_value *h, trama_shape shape, const box *b, int *n)
{
    const box whole = box_whole(shape);
    bool *holds = trama_alloc((size_t)s->ranks * sizeof *holds);
    int mine = 0;
    for (int p = 0; p < h->mesh->size; p++) {
        box other;
        layout_box(h->mesh, &h->layout, &whole, p, &other);
        if (layout_present(&h->layout, p) && box_equal(&other, b))
            holds[rank_of(s->e, h->mesh, p)] = true;
    }
    *n = 0;
    for (int r = 0; r < s->ranks; r++) {
        mine = r == s->rank ? *n : mine;
        *n += holds[r];
    }
    free(holds);
    return mine;
}

/* ---- Copies ---- */

/* Copies the slab and writes it, or submits the copy. */
static trama_status take_slab(saving *s, int tensor, instance *in, int number, const box *b)
{
    saved_slab slab = {.tensor = tensor, .dtype = in->of->plan->shards.at[number].dtype, .box = *b};
    const size_t bytes = (size_t)box_count(b) * trama_dtype_size(slab.dtype);
    slab.data = slab_alloc(bytes);
    if (!slab.data)
        return trama_fail(NOWHERE, TRAMA_E_MEMORY, "trama_save: no memory for %zu bytes of %s", bytes,
                          s->file->tensors.at[tensor].name);
    const plan_region region = {number, *b};
    if (s->holds)
        return saving_hold(s, in, &region, slab);
    trama_status status = host_from_region(in, &region, slab.data);
    if (!status)
        status = saving_write(s, &slab);
    free(slab.data);
    return status;
}

static trama_status copy_boxes(saving *s, int tensor, instance *in, const plan_dist_value *h, trama_shape shape)
{
    trama_status status = TRAMA_OK;
    const size_t element = trama_dtype_size(s->file->tensors.at[tensor].dtype);
    for (int i = 0; i < h->pieces.n && !status; i++) {
        const plan_region *region = &h->pieces.at[i].region;
        if (!box_count(&region->box) || box_is_repeated(h, i))
            continue;
        int n, mine = number_among(s, h, shape, &region->box, &n);
        const box_slabs slabs = box_slabs_of(&region->box, element, SLAB_BYTES);
        for (int64_t j = mine; j < slabs.n && !status; j += n) {
            const box b = box_slab(&slabs, j);
            status = take_slab(s, tensor, in, region->shard, &b);
        }
    }
    return status;
}

/* ---- States ---- */

/* Whether the state is resharded before: its boxes are terms, or have short runs in the file. All ranks say the same.
 */
static bool needs_rows(const plan_dist_value *h, trama_shape shape, size_t element)
{
    const box whole = box_whole(shape);
    box first;
    if (!h->mesh || layout_has(&h->layout, TRAMA_PARTIAL))
        return true;
    layout_box(h->mesh, &h->layout, &whole, 0, &first);
    const box_runs runs = box_runs_of(shape, element, &first);
    return runs.n > 1 && runs.bytes < SHORT_RUN;
}

/* mine: whether this rank could write all before; the ranks go on together while a change of layout needs them. */
static trama_status copy_state(saving *s, const trama_value *v, int tensor, trama_status mine)
{
    static const char call[] = "trama_save";
    value_ref at;
    trama_status status = executable_locate(s->e, NOWHERE, call, v, &at);
    if (status)
        return status;
    const plan_dist_value *h = value_ref_dist_value(at);
    if (!needs_rows(h, v->shape, trama_dtype_size(s->file->tensors.at[tensor].dtype)))
        return mine ? mine : copy_boxes(s, tensor, at.in, h, v->shape);
    state_rows rows;
    status = state_rows_make(s->e, v, at, &rows);
    if (!status && !mine)
        mine = copy_boxes(s, tensor, rows.in, rows.at, v->shape);
    state_rows_free(&rows);
    return status ? status : mine;
}

trama_status saving_boxes(saving *s)
{
    trama_status mine = TRAMA_OK;
    for (int i = 0; i < s->tensor_of.n; i++)
        if (s->tensor_of.at[i] >= 0)
            mine = copy_state(s, trama_state_number(s->e, i), s->tensor_of.at[i], mine);
    return mine;
}
