/* SPDX-License-Identifier: Apache-2.0 */
/* A state resharded to rows, one part a rank, as a file has it. */
#include "saving.h"

/* Split along the first dim that has an index for each rank, else along the longest. */
static trama_layout rows_layout(const trama_executable *e, trama_shape shape)
{
    trama_layout layout = layout_uniform(e->readers, TRAMA_REPLICATE);
    int dim = -1, axis = 0;
    for (int d = 0; d < shape.ndim; d++)
        if (dim < 0 || (shape.dim[dim] < context_ranks(e->context) && shape.dim[d] > shape.dim[dim]))
            dim = d;
    if (dim >= 0 && context_ranks(e->context) > 1)
        layout_split(&layout, dim, 1, &axis);
    return layout;
}

trama_status state_rows_make(trama_executable *e, const trama_value *v, value_ref at, state_rows *rows)
{
    const trama_layout layout = rows_layout(e, v->shape);
    kept_plan *kept = NULL;
    *rows = (state_rows){0};
    trama_status status = TRAMA_OK;
    if (e->session)
        status = session_copy(e, v, at, e->readers, &layout, &kept);
    else
        rows->s = compile_copy(&e->planning, v, at, e->readers, &layout);
    const compiled_program *s = kept ? kept->s : rows->s;
    if (!status)
        status = instance_create(e->context, (compiled_plan *)&s->of, &at, 1, &rows->in);
    status = context_agree(e->context, "trama_save", status);
    if (status) {
        state_rows_free(rows);
        return status;
    }
    fence *f = fence_new(e->context);
    instance_submit(rows->in, e->runs.n, f);
    status = fence_wait(e->context, f, "trama_save");
    fence_free(f);
    rows->at = plan_find(s->of.plan, s->result);
    return status;
}

void state_rows_free(state_rows *rows)
{
    instance_release(&rows->in);
    compiled_program_destroy(&rows->s);
}
