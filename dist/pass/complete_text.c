/* SPDX-License-Identifier: Apache-2.0 */
/* A completed program as text. */
#include "complete.h"
#include "marks.h"
#include "trama_complete.h"

static void value_line(text *t, const trama_value *v, const layouts *l, const marks *m)
{
    value_text(t, v);
    text_add(t, " on ");
    mesh_text(t, l->mesh[v->id]);
    text_add(t, " as ");
    layout_text(t, l->mesh[v->id], &l->value[v->id]);
    if (m->stage[v->id])
        text_add(t, ", stage %d", m->stage[v->id] - 1);
    if (m->offload[v->id])
        text_add(t, ", rests in host memory");
    text_add(t, "\n");
}

trama_status trama_complete_text(const trama_program *program, int64_t nominal, char **text_)
{
    if (!program || !text_ || nominal < 1)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_complete_text: %s",
                          !program ? "the program is NULL"
                          : !text_ ? "the text's address is NULL"
                                   : "the nominal extent is below 1");
    if (program->status)
        return trama_fail(NOWHERE, program->status, "%s", program->error);
    trama_program *p = program_copy(program);
    if (p->status) {
        trama_status failed = trama_fail(NOWHERE, p->status, "%s", p->error);
        trama_program_destroy(&p);
        return failed;
    }
    trama_mesh *single = trama_mesh_parse("1");
    layouts l = {0};
    marks m = {0};
    trama_status status = complete_program(p, nominal, single, &l);
    if (!status)
        status = marks_complete(p, &m);
    if (!status) {
        text t = {0};
        order_text(&t, &p->order);
        for (int i = 0; i < p->values.n; i++)
            if (p->values.at[i]->kind != VALUE_EFFECT)
                value_line(&t, p->values.at[i], &l, &m);
        text_add(&t, "%s", l.report);
        *text_ = text_take(&t);
    }
    marks_free(&m);
    layouts_free(&l);
    trama_mesh_destroy(&single);
    trama_program_destroy(&p);
    return status;
}
